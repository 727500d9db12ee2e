"""The problem file of `fairway place`: every mistake is one line that names the file, the place and the fix."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway import InputError, parse_placement, place
from fairway.place.fleet import OUTSIDE

EXAMPLE = Path(__file__).parents[2] / "examples" / "place-request.json"

SMALL: dict[str, Any] = {
    "models": {"opt": {"bytes": 6141853204}, "nli": {"bytes": 2000000000}},
    "workflow": {
        "stages": [
            {"name": "t0", "model": "opt", "seconds": 0.561, "input_bytes": 1024, "output_bytes": 2048},
            {"name": "t1", "model": "nli", "seconds": {"t4": 0.027}},
        ],
        "edges": [["t0", "t1"]],
    },
    "workers": [
        {"name": "w0", "queued_seconds": 0.0, "memory_bytes": 14336000000, "cached": ["opt"], "accelerator": "t4"},
        {"name": "w1", "memory_bytes": 2000000000, "accelerator": "t4", "host": "h"},
        {"name": "w2", "memory_bytes": 14336000000, "accelerator": "cpu", "queued_seconds": 1.5},
    ],
    "ingress": "w0",
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


def test_a_file_becomes_a_request_and_the_state_of_the_workers() -> None:
    problem = parse_placement(json.dumps(SMALL), "p.json")
    graph = problem.request.graph
    assert problem.request.ingress == 0
    assert graph.runnable.tolist() == [[True, False, True], [True, True, False]]
    assert problem.view.load(2, 0.0) == 1.5
    assert problem.view.holds(0, 0)
    assert not problem.view.holds(1, 0)
    assert problem.view.free_bytes(0) == 14336000000 - 6141853204
    assert graph.fleet.workers[1].host == "h"
    assert place("compass", problem).assignment == {"t0": "w0", "t1": "w0"}


def test_what_may_be_left_out_may_be() -> None:
    problem = parse_placement(
        '{"workflow": {"stages": [{"name": "a", "seconds": 1}]}, "workers": [{"name": "w", "memory_bytes": 0}]}', "-"
    )
    assert problem.request.ingress == OUTSIDE
    assert place("compass", problem).assignment == {"a": "w"}


def test_yaml_will_do_too() -> None:
    text = """
workflow: {stages: [{name: a, seconds: 1, input_bytes: 1e9}]}
workers: [{name: w, memory_bytes: 0}]
links: {network_bandwidth: 1e9, network_latency: 0}
"""
    plan = place("compass", parse_placement(text, "p.yaml"))
    assert plan.finish_seconds == {"a": pytest.approx(2.0)}


def test_the_example_is_read_and_its_ties_follow_the_seed() -> None:
    problem = parse_placement(EXAMPLE.read_bytes(), "example")
    assert place("compass", problem, seed=3).assignment == place("compass", problem, seed=3).assignment
    assert {place("heft", problem, seed=seed).assignment["chinese"] for seed in range(40)} == {"w0", "w1", "w2", "w4"}


STAGES = ["workflow", "stages"]


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["workflow", "edges"], [["t0", "t1"], ["t1", "t0"]], "workflow.edges: 't0' -> 't1' -> 't0' is a cycle; take"),
        (["workflow", "edges"], [["t0", "t9"]], "workflow.edges[0]: 't0' -> 't9' given, but there is no stage 't9'"),
        (["workflow", "edges"], [["t0"]], "workflow.edges[0]: a list of 1 given, expected two names of stages"),
        ([*STAGES, 0, "output_bytes"], -1, "workflow.stages[0] ('t0').output_bytes: -1 given, expected a whole number"),
        ([*STAGES, 0, "input_bytes"], -1, "workflow.stages[0] ('t0').input_bytes: -1 given, expected a whole number"),
        ([*STAGES, 0, "seconds"], -1, "workflow.stages[0] ('t0').seconds: -1 given, expected seconds >= 0"),
        ([*STAGES, 0, "seconds"], ..., "workflow.stages[0] ('t0').seconds: missing, expected seconds >= 0"),
        ([*STAGES, 0, "model"], "obt", "workflow.stages[0] ('t0').model: 'obt' is not one of the models, did you mean"),
        ([*STAGES, 1, "name"], "t0", "workflow.stages[1].name: 't0' is also the name of stages[0]"),
        ([*STAGES, 1, "seconds"], {"a100": 1}, "stages[1] ('t1'): has a time on 'a100', but on none of the accelera"),
        (STAGES, [], "workflow.stages: none given, expected at least one"),
        (["models", "opt", "bytes"], -1, "models.opt.bytes: -1 given, expected a whole number"),
        (
            ["models", "opt", "bytes"],
            14336000001,
            "workers[0] ('w0').cached: 14336000001 bytes given, but the worker's",
        ),
        (["models", "opt", "bytes"], 14336000001.0, "workers[0] ('w0').cached: "),
        (["models"], {"nli": {"bytes": 1}}, "workflow.stages[0] ('t0').model: 'opt' is not one of the models"),
        (["workers"], [], "workers: none given, expected at least one"),
        (["workers", 1, "memory_bytes"], -5, "workers[1] ('w1').memory_bytes: -5 given, expected a whole number"),
        (["workers", 1, "memory_bytes"], ..., "workers[1] ('w1').memory_bytes: missing, expected a whole number"),
        (
            ["workers", 1, "queued_seconds"],
            -0.1,
            "workers[1] ('w1').queued_seconds: -0.1 given, expected a number from",
        ),
        (
            ["workers", 1, "queued_seconds"],
            "2",
            "workers[1] ('w1').queued_seconds: \"2\" given, expected a number from",
        ),
        (["workers", 1, "cached"], ["oop"], "workers[1] ('w1').cached: 'oop' is not one of the models"),
        (["workers", 0, "cached"], ["opt", "opt"], "workers[0] ('w0').cached: a model is given twice"),
        (
            ["workers", 1, "cached"],
            ["opt"],
            "workers[1] ('w1').cached: 6141853204 bytes given, but the worker's memory",
        ),
        (["workers", 1, "name"], "w0", "workers[1].name: 'w0' is also the name of workers[0]; give each its own"),
        (["workers", 1, "speed"], 2, "workers[1] ('w1').speed: no such field"),
        (["ingress"], "w9", "ingress: 'w9' is not one of the workers; name one of them, such as 'w0', 'w1'"),
        (["ingress"], 0, "ingress: 0 given, expected the name of a worker, or null"),
        (["links"], {"network_bandwidth": 0}, "links.network_bandwidth: 0 given, expected a number > 0"),
        (["seed"], -1, "seed: -1 given, expected a whole number"),
        (["seed"], 2**63, "seed: 9223372036854775808 given, expected a whole number"),
        (["workflow"], ..., "workflow: missing, expected an object"),
    ],
)
def test_a_mistake_is_one_line(path: list[Any], value: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_placement(json.dumps(changed(path, value)), "p.json")
    assert str(caught.value).startswith(f"p.json: {message}")
    assert "\n" not in str(caught.value)


def test_a_model_larger_than_every_memory_is_refused_with_the_stage() -> None:
    document = changed(["workers", 0, "cached"], [])
    document["models"]["opt"]["bytes"] = 14336000001
    with pytest.raises(InputError) as caught:
        parse_placement(json.dumps(document), "p.json")
    assert str(caught.value) == (
        "p.json: stages[0] ('t0'): 'opt' with 14336000001 bytes fits in the memory of no worker that has a time for it"
        "; the largest memory is 14336000000 bytes; use a smaller model or a larger worker"
    )


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["workflow", "workers", "models", "stages", "name", "seconds"]), inner, max_size=4
            )
        ),
    )
)
def test_no_document_breaks_the_reader(document: Any) -> None:
    with pytest.raises(InputError):
        parse_placement(json.dumps(document), "noise")
