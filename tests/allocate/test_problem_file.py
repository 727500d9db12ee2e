"""Reading a problem file: what comes out of a good one, and which line comes out of a bad one."""

from __future__ import annotations

import copy
import json
import math
import time
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.allocate.problem import Problem
from fairway.allocate.problem_file import _EXPECTED, ProblemFile, parse_problem
from fairway.errors import InputError
from fairway.jobs import Entity, Job, Pair

EXAMPLE = Path(__file__).parents[2] / "examples" / "mixed-cluster.json"

FULL: dict[str, Any] = {
    "workers": {"v100": 2, "p100": 4},
    "prices": {"v100": 0.74, "p100": 0.43},
    "jobs": [
        {
            "id": "a",
            "throughputs": {"v100": 4.0, "p100": 2},
            "scale_factor": 1,
            "weight": 1.0,
            "steps_left": 1000.0,
            "elapsed": 5.0,
            "isolated_elapsed": 4.0,
            "slo_seconds": None,
            "entity": "team-a",
        },
        {"id": "b", "throughputs": {"p100": 1.5}, "slo_seconds": -3},
    ],
    "pairs": [{"jobs": ["b", "a"], "throughputs": {"p100": [1.5, 3.0]}}],
    "entities": {"team-a": {"weight": 1.0, "policy": "fairness"}},
}


def full(**changed: Any) -> dict[str, Any]:
    return {**copy.deepcopy(FULL), **changed}


def second_job(**changed: Any) -> dict[str, Any]:
    document = full(pairs=[])
    document["jobs"][1].update(changed)
    return document


def pair(**changed: Any) -> dict[str, Any]:
    return full(pairs=[{**FULL["pairs"][0], **changed}])


def parse(document: Any) -> Problem:
    return parse_problem(json.dumps(document), "p.json")


def refusal(document: Any) -> str:
    with pytest.raises(InputError) as caught:
        parse_problem(document if isinstance(document, str | bytes) else json.dumps(document), "p.json")
    line = str(caught.value)
    assert len(line.splitlines()) == 1
    assert line.startswith("p.json: ")
    return line.removeprefix("p.json: ")


def test_every_field_of_a_full_file_arrives() -> None:
    problem = parse(full(seed=7))
    assert problem.types == ("v100", "p100")
    assert problem.ids == ("a", "b")
    np.testing.assert_array_equal(problem.workers, [2, 4])
    np.testing.assert_array_equal(problem.throughputs, [[4, 2], [0, 1.5]])
    np.testing.assert_array_equal(problem.steps_left, [1000, np.nan])
    np.testing.assert_array_equal(problem.elapsed, [5, 0])
    np.testing.assert_array_equal(problem.isolated_elapsed, [4, 0])
    np.testing.assert_array_equal(problem.slo_seconds, [np.nan, -3])
    np.testing.assert_array_equal(problem.dollars_per_hour, [0.74, 0.43])
    np.testing.assert_array_equal(problem.team, [0, -1])
    assert problem.pairs is not None
    np.testing.assert_array_equal(problem.pairs.rates, [[[0, 0], [3, 1.5]]])
    assert problem.entities == {"team-a": Entity()}
    assert problem.seed == 7


def test_the_example_can_be_read() -> None:
    assert len(parse_problem(EXAMPLE.read_bytes(), str(EXAMPLE))) == 7


def test_only_workers_and_jobs_are_needed_and_null_is_the_same_as_left_out() -> None:
    needed = {"workers": {"v100": 1}, "jobs": [{"id": "a", "throughputs": {"v100": 1}}]}
    optional = dict.fromkeys(("prices", "pairs", "entities", "workers_per_node", "seed"))
    for document in (needed, needed | optional):
        problem = parse(document)
        assert problem.dollars_per_hour is None
        assert problem.pairs is None
        assert problem.entities == {}
        assert problem.seed == 0


def test_a_gang_that_spans_nodes_runs_at_its_spread_rate() -> None:
    job = {"id": "a", "scale_factor": 4, "throughputs": {"v100": 8}, "spread_throughputs": {"v100": 5}}
    document = {"workers": {"v100": 8}, "workers_per_node": {"v100": 2}, "jobs": [job]}
    np.testing.assert_array_equal(parse(document).throughputs, [[5.0]])


def test_a_whole_number_may_be_written_with_a_point() -> None:
    problem = parse({"workers": {"v100": 2.0}, "jobs": [{"id": "a", "throughputs": {}, "scale_factor": 2.0}]})
    np.testing.assert_array_equal(problem.workers, [2])
    np.testing.assert_array_equal(problem.scale_factors, [2])


@pytest.mark.parametrize("text", ["\ufeff" + json.dumps(FULL), ("\ufeff" + json.dumps(FULL)).encode()])
def test_a_byte_order_mark_is_skipped(text: str | bytes) -> None:
    assert len(parse_problem(text, "p.json")) == 2


@pytest.mark.parametrize("workers", [{}, {"v100": 0, "p100": 0}])
def test_without_any_worker_no_job_can_run_and_that_is_no_error(workers: dict[str, int]) -> None:
    problem = parse({"workers": workers, "jobs": [{"id": "a", "throughputs": {"v100": 1}, "scale_factor": 8}]})
    assert not problem.can_run.any()


def test_a_job_that_runs_nowhere_is_no_error() -> None:
    problem = parse(second_job(throughputs={"v100": 0, "a100": 5}))
    assert problem.can_run.tolist() == [True, False]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "empty, expected an object"),
        (b" \n", "empty, expected an object"),
        ("{", "not valid JSON: Expecting property name enclosed in double quotes at line 1 column 2; correct it there"),
        ('{"workers": {"v100": 1},\n "jobs": [}', "not valid JSON: Expecting value at line 2 column 11; correct"),
        (json.dumps(FULL) + "}", "not valid JSON: Extra data at line 1"),
        ("[" * 100_000, "nested too deeply, expected an object"),
        ('{"workers": {"v100": ' + "1" * 6000 + "}}", "not valid JSON: number out of range"),
        (b"\xff\xfe{", "not text in UTF-8; save it as JSON or YAML in UTF-8"),
        ("\ud800", "not text in UTF-8"),
        (json.dumps(FULL).encode("utf-16"), "not text in UTF-8"),
        ("[]", "the document: a list of 0 given, expected an object"),
        ("3", "the document: 3 given, expected an object"),
    ],
)
def test_what_is_not_a_json_object_is_refused(text: str | bytes, line: str) -> None:
    assert refusal(text).startswith(line)


@pytest.mark.parametrize(
    ("document", "line"),
    [
        ({"jobs": []}, "workers: missing, expected an object of counts"),
        ({"workers": {}}, "jobs: missing, expected a list of jobs; add it"),
        (full(workers=[]), "workers: a list of 0 given, expected an object of counts"),
        (full(workers={"v100": -1}), "workers.v100: -1 given, expected a whole number from 0"),
        (full(workers={"v100": -2.0}), "workers.v100: -2.0 given, expected a whole number from 0"),
        (full(workers={"v100": 1.5}), "workers.v100: 1.5 given, expected a whole number from 0"),
        (full(workers={"v100": True}), "workers.v100: true given, expected a whole number from 0"),
        (full(workers={"v100": "2"}), 'workers.v100: "2" given, expected a whole number from 0'),
        (full(workers={"v100": 10**400}), "workers.v100: 10000"),
        (full(workers={"": 1}), "workers: a name with no characters given"),
        (full(jobs={}), "jobs: an object given, expected a list of jobs"),
        (full(jobs=[3]), "jobs[0]: 3 given, expected an object"),
        (second_job(id=""), 'jobs[1].id: "" given, expected text of at least one character'),
        (second_job(id=3), "jobs[1].id: 3 given, expected text"),
        (second_job(throughputs=None), "jobs[1].throughputs: null given, expected an object of steps per second"),
        (second_job(throughputs={"v100": -1}), "jobs[1].throughputs.v100: -1 given, expected a number >= 0"),
        (second_job(throughputs={"v100": math.nan}), "jobs[1].throughputs.v100: nan given, expected a number >= 0"),
        (second_job(throughputs={"v100": math.inf}), "jobs[1].throughputs.v100: inf given, expected a number >= 0"),
        (second_job(throughputs={"v100": "fast"}), 'jobs[1].throughputs.v100: "fast" given, expected a number >= 0'),
        (second_job(throughputs={"v100": 10**400}), "jobs[1].throughputs.v100: 10000"),
        (second_job(throughputs={"a b": -1}), 'jobs[1].throughputs["a b"]: -1 given'),
        (second_job(weight=0), "jobs[1].weight: 0 given, expected a number > 0"),
        (second_job(weight=-math.inf), "jobs[1].weight: -inf given, expected a number > 0"),
        (second_job(scale_factor=0), "jobs[1].scale_factor: 0 given, expected a whole number >= 1"),
        (second_job(scale_factor=1.5), "jobs[1].scale_factor: 1.5 given, expected a whole number >= 1"),
        (second_job(scale_factor=math.nan), "jobs[1].scale_factor: nan given, expected a whole number >= 1"),
        (second_job(steps_left=-1), "jobs[1].steps_left: -1 given, expected a number >= 0, or null"),
        (second_job(elapsed=None), "jobs[1].elapsed: null given, expected a number >= 0"),
        (second_job(slo_seconds=math.nan), "jobs[1].slo_seconds: nan given, expected a number"),
        (second_job(entity=[]), "jobs[1].entity: a list of 0 given, expected text"),
        (full(prices={"v100": 0, "p100": 1}), "prices.v100: 0 given, expected a number > 0"),
        (full(pairs={}), "pairs: an object given, expected a list of pairs"),
        (pair(jobs=["a"]), 'pairs[0].jobs: a list of 1 given, expected two job ids, as in ["a", "b"]'),
        (pair(jobs=["a", "b", "a"]), "pairs[0].jobs: a list of 3 given, expected two job ids"),
        (pair(throughputs={"v100": [1]}), "pairs[0].throughputs.v100: a list of 1 given, expected two numbers >= 0"),
        (pair(throughputs={"v100": [1, -1]}), "pairs[0].throughputs.v100[1]: -1 given, expected a number >= 0"),
        (full(entities={"t": {"policy": "lottery"}}), 'entities.t.policy: "lottery" given, expected "fairness" or'),
        (full(entities={"t": {"weight": 0}}), "entities.t.weight: 0 given, expected a number > 0"),
        (full(workers_per_node={"v100": 0}), "workers_per_node.v100: 0 given, expected a whole number from 1"),
        (full(seed=-1), "seed: -1 given, expected a whole number from 0"),
    ],
)
def test_a_value_of_the_wrong_type_or_range_is_refused_with_its_place(document: Any, line: str) -> None:
    assert refusal(document).startswith(line)


@pytest.mark.parametrize(
    ("document", "line"),
    [
        (second_job(wieght=1), "jobs[1].wieght: no such field, did you mean 'weight'?"),
        (second_job(colour=1), "jobs[1].colour: no such field; take it out or use one of id, throughputs,"),
        (full(worker={}), "worker: no such field, did you mean 'workers'?"),
        (full(entities={"t": {"wait": 1}}), "entities.t.wait: no such field, did you mean 'weight'?"),
        (pair(job=[]), "pairs[0].job: no such field, did you mean 'jobs'?"),
        (full(**{"x" * 500: 1}), '["xxx'),
    ],
)
def test_an_unknown_field_is_refused_with_the_one_that_was_meant(document: Any, line: str) -> None:
    assert refusal(document).startswith(line)
    assert len(refusal(document)) < 300


@pytest.mark.parametrize(
    ("document", "line"),
    [
        (second_job(id="a"), "jobs[1].id: 'a' is also the id of jobs[0]; give each job its own"),
        (second_job(entity="x"), "jobs[1].entity: 'x' is not one of the entities; add it to them"),
        (second_job(scale_factor=5), "jobs[1].scale_factor: 5 given, but no accelerator type has more than 4 workers"),
        (full(prices={"v100": 1}), "prices: 'p100' missing; price every accelerator type or none"),
        (full(prices={"v100": 1, "p100": 1, "k80": 1}), "prices.k80: no such accelerator type; known: 'v100', 'p100'"),
        (full(workers_per_node={"k80": 1}), "workers_per_node.k80: no such accelerator type"),
        (pair(jobs=["a", "x"]), "pairs[0].jobs: 'x' is not the id of a job"),
        (pair(jobs=["a", "a"]), "pairs[0].jobs: 'a' cannot share with itself"),
        (full(pairs=FULL["pairs"] * 2), "pairs[1].jobs: 'b' and 'a' are given twice"),
        (full(entities={"team-a": {"parent": "x"}}), "entities.team-a.parent: 'x' is not one of the entities"),
        (full(entities={"team-a": {"parent": "team-a"}}), "entities.team-a.parent: 'team-a' is its own ancestor"),
        (
            full(entities={"team-a": {"parent": "b"}, "b": {"parent": "team-a"}}),
            "entities.team-a.parent: 'team-a' is its own ancestor; entities must form a tree",
        ),
    ],
)
def test_fields_that_do_not_fit_together_are_refused(document: Any, line: str) -> None:
    assert refusal(document).startswith(line)


@pytest.mark.parametrize(
    ("document", "line"),
    [
        (second_job(throughputs={"p100": 1e300}), "jobs[1].throughputs.p100: 1e+300 given, expected a size from 1e-09"),
        (second_job(throughputs={"p100": 1e-300}), "jobs[1].throughputs.p100: 1e-300 given, expected a size"),
        (second_job(weight=1e-300), "jobs[1].weight: 1e-300 given, expected a size"),
        (second_job(steps_left=1e300), "jobs[1].steps_left: 1e+300 given, expected a size"),
        (second_job(slo_seconds=-1e300), "jobs[1].slo_seconds: -1e+300 given, expected a size"),
        (full(prices={"v100": 1e-300, "p100": 1}), "prices.v100: 1e-300 given, expected a size"),
        (pair(throughputs={"p100": [1, 1e300]}), "pairs[0].throughputs.p100: 1e+300 given, expected a size"),
        (full(entities={"team-a": {"weight": 1e300}}), "entities.team-a.weight: 1e+300 given, expected a size"),
        (
            {"workers": {}, "jobs": [{"id": "a", "throughputs": {}, "scale_factor": 10**400}]},
            "jobs[0].scale_factor: 1000",
        ),
    ],
)
def test_a_number_that_would_overflow_is_refused(document: Any, line: str) -> None:
    assert refusal(document).startswith(line)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"workers": {"v": 1}, "workers": {"v": 2}, "jobs": []}', "workers: given twice; keep one of them"),
        ('{"workers": {"v": 1, "v": 1}, "jobs": []}', "workers.v: given twice"),
        ('{"workers": {"v": 1}, "jobs": [{"id": "a", "id": "b", "throughputs": {}}]}', "jobs[0].id: given twice"),
        (
            '{"workers": {"v": 1, "v": 1}, "jobs": [{"id": "a", "throughputs": {"v": 1, "v": 2}}], "jobs": []}',
            "jobs: given twice",
        ),
    ],
)
def test_a_field_that_is_given_twice_is_refused(text: str, line: str) -> None:
    assert refusal(text).startswith(line)


def test_of_several_problems_the_first_is_told_and_the_others_are_counted() -> None:
    line = refusal(second_job(scale_factor=0, weight=0, elapsed=-1))
    assert line == "jobs[1].scale_factor: 0 given, expected a whole number >= 1 (workers of its gang) (and 2 more)"


def test_a_name_cannot_break_the_line_or_fill_the_screen() -> None:
    assert refusal(second_job(entity="x\ny")).startswith(r"jobs[1].entity: 'x\ny' is not one of the entities")
    assert len(refusal(second_job(id="a" * 10_000, entity="b" * 10_000))) <= 400
    assert len(refusal(second_job(id=["a" * 10_000]))) <= 400


@pytest.mark.parametrize(
    ("part", "prefix"), [(ProblemFile, ""), (Job, "jobs.*."), (Pair, "pairs.*."), (Entity, "entities.*.")]
)
def test_every_field_has_words_for_what_it_should_be(part: type[Any], prefix: str) -> None:
    for field in fields(part):
        assert prefix + field.name in _EXPECTED


def test_a_hundred_thousand_jobs_are_read_in_seconds() -> None:
    jobs = [{**FULL["jobs"][0], "id": str(number)} for number in range(100_000)]
    text = json.dumps(full(jobs=jobs, pairs=[]))
    start = time.perf_counter()
    assert len(parse_problem(text, "p.json")) == 100_000
    assert time.perf_counter() - start < 15  # about 2 s on a quiet core


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["a", "v100", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["id", "jobs", "weight", "workers", "throughputs"]), inner, max_size=3)
    ),
    max_leaves=6,
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, member in members:
        found += _places(member, (*path, step))
    return found


def _put(value: Any) -> Callable[[Any, Any], None]:
    return lambda parent, step: parent.__setitem__(step, value)


CHANGES = st.one_of(
    st.just(lambda parent, step: parent.pop(step)),
    JUNK.map(_put),
    st.sampled_from([0, -1, 1.5, 10**30, math.nan, math.inf, "a", "b", None, True, [], {}]).map(_put),
)


def parsed_or_refused(text: str | bytes) -> None:
    try:
        problem = parse_problem(text, "p.json")
    except InputError as error:
        line = str(error)
    else:
        assert np.isfinite(problem.throughputs).all()
        return
    assert len(line.splitlines()) == 1
    assert line.startswith("p.json: ")


@settings(deadline=None)
@given(JUNK)
def test_any_json_is_a_problem_or_one_line(document: Any) -> None:
    parsed_or_refused(json.dumps(document))


@settings(deadline=None)
@given(st.binary(max_size=30) | st.text(max_size=30))
def test_any_text_is_a_problem_or_one_line(text: str | bytes) -> None:
    parsed_or_refused(text)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_good_file_with_a_few_faults_is_a_problem_or_one_line(data: st.DataObject) -> None:
    document = full(seed=1, workers_per_node={"v100": 2})
    for change in data.draw(st.lists(CHANGES, min_size=1, max_size=3)):
        places = _places(document)
        if places:
            *path, step = data.draw(st.sampled_from(places))
            parent: Any = document
            for name in path:
                parent = parent[name]
            change(parent, step)
    parsed_or_refused(json.dumps(document))


@settings(deadline=None)
@given(st.integers(0, 400), st.sampled_from(["", "{", "}", '"', ",", "1", "NaN", "\x00", "\\"]))
def test_a_good_file_cut_or_spoilt_anywhere_is_a_problem_or_one_line(position: int, piece: str) -> None:
    text = json.dumps(FULL)
    parsed_or_refused(text[:position])
    parsed_or_refused(text[:position] + piece + text[position:])
