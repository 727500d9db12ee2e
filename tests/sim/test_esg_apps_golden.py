"""Scenario `esg-apps` against a reference simulation written separately: the same requests, tasks, hits and costs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fairway.report.serving.metrics import ServingSummary, summarize_serving
from fairway.report.serving.record import ServingRecord
from fairway.sim.scenario import ColdStarts
from fairway.sim.scenarios.esg_apps import APPS, LOADS, SLOS, esg_apps, esg_arrivals
from fairway.sim.serving import ServingOptions
from fairway.sim.serving_workload import EsgApps, ServingRun
from tests.figures import esg_runs, esg_scenario

NAMES = {"aquatope": "aquatope:exact"}
WARMUP_SECONDS, DRAIN_SECONDS = 10.0, 120.0


def record(
    scheduler: str,
    setting: str,
    *,
    noise: float = 0.0,
    overhead: float = 0.0,
    apps: str = "chains",
    seconds: float = 60.0,
) -> ServingRecord:
    slo, load = setting.split("-")
    end = WARMUP_SECONDS + seconds
    options = ServingOptions(
        seed=1, noise=noise, window=(WARMUP_SECONDS, end), drain_seconds=DRAIN_SECONDS, keep_runs=True
    )
    return ServingRun(EsgApps(load, slo, apps, overhead, end), scheduler, options)()


def numbers(scheduler: str, setting: str, **given: Any) -> ServingSummary:
    return summarize_serving(record(scheduler, setting, **given))


@pytest.fixture(scope="module")
def reference() -> dict[str, Any]:
    return esg_runs()


@pytest.fixture(scope="module")
def pinned() -> dict[str, Any]:
    return esg_scenario()


def test_the_scenario_is_the_pinned_one(pinned: dict[str, Any]) -> None:
    scenario = esg_apps(apps="dag", cold=ColdStarts())
    functions = pinned["functions"]
    fleet = scenario.fleet()
    assert sorted(model.name for model in fleet.models) == sorted(functions)
    assert {model.name: 1e3 * cold for model, cold in zip(fleet.models, fleet.fetch_seconds, strict=True)} == {
        name: pytest.approx(each["cold_ms"]) for name, each in functions.items()
    }
    assert [(worker.cpus, worker.slices) for worker in scenario.workers] == [(16, 7)] * 16
    for application, described in zip(scenario.applications(), pinned["apps"], strict=True):
        workflow = application.workflow
        assert workflow.name == described["name"]
        assert [stage.models for stage in workflow.stages] == [(name,) for name in described["nodes"]]
        stages = [stage.name for stage in workflow.stages]
        assert [[stages.index(source), stages.index(target)] for source, target in workflow.edges] == described["edges"]
        sizes = zip(application.profiles, workflow.input_bytes, described["nodes"], strict=True)
        for profile, size, function in sizes:
            assert profile.seconds_of(1, 1, 1) == pytest.approx(functions[function]["T"] / 1e3)
            assert size == pytest.approx(1e6 * functions[function]["input_mb"])
            assert len(profile) == 210
    assert {name: [1e3 * gap for gap in gaps] for name, gaps in LOADS.items()} == pinned["gap_ms"]
    assert dict(SLOS) == pinned["slo_factor"]
    assert {name: list(ids) for name, ids in APPS.items()} == pinned["app_sets"]


def test_the_requests_are_those_of_the_reference_simulation() -> None:
    requests = esg_arrivals("normal", "chains", 360.0, 1)
    assert len(requests) == 13436
    assert (1e3 * requests.time[:4]).tolist() == pytest.approx([26.960774, 48.921345, 81.822977, 107.580217], abs=1e-6)
    assert requests.workflow[:4].tolist() == [3, 3, 0, 1]
    assert requests.draws is not None
    assert requests.draws[0][:3].tolist() == pytest.approx([-0.666446, -0.464106, -0.013179], abs=1e-6)


@pytest.mark.parametrize(
    "name",
    [
        "esg strict-light",
        "esg relaxed-heavy",
        "orion moderate-normal",
        "infless strict-light",
        "fast-gshare moderate-normal",
        "aquatope moderate-normal",
    ],
)
def test_the_first_tasks_and_the_totals_are_those_of_the_reference(reference: dict[str, Any], name: str) -> None:
    scheduler, setting = name.split()
    run, expected = record(NAMES.get(scheduler, scheduler), setting), reference[name]
    runs = run.runs
    first = runs.member == 0  # a row of the reference is a run, with the oldest of its requests
    workflow = run.requests.workflow[runs.request]
    columns = (workflow, runs.stage, runs.request, runs.batch, runs.planned, runs.cpu, runs.gpu, runs.worker)
    found = np.array([column[first] for column in columns]).T.tolist()
    times = 1e3 * np.array([runs.start[first], runs.end[first]]).T
    expected_tasks = expected["first_tasks"]
    assert len(expected_tasks) == 200
    assert found[: len(expected_tasks)] == [row[1:9] for row in expected_tasks]
    for number, row in enumerate(expected_tasks):
        assert times[number].tolist() == pytest.approx([row[0], row[9]], abs=1e-3)
    totals = summarize_serving(run)
    assert totals["tasks"] == expected["tasks"]
    assert totals["slo_hit_rate"] == pytest.approx(expected["hit"], abs=0.002)
    assert totals["cost_per_1000_requests"] == pytest.approx(expected["cost_per_1k"], rel=0.005)
    assert totals["utilization"] == pytest.approx(expected["ugpu"], rel=1e-6)
    assert 1e3 * (totals["latency_seconds"]["p95"] or 0) == pytest.approx(expected["p95"], abs=1e-3)


@pytest.mark.parametrize(
    ("scheduler", "setting", "hit", "cost"),
    [
        ("esg:same", "strict-light", 0.9499, 0.3761),
        ("esg:no-batching", "strict-light", 0.9499, 0.3761),
        ("esg:no-gpu-sharing", "strict-light", 0.7771, 1.0997),
        ("infless:efficiency", "strict-light", 0.9391, 0.5318),
        ("orion", "strict-light", 0.7950, 0.5098),
        ("aquatope:exact", "strict-light", 0.9490, 0.3761),
        ("front", "strict-light", 0.9499, 0.3761),
        ("infless", "moderate-normal", 1.0000, 0.4723),
        ("fast-gshare", "relaxed-heavy", 0.2362, 0.2388),
        ("orion", "relaxed-heavy", 1.0000, 0.2492),
    ],
)
def test_other_totals_of_the_reference_without_noise(scheduler: str, setting: str, hit: float, cost: float) -> None:
    totals = numbers(scheduler, setting)
    assert totals["slo_hit_rate"] == pytest.approx(hit, abs=0.002)
    assert totals["cost_per_1000_requests"] == pytest.approx(cost, rel=0.005)


@pytest.mark.parametrize(("scheduler", "hit"), [("esg", 0.65), ("esg:margin=0.1", 0.96), ("esg:noise-margin", 0.97)])
def test_a_margin_is_what_meets_deadlines_under_noise(scheduler: str, hit: float) -> None:
    totals = numbers(scheduler, "strict-light", noise=0.08, overhead=0.001)
    assert totals["slo_hit_rate"] == pytest.approx(hit, abs=0.03)
    assert totals["noise"] == pytest.approx(0.08, rel=0.1)


def test_whoever_searches_the_same_way_decides_the_same() -> None:
    runs = [
        record(name, "moderate-heavy", noise=0.08, overhead=0.001, apps="dag", seconds=1.0).runs
        for name in ("esg", "esg:search=layered", "esg:search=a-star")
    ]
    for column in ("start", "end", "request", "batch", "planned", "cpu", "gpu", "worker"):
        first, second, third = (getattr(run, column).tolist() for run in runs)
        assert first == second == third
    assert len(runs[0]) > 1000
