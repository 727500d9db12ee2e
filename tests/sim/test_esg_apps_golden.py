"""Scenario `esg-apps` against an independent simulation of it: the same requests, tasks, hit rates and costs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fairway.report.serverless_metrics import ServerlessSummary, summarize_serverless
from fairway.report.serverless_record import ServerlessRecord
from fairway.sim.scenarios.esg_apps import APPS, LOADS, SLOS, esg_apps, esg_arrivals
from fairway.sim.serverless import ServerlessOptions
from fairway.sim.serverless_workload import EsgApps, ServerlessRun

NAMES = {"aquatope": "aquatope:exact"}


def record(
    scheduler: str,
    setting: str,
    *,
    noise: float = 0.0,
    overhead: float = 0.0,
    apps: str = "chains",
    seconds: float = 60.0,
) -> ServerlessRecord:
    slo, load = setting.split("-")
    options = ServerlessOptions(10.0, seconds, seed=1)
    return ServerlessRun(EsgApps(load, slo, apps, noise, overhead), scheduler, options)()


def numbers(scheduler: str, setting: str, **given: Any) -> ServerlessSummary:
    return summarize_serverless(record(scheduler, setting, **given))


@pytest.fixture(scope="module")
def published(shared_data: Path) -> dict[str, Any]:
    return json.loads((shared_data / "esg-golden" / "golden_tasks.json").read_text())["runs"]


@pytest.fixture(scope="module")
def pinned(shared_data: Path) -> dict[str, Any]:
    return json.loads((shared_data / "esg-golden" / "esg_scenario.json").read_text())


def test_the_scenario_is_the_pinned_one(pinned: dict[str, Any]) -> None:
    scenario = esg_apps(apps="dag")
    functions = pinned["functions"]
    assert [each.name for each in scenario.functions] == list(functions)
    assert [1e3 * each.cold_seconds for each in scenario.functions] == pytest.approx(
        [each["cold_ms"] for each in functions.values()]
    )
    for served, described in zip(scenario.applications, pinned["apps"], strict=True):
        application = served.application
        assert application.name == described["name"]
        assert [scenario.functions[number].name for number in served.functions] == described["nodes"]
        stages = [stage.name for stage in application.workflow.stages]
        edges = [[stages.index(source), stages.index(target)] for source, target in application.workflow.edges]
        assert edges == described["edges"]
        for profile, size, function in zip(
            application.profiles, application.workflow.input_bytes, described["nodes"], strict=True
        ):
            assert profile.seconds_of(1, 1, 1) == pytest.approx(functions[function]["T"] / 1e3)
            assert size == pytest.approx(1e6 * functions[function]["input_mb"])
            assert len(profile) == 210
    assert {name: [1e3 * gap for gap in gaps] for name, gaps in LOADS.items()} == pinned["gap_ms"]
    assert dict(SLOS) == pinned["slo_factor"]
    assert {name: list(ids) for name, ids in APPS.items()} == pinned["app_sets"]


def test_the_requests_are_the_published_ones() -> None:
    requests = esg_arrivals("normal", "chains", 360.0, 1)
    assert len(requests) == 13436
    assert (1e3 * requests.time[:4]).tolist() == pytest.approx([26.960774, 48.921345, 81.822977, 107.580217], abs=1e-6)
    assert requests.application[:4].tolist() == [3, 3, 0, 1]
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
def test_the_first_tasks_and_the_totals_are_the_published_ones(published: dict[str, Any], name: str) -> None:
    scheduler, setting = name.split()
    run, expected = record(NAMES.get(scheduler, scheduler), setting), published[name]
    tasks = run.tasks
    columns = (
        tasks.application,
        tasks.stage,
        tasks.oldest,
        tasks.jobs,
        tasks.batch,
        tasks.cpu,
        tasks.gpu,
        tasks.invoker,
    )
    for number, row in enumerate(expected["first_tasks"]):
        assert [int(column[number]) for column in columns] == row[1:9]
        assert [1e3 * tasks.start[number], 1e3 * tasks.end[number]] == pytest.approx([row[0], row[9]], abs=1e-3)
    totals = summarize_serverless(run)
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
def test_other_published_totals_without_noise(scheduler: str, setting: str, hit: float, cost: float) -> None:
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
        record(name, "moderate-heavy", noise=0.08, overhead=0.001, apps="dag", seconds=1.0).tasks
        for name in ("esg", "esg:search=layered", "esg:search=a-star")
    ]
    for column in ("start", "end", "batch", "cpu", "gpu", "invoker"):
        first, second, third = (getattr(tasks, column).tolist() for tasks in runs)
        assert first == second == third
    assert len(runs[0]) > 1000
