"""Scenario files: what they may say, and one line for whatever is wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fairway.errors import InputError
from fairway.sim.scenario_file import parse_scenario
from fairway.sim.scenarios import SCENARIOS

GIVEN: dict[str, Any] = {
    "models": {"opt": {"bytes": 6000}, "nli": {"bytes": 2000}},
    "workflows": {
        "answer": {
            "stages": [{"name": "draft", "model": "opt", "seconds": {"t4": 0.5}}, {"name": "check", "seconds": 0.1}],
            "edges": [["draft", "check"]],
            "share": 2,
            "slo_seconds": 1.5,
        },
        "classify": {"stages": [{"name": "only", "model": "nli", "seconds": 0.2}]},
    },
    "workers": [
        {"name": "t4", "count": 3, "memory_bytes": 8000, "accelerator": "t4", "per_host": 2, "dollars_per_hour": 0.5},
        {"name": "big", "memory_bytes": 20000, "accelerator": "a100", "dollars_per_hour": 3},
    ],
    "links": {"network_bandwidth": 1e9},
    "power": {"idle_watts": 5, "busy_watts": 50, "copy_watts": 20},
    "eviction_copies": True,
}


def changed(path: str, value: Any) -> str:
    document = json.loads(json.dumps(GIVEN))
    *way, last = path.split(".")
    place = document
    for step in way:
        place = place[int(step)] if isinstance(place, list) else place[step]
    place[int(last) if isinstance(place, list) else last] = value
    return json.dumps(document)


def test_everything_that_a_file_may_say() -> None:
    scenario = parse_scenario(json.dumps(GIVEN), "s.yaml")
    assert [worker.name for worker in scenario.workers] == ["t4-0", "t4-1", "t4-2", "big"]
    assert [worker.host for worker in scenario.workers] == ["t4-host-0", "t4-host-0", "t4-host-1", None]
    assert scenario.shares == (2.0, 1.0)
    assert [scenario.slo_of(workflow) for workflow in scenario.workflows] == [1.5, 0.4]
    assert scenario.price() == pytest.approx(4.5)
    assert scenario.power.busy_watts == 50
    assert scenario.links.network_bandwidth == 1e9
    assert scenario.eviction_copies


def test_yaml_reads_as_well() -> None:
    text = "workflows: {a: {stages: [{name: s, seconds: 0.1}]}}\nworkers: [{name: w, count: 2, memory_bytes: 1e9}]\n"
    scenario = parse_scenario(text, "s.yaml")
    assert len(scenario.workers) == 2
    assert scenario.price() is None


STAGES = "workflows.answer.stages"


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (
            "workflows.answer.edges",
            [["draft", "check"], ["check", "draft"]],
            "'draft' -> 'check' -> 'draft' is a cycle",
        ),
        ("workflows.answer.edges.0", ["draft", "chek"], "there is no stage 'chek', did you mean 'check'?"),
        ("models.opt.bytes", 30000, f"{STAGES}[0] ('draft'): 'opt' with 30000 bytes fits in the memory of no worker"),
        (f"{STAGES}.0.seconds", {"v100": 1.0}, f"{STAGES}[0] ('draft'): has a time on 'v100', but on none of the"),
        ("models.nli.bytes", -5, "models.nli.bytes: -5 given, expected a whole number from 0"),
        (f"{STAGES}.0.output_bytes", -1, f"{STAGES}[0] ('draft').output_bytes: -1 given"),
        (f"{STAGES}.0.model", "bert", f"{STAGES}[0] ('draft').model: 'bert' is not one of the models"),
        ("workflows", {}, "workflows: none given"),
        ("workers", [], "workers: none given"),
        ("workers.0.count", 0, "workers[0] ('t4').count: 0 given, expected a whole number from 1"),
        ("workers.0.memory", 1, "workers[0] ('t4').memory: no such field, did you mean 'memory_bytes'?"),
        ("workflows.answer.share", 0, "workflows.answer.share: 0 given, expected a number > 0"),
        ("power", {"idle_watts": 1}, "power.busy_watts: missing"),
        ("links.network_bandwidth", 0, "links.network_bandwidth: 0 given"),
    ],
)
def test_whatever_is_wrong_is_one_line_with_the_place(path: str, value: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_scenario(changed(path, value), "s.json")
    assert str(caught.value).startswith("s.json: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_more_workers_repeat_those_that_are_given() -> None:
    scenario = parse_scenario(json.dumps(GIVEN), "s.json").with_workers(6)
    assert [worker.name for worker in scenario.workers] == ["t4-0", "t4-1", "t4-2", "big", "t4-0-2", "t4-1-2"]
    assert scenario.workers[4].host == "t4-host-0-2"
    assert len(scenario.with_workers(2).workers) == 2
    with pytest.raises(InputError, match="--workers: 0 given"):
        scenario.with_workers(0)


def test_the_built_in_scenario_has_the_lower_bounds_of_the_evaluation() -> None:
    edge = SCENARIOS["compass-edge"]()
    bounds = [workflow.critical_path().seconds for workflow in edge.workflows]
    assert bounds == pytest.approx([1.365, 0.587, 0.3592, 0.2826])
    models = {name: model for workflow in edge.workflows for name, model in workflow.models.items()}
    assert len(models) == 8
    assert sum(model.bytes for model in models.values()) == 20_760_000 * 1024
