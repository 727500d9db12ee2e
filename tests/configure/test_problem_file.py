"""The problem file of `fairway configure`: every mistake is one line that names the file, the place and the fix."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway import InputError, configure, parse_configuration

EXAMPLE = Path(__file__).parents[2] / "examples" / "configure-pipeline.json"

SMALL: dict[str, Any] = {
    "stages": [
        {"name": "a", "configs": [{"batch": 1, "cpu": 1, "gpu": 1, "seconds": 0.08}]},
        {
            "name": "b",
            "configs": [
                {"batch": 1, "cpu": 2, "gpu": 1, "seconds": 0.2},
                {"batch": 4, "cpu": 2, "gpu": 2, "seconds": 0.3},
            ],
        },
    ],
    "edges": [["a", "b"]],
    "slo_seconds": 0.5,
    "queue_length": 8,
    "prices": {"cpu": 0.034, "gpu": 0.67},
    "k": 5,
    "group_size": 3,
}


def changed(path: list[Any], value: Any) -> dict[str, Any]:
    document = copy.deepcopy(SMALL)
    inner: Any = document
    for step in path[:-1]:
        inner = inner[step]
    if value is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return document


def test_a_file_becomes_a_problem() -> None:
    problem = parse_configuration(json.dumps(SMALL), "p.json")
    assert (problem.queue_length, problem.k, problem.group_size, problem.platform.gpu) == (8, 5, 3, 7)
    best = configure("front", problem).candidates[0]
    assert {stage: tuple(each) for stage, each in best.plan.items()} == {0: (1, 1, 1), 1: (4, 2, 2)}
    assert best.cost_dollars == pytest.approx((0.704 * 0.08 + 1.408 * 0.3 / 4) / 3600)


def test_what_may_be_left_out_may_be_and_yaml_will_do() -> None:
    text = "stages: [{name: a, configs: [{batch: 1, cpu: 1, gpu: 0, seconds: 1e-1}]}]\nslo_seconds: 1"
    problem = parse_configuration(text, "p.yaml")
    assert (problem.queue_length, problem.k, problem.group_size) == (1, 5, 3)
    assert problem.budgets == {"a": 1.0}


def test_the_example_is_read() -> None:
    problem = parse_configuration(EXAMPLE.read_bytes(), "example")
    answers = {name: configure(name, problem) for name in ("esg", "front", "brute-force")}
    assert all(answer.feasible and len(answer.candidates) == 5 for answer in answers.values())
    assert answers["front"].candidates[0].plan == answers["brute-force"].candidates[0].plan
    assert answers["front"].candidates[0].cost_dollars <= answers["esg"].candidates[0].cost_dollars


def test_a_graph_that_is_not_series_parallel_and_too_large_is_refused() -> None:
    configs = [{"batch": 1, "cpu": 1 + n, "gpu": 0, "seconds": 1 / (1 + n) ** 0.5} for n in range(40)]
    names = [f"{row}{column}" for row in range(4) for column in range(4)]
    edges = [[name, f"{int(name[0]) + 1}{name[1]}"] for name in names if name[0] < "3"]
    edges += [[name, f"{name[0]}{int(name[1]) + 1}"] for name in names if name[1] < "3"]
    document = {"stages": [{"name": name, "configs": configs} for name in names], "edges": edges, "slo_seconds": 20}
    problem = parse_configuration(json.dumps(document), "p.json")
    with pytest.raises(InputError, match="not series-parallel and its exact plan needs more than"):
        configure("front", problem)
    with pytest.raises(InputError, match="brute force would try"):
        configure("brute-force", problem)
    assert configure("esg", problem).feasible


STAGE = ["stages", 1, "configs", 0]


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["stages", 1, "configs"], [], "stages[1] ('b').configs: none given, expected at least one"),
        ([*STAGE, "batch"], 0, "stages[1] ('b').configs[0].batch: 0 given, expected a whole number from 1"),
        ([*STAGE, "gpu"], 8, "stages[1] ('b').configs[0].gpu: 8 given, but a GPU has 7 slices; use fewer"),
        ([*STAGE, "gpu"], -1, "stages[1] ('b').configs[0].gpu: -1 given, expected a whole number from 0"),
        ([*STAGE, "cpu"], 1.5, "stages[1] ('b').configs[0].cpu: 1.5 given, expected a whole number from 0"),
        ([*STAGE, "seconds"], -0.1, "stages[1] ('b').configs[0].seconds: -0.1 given, expected a number from 0"),
        ([*STAGE, "seconds"], ..., "stages[1] ('b').configs[0].seconds: missing, expected a number from 0"),
        ([*STAGE, "speed"], 1, "stages[1] ('b').configs[0].speed: no such field"),
        (STAGE, {"batch": 4, "cpu": 2, "gpu": 2, "seconds": 1}, "stages[1] ('b').configs[1]: the same batch, cpu and"),
        (STAGE, {"batch": 1, "cpu": 0, "gpu": 0, "seconds": 1}, "stages[1] ('b').configs[0]: 0 CPUs and 0 GPU slices"),
        (["edges"], [["a", "b"], ["b", "a"]], "edges: 'a' -> 'b' -> 'a' is a cycle; take one of these edges out"),
        (["edges"], [["a", "c"]], "edges[0]: 'a' -> 'c' given, but there is no stage 'c'"),
        (["edges"], [["a"]], "edges[0]: a list of 1 given, expected two names of stages"),
        (["stages"], [], "stages: none given, expected at least one"),
        (["stages", 1, "name"], "a", "stages[1].name: 'a' is also the name of stages[0]; give each its own"),
        (["slo_seconds"], ..., "slo_seconds: missing, expected a number from 0"),
        (["slo_seconds"], -1, "slo_seconds: -1 given, expected a number from 0"),
        (["queue_length"], 0, "queue_length: 0 given, expected a whole number from 1"),
        (["k"], 0, "k: 0 given, expected a whole number from 1"),
        (["group_size"], 0, "group_size: 0 given, expected a whole number from 1"),
        (["prices"], {"gpu": -1}, "prices.gpu: -1 given, expected a number from 0"),
        (["stages", 0, "configs", 0, "batch"], 16, "stages[0] ('a').configs: the smallest batch is 16, but queue_"),
    ],
)
def test_a_mistake_is_one_line(path: list[Any], value: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_configuration(json.dumps(changed(path, value)), "p.json")
    assert str(caught.value).startswith(f"p.json: {message}")
    assert "\n" not in str(caught.value)


def test_a_larger_gpu_can_be_described() -> None:
    document = {**changed([*STAGE, "gpu"], 8), "gpu_slices": 8}
    assert configure("front", parse_configuration(json.dumps(document), "p.json")).feasible


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["stages", "edges", "name", "configs", "slo_seconds", "batch"]), inner, max_size=4
            )
        ),
    )
)
def test_no_document_breaks_the_reader(document: Any) -> None:
    with pytest.raises(InputError):
        parse_configuration(json.dumps(document), "noise")
