"""The scenarios that are built in: they run, name their sources, and agree with what the systems they are of say."""

from __future__ import annotations

from importlib import resources

import numpy as np
import pytest

from fairway.cli.completion import scenarios
from fairway.report.serving.metrics import summarize_serving
from fairway.sim.arrivals import Arrivals
from fairway.sim.scenarios import FILES, SCENARIOS
from fairway.sim.serving import ServingOptions, simulate_serving
from fairway.sim.serving_workload import SCENARIO_NAMES, ServingRun, ServingWorkload
from tests.figures import vortex_run, vortex_single


@pytest.mark.parametrize("name", FILES)
def test_a_scenario_cites_its_source_runs_and_is_completed(name: str) -> None:
    text = resources.files("fairway.sim.scenarios").joinpath("files", f"{name}.yaml").read_text(encoding="utf-8")
    assert "github.com/" in text.partition("models:")[0]
    assert name in SCENARIO_NAMES
    assert name in scenarios(name.partition("-")[0])
    run = ServingRun(ServingWorkload(name, requests=40, rate=4.0), "compass", ServingOptions(discard=0.25))
    summary = summarize_serving(run())
    assert summary["completed"] == 40
    assert summary["slo_hit_rate"] > 0.9, "at a few requests per second, with models loaded, nearly all are in time"


@pytest.mark.parametrize("name", FILES)
def test_a_batch_takes_no_longer_than_a_larger_one(name: str) -> None:
    for workflow in SCENARIOS[name]().workflows:
        for stage in workflow.stages:
            for times in stage.seconds.values():
                assert list(times.values()) == sorted(times.values()), (workflow.name, stage.name)


def test_the_critical_path_of_loki_traffic_is_116_ms() -> None:
    scenario = SCENARIOS["loki-traffic"]()
    assert scenario.workflows[0].critical_path().seconds == pytest.approx(0.116, abs=5e-4)
    assert scenario.slo_of(scenario.workflows[0]) == 0.25


def test_single_requests_take_what_the_tables_of_vortex_say() -> None:
    scenario = SCENARIOS["vortex-mix"]()
    bounds = {workflow.name: workflow.critical_path().seconds for workflow in scenario.workflows}
    assert bounds == pytest.approx(vortex_single(), abs=1e-4)


@pytest.mark.parametrize(
    ("scenario", "name", "transfers"),
    # A request of tts moves 1 to 30 MB between its stages. VortexScheduler sends them over the network wherever the
    # next stage is, ours only where that is on another worker.
    [
        ("vortex-textvision", "textvision0-fcfs-r80", 0.001),
        ("vortex-textvision", "textvision0-nexus-r100", 0.001),
        ("vortex-tts", "tts-fcfs-r45", 0.015),
    ],
)
def test_a_request_that_meets_no_other_takes_what_it_takes_in_vortex(
    scenario: str, name: str, transfers: float
) -> None:
    run = vortex_run(name)
    alone = Arrivals(np.array([0.0, 1000.0]), np.zeros(2, np.int64), np.zeros(2), np.ones(2))
    record = simulate_serving(SCENARIOS[scenario](), alone, "compass", ServingOptions(discard=0.0, keep_runs=True))
    bound = SCENARIOS[scenario]().workflows[0].critical_path().seconds
    latency = float(record.requests.finish[1] - record.requests.arrival[1])  # the first had to load its models
    assert bound <= latency <= run.least_latency + 1e-4
    assert latency == pytest.approx(run.least_latency, abs=transfers)
