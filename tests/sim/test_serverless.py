"""The serverless simulator: what holds in every run, with and without cold starts, and placers on invokers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fairway.engine.containers import ContainerRule
from fairway.errors import FairwayError, InputError
from fairway.report.serverless_metrics import summarize_serverless
from fairway.report.serverless_record import ServerlessRecord
from fairway.report.serving_metrics import summarize_serving
from fairway.sim.placed_on_invokers import parts_of_invoker, uniform_configuration
from fairway.sim.scenarios.esg_apps import esg_apps
from fairway.sim.serverless import ServerlessOptions
from fairway.sim.serverless_workload import EsgApps, ServerlessRun
from fairway.sim.serving import ServingOptions
from fairway.sim.serving_workload import ServingRun, ServingWorkload

SCHEDULERS = ("esg", "esg:no-replan", "esg:fixed-quota", "front", "infless", "fast-gshare", "orion", "aquatope:exact")


def record(
    scheduler: str = "esg",
    setting: str = "moderate-normal",
    *,
    apps: str = "dag",
    warmup: float = 1.0,
    seconds: float = 4.0,
    containers: ContainerRule | None = None,
    measured: bool = False,
    seed: int = 1,
) -> ServerlessRecord:
    slo, load = setting.split("-")
    options = ServerlessOptions(warmup, seconds, measured_overhead=measured, containers=containers, seed=seed)
    return ServerlessRun(EsgApps(load, slo, apps), scheduler, options)()


def check(run: ServerlessRecord) -> None:
    """Every request ends once, after a task for each of its stages; nothing is overbooked; costs add up."""
    tasks, requests = run.tasks, run.requests
    stages = np.array([len(facts.stages) for facts in run.applications])
    ended = np.isfinite(requests.finish)
    assert ended.all()
    assert int(tasks.jobs.sum()) == int(stages[requests.application].sum())
    assert (tasks.jobs <= tasks.batch).all()
    assert (requests.finish > requests.arrival).all()
    moments = np.concatenate([tasks.end, tasks.start])
    order = np.lexsort((np.repeat([0, 1], len(tasks)), moments))  # what ends makes room for what starts
    for capacity, held in ((run.cpu, tasks.cpu), (run.gpu, tasks.gpu)):
        for invoker in range(run.invokers):
            mine = np.where(tasks.invoker == invoker, held, 0)
            assert np.cumsum(np.concatenate([-mine, mine])[order]).max() <= capacity
    assert requests.cost.sum() == pytest.approx(tasks.cost.sum())
    rates = tasks.cpu * 0.034 + tasks.gpu * 0.67
    assert tasks.cost == pytest.approx(rates * (tasks.fetch + tasks.run) / 3600)
    assert tasks.end == pytest.approx(tasks.start + tasks.overhead + tasks.cold + tasks.fetch + tasks.run)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_every_request_ends_once_and_nothing_is_overbooked(scheduler: str) -> None:
    check(record(scheduler))


@pytest.mark.parametrize("setting", ["strict-heavy", "relaxed-surge"])
def test_overload_is_survived(setting: str) -> None:
    check(record("front", setting))


def test_the_same_seed_gives_the_same_run() -> None:
    first, second, other = record(), record(), record(seed=2)
    assert first.tasks.end.tolist() == second.tasks.end.tolist()
    assert first.requests.finish.tolist() == second.requests.finish.tolist()
    assert first.requests.arrival[0] != other.requests.arrival[0]


def test_the_window_is_what_counts() -> None:
    run = record(apps="chains")
    numbers = summarize_serverless(run)
    counted = (run.requests.arrival >= 1.0) & (run.requests.arrival < 5.0)
    assert numbers["requests"] == counted.sum() < numbers["requests_arrived"] == len(run.requests)
    assert numbers["cost_dollars"] == pytest.approx(run.requests.cost[counted].sum())
    assert numbers["cost_per_1000_requests"] == pytest.approx(1e3 * run.requests.cost[counted].mean())
    assert numbers["energy_joules"] is None
    assert sum(numbers["kinds"].values()) == numbers["tasks"]


def test_overhead_can_be_what_decisions_really_took() -> None:
    run = record(measured=True)
    assert len(set(run.tasks.overhead.tolist())) > 100
    assert 0 < float(np.median(run.tasks.overhead)) < 0.01
    assert set(record().tasks.overhead.tolist()) == {0.001}


@pytest.mark.parametrize("scheduler", ["esg", "front", "infless", "fast-gshare", "orion", "aquatope:exact"])
@pytest.mark.parametrize("rule", [ContainerRule(0), ContainerRule(1, 8), ContainerRule(0, 2, prewarms=False)])
def test_cold_starts_never_lock_up(scheduler: str, rule: ContainerRule) -> None:
    run = record(scheduler, "moderate-light", apps="chains", warmup=0.0, seconds=1.5, containers=rule)
    check(run)
    assert len(run.containers) > 0
    assert not run.tasks.cold.any()


def test_memory_for_few_containers_is_never_overbooked() -> None:
    run = record("front", "relaxed-light", apps="chains", seconds=5.0, containers=ContainerRule(1, 3))
    check(run)
    # As many start at a time as there is memory for.
    for invoker in range(run.invokers):
        mine = run.containers.invoker == invoker
        moments = np.concatenate([run.containers.ready[mine], run.containers.start[mine]])
        change = np.repeat([-1, 1], int(mine.sum()))
        assert not mine.any() or np.cumsum(change[np.lexsort((change, moments))]).max() <= 3


def test_a_container_that_no_invoker_has_room_for_is_refused() -> None:
    with pytest.raises(InputError, match="no room"):
        record(containers=ContainerRule(0, 0))


@pytest.mark.parametrize(
    ("scheduler", "setting"),
    [("esg:margin=0.1", "moderate-normal"), ("esg", "relaxed-heavy"), ("front", "strict-light")],
)
def test_after_the_first_minute_cold_starts_no_longer_matter(scheduler: str, setting: str) -> None:
    warm, cold = (
        summarize_serverless(record(scheduler, setting, apps="chains", warmup=60.0, seconds=20.0, containers=rule))
        for rule in (None, ContainerRule(2))
    )
    assert cold["slo_hit_rate"] == pytest.approx(warm["slo_hit_rate"], abs=0.02)
    assert cold["cold_starts"] == 0


def test_tasks_that_hold_their_slices_while_they_start_block_the_others() -> None:
    held, waiting = (
        summarize_serverless(record("esg", "relaxed-heavy", apps="chains", warmup=20.0, seconds=5.0, containers=rule))
        for rule in (ContainerRule(2, held=True), ContainerRule(2))
    )
    assert (held["slo_hit_rate"] or 0) < 0.2
    assert (waiting["slo_hit_rate"] or 0) > 0.9
    assert held["cold_start_dollars"]


def test_idle_containers_go_after_their_time() -> None:
    run = record("esg", "relaxed-light", seconds=8.0, containers=ContainerRule(1, keep_alive_seconds=0.5))
    check(run)
    assert len(run.containers) > 100


@pytest.mark.parametrize("scheduler", ["compass", "hash"])
def test_placers_run_on_invokers_that_are_cut_into_equal_parts(scheduler: str) -> None:
    run = record(scheduler, "strict-light")
    assert np.isfinite(run.requests.finish).all()
    assert set(run.tasks.jobs.tolist()) == {1}
    scenario = esg_apps("strict", "dag")
    size = uniform_configuration(scenario)
    assert set(run.tasks.gpu.tolist()) == {size.gpu}
    assert parts_of_invoker(scenario, size) * size.gpu <= 7
    numbers: Any = summarize_serverless(run)
    assert numbers["cost_per_1000_requests"] > 0
    with pytest.raises(InputError, match="warm functions"):
        record(scheduler, containers=ContainerRule(1))


def test_the_size_of_the_parts_is_the_cheapest_that_is_in_time() -> None:
    assert uniform_configuration(esg_apps("relaxed"))[1:] == (2, 1)
    strict = uniform_configuration(esg_apps("strict"))
    assert strict.gpu > 1


def test_configurators_run_on_workers_with_models() -> None:
    workload = ServingWorkload("compass-edge", "clients", None, 120, 2.0)
    numbers = summarize_serving(ServingRun(workload, "esg", ServingOptions(seed=42))())
    assert numbers["completed"] == 120
    assert numbers["slowdown"]["mean"] >= 1.0  # type: ignore[operator]
    assert 0 < numbers["cold_starts"] < 120
    assert numbers["slo_hit_rate"] > 0.5  # type: ignore[operator]


def test_a_lock_up_would_be_told() -> None:
    from fairway.sim.scenarios.esg_apps import esg_arrivals  # noqa: PLC0415
    from fairway.sim.serverless import ServerlessWorld  # noqa: PLC0415

    world = ServerlessWorld(esg_apps(), esg_arrivals("light", "chains", 0.2, 1), "esg", ServerlessOptions(0.0, 0.2))
    world.engine.handle = lambda *_: []  # type: ignore[method-assign]
    with pytest.raises(FairwayError, match="lock-up"):
        world.run()
