"""Scenario `esg-apps` in the simulator: divided workers, bills, cold starts; and configurators on other machines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fairway.engine.serving.messages import HIT, MISS
from fairway.errors import FairwayError, InputError
from fairway.links import Transfers
from fairway.report.serving.metrics import summarize_serving
from fairway.report.serving.record import ServingRecord
from fairway.sim.failures import Failure
from fairway.sim.scenario import ColdStarts
from fairway.sim.scenarios.esg_apps import CPUS, SLICES, esg_apps, esg_arrivals
from fairway.sim.serving import ServingOptions, World
from fairway.sim.serving_workload import EsgApps, ServingRun, ServingWorkload

SCHEDULERS = ("esg", "esg:no-replan", "esg:fixed-quota", "front", "infless", "fast-gshare", "orion", "aquatope:exact")


def record(
    scheduler: str = "esg",
    setting: str = "moderate-normal",
    *,
    apps: str = "dag",
    warmup: float = 1.0,
    seconds: float = 4.0,
    cold: ColdStarts | None = None,
    most: int | None = None,
    seed: int = 1,
    **options: Any,
) -> ServingRecord:
    slo, load = setting.split("-")
    end = warmup + seconds
    chosen = {"window": (warmup, end), "noise": 0.08, "seed": seed, "keep_runs": True, **options}
    workload = EsgApps(load, slo, apps, seconds=end, cold=cold, most_containers=most)
    return ServingRun(workload, scheduler, ServingOptions(**chosen))()


def check(run: ServingRecord) -> None:
    """Every request ends once, after a task for each of its stages; nothing is overbooked; bills add up."""
    runs, requests = run.runs, run.requests
    stages = np.array([len(facts.stages) for facts in run.workflows])
    assert np.isfinite(requests.finish).all()
    assert len(runs) == int(stages[requests.workflow].sum())
    assert len({*zip(runs.request.tolist(), runs.stage.tolist(), strict=True)}) == len(runs)
    assert (runs.batch <= runs.planned).all()
    assert (requests.finish > requests.arrival).all()
    first = runs.member == 0
    holds_from, ends = runs.turn[first], runs.end[first]  # a run holds its share from its turn on
    moments = np.concatenate([ends, holds_from])
    order = np.lexsort((np.repeat([0, 1], int(first.sum())), moments))  # what ends makes room for what starts
    for capacity, held in ((CPUS, runs.cpu[first]), (SLICES, runs.gpu[first])):
        for worker in range(len(run.workers.names)):
            mine = np.where(runs.worker[first] == worker, held, 0)
            assert np.cumsum(np.concatenate([-mine, mine])[order]).max() <= capacity
    assert requests.cost is not None
    assert requests.cost.sum() == pytest.approx(runs.cost.sum())
    rates = runs.cpu * 0.034 + runs.gpu * 0.67
    assert runs.batch * runs.cost == pytest.approx(rates * (runs.end - runs.start - runs.overhead) / 3600)
    busy = ((runs.end - runs.start) * runs.gpu / SLICES)[first].sum()
    assert run.workers.busy_seconds.sum() == pytest.approx(busy)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_every_request_ends_once_and_nothing_is_overbooked(scheduler: str) -> None:
    check(record(scheduler))


@pytest.mark.parametrize("setting", ["strict-heavy", "relaxed-surge"])
def test_overload_is_survived(setting: str) -> None:
    check(record("front", setting))


def test_the_same_seed_gives_the_same_run() -> None:
    first, second, other = record(), record(), record(seed=2)
    assert first.runs.end.tolist() == second.runs.end.tolist()
    assert first.requests.finish.tolist() == second.requests.finish.tolist()
    assert first.requests.arrival[0] != other.requests.arrival[0]


def test_the_window_is_what_counts() -> None:
    run = record(apps="chains")
    numbers: Any = summarize_serving(run)
    counted = (run.requests.arrival >= 1.0) & (run.requests.arrival < 5.0)
    assert numbers["requests"] == counted.sum() < numbers["requests_arrived"] == len(run.requests)
    assert run.requests.cost is not None
    assert numbers["cost_dollars"] == pytest.approx(run.requests.cost[counted].sum())
    assert numbers["cost_per_1000_requests"] == pytest.approx(1e3 * run.requests.cost[counted].mean())
    assert sum(numbers["kinds"].values()) == numbers["tasks"]


# How long a run takes


def test_tasks_fetch_their_inputs_from_clients_their_own_worker_or_the_store() -> None:
    run = record(seconds=2.0)
    runs, links = run.runs, Transfers()
    workflows = esg_apps(apps="dag").workflows
    placed = dict(zip(zip(runs.request.tolist(), runs.stage.tolist(), strict=True), runs.worker.tolist(), strict=True))
    seen = set()
    longest: dict[tuple[float, int], float] = {}
    for number in range(len(runs)):
        workflow = workflows[int(run.requests.workflow[runs.request[number]])]
        stage, request, worker = int(runs.stage[number]), int(runs.request[number]), int(runs.worker[number])
        size, before = workflow.input_bytes[stage], workflow.predecessors[stage]
        near = bool(before) and all(placed[request, other] == worker for other in before)
        own = links.local_seconds(size) if near else links.between_hosts(size) if before else links.entry_seconds(size)
        assert runs.local[number] == near
        seen.add((bool(before), near))
        at = (float(runs.start[number]), worker)
        longest[at] = max(longest.get(at, 0.0), own)
    assert seen == {(False, False), (True, False), (True, True)}
    alone = runs.batch == 1
    for number in np.flatnonzero(alone).tolist():
        at = (float(runs.start[number]), int(runs.worker[number]))
        assert runs.fetch[number] <= longest[at] + 1e-12
    assert links.entry_seconds(2e6) == pytest.approx(0.005 + 2e6 / 1.25e9)
    assert links.local_seconds(2e6) == pytest.approx(2e6 / 2e9)
    assert links.between_hosts(2e6) == pytest.approx(2 * (0.005 + 2e6 / 1.25e9))


def test_overhead_can_be_what_decisions_really_took() -> None:
    run = record(measured_overhead=True)
    check(run)
    assert len(set(run.runs.overhead.tolist())) > 100
    assert 0 < float(np.median(run.runs.overhead)) < 0.01
    assert set(record().runs.overhead.tolist()) == {0.001}
    with pytest.raises(InputError, match="'measured' is for schedulers that choose configurations"):
        record("compass", measured_overhead=True)


def test_measured_overhead_is_that_of_the_batch_however_late_it_runs() -> None:
    """A batch that holds its share while its model is loaded runs long after the engine has decided."""
    run = record(
        "esg",
        "relaxed-light",
        apps="chains",
        warmup=0.0,
        seconds=1.0,
        cold=ColdStarts(held=True),
        measured_overhead=True,
    )
    check(run)
    assert (run.runs.start - run.runs.turn).max() > 3.0
    assert len(set(run.runs.overhead.tolist())) > 20


# Cold starts


@pytest.mark.parametrize("scheduler", ["esg", "front", "infless", "fast-gshare", "orion", "aquatope:exact"])
@pytest.mark.parametrize(("cold", "most"), [(ColdStarts(), None), (ColdStarts(1), 8), (ColdStarts(prewarms=False), 2)])
def test_cold_starts_never_lock_up(scheduler: str, cold: ColdStarts, most: int | None) -> None:
    run = record(scheduler, "moderate-light", apps="chains", warmup=0.0, seconds=1.5, cold=cold, most=most)
    check(run)
    assert len(run.copies) > 0
    assert (run.runs.found == HIT).all(), "jobs wait for copies in their queue"


@pytest.mark.parametrize(("scheduler", "most"), [("front", 3), ("esg+compass", 2), ("infless+hash", 3), ("compass", 3)])
def test_memory_for_few_copies_is_never_overbooked(scheduler: str, most: int) -> None:
    run = record(scheduler, "relaxed-light", apps="chains", seconds=5.0, cold=ColdStarts(1), most=most)
    check(run)
    copies = run.copies
    assert copies.evicted.any()
    for worker in range(len(run.workers.names)):
        mine = copies.worker == worker
        change = np.where(copies.evicted[mine], -1, 1)
        held = most + np.cumsum(change[np.lexsort((change, copies.start[mine]))])  # it is full at the start
        assert not mine.any() or (held.max() <= most and held.min() >= 0)


def test_a_model_that_no_worker_has_room_for_is_refused() -> None:
    with pytest.raises(InputError, match="fits in the memory of no worker"):
        record(cold=ColdStarts(), most=0)


@pytest.mark.parametrize(
    ("scheduler", "setting"),
    [("esg:margin=0.1", "moderate-normal"), ("esg", "relaxed-heavy"), ("front", "strict-light")],
)
def test_after_the_first_minute_cold_starts_no_longer_matter(scheduler: str, setting: str) -> None:
    warm, cold = (
        summarize_serving(record(scheduler, setting, apps="chains", warmup=60.0, seconds=20.0, cold=rule))
        for rule in (None, ColdStarts(2, keep_alive_seconds=600.0))
    )
    assert cold["slo_hit_rate"] == pytest.approx(warm["slo_hit_rate"], abs=0.02)
    assert cold["cold_starts"] == 0


def test_batches_that_hold_their_share_while_their_model_is_loaded_block_the_others() -> None:
    rules = (ColdStarts(2, held=True), ColdStarts(2))
    held, waiting = (
        record("esg", "relaxed-heavy", apps="chains", warmup=20.0, seconds=5.0, cold=rule) for rule in rules
    )
    assert (summarize_serving(held)["slo_hit_rate"] or 0) < 0.2
    assert (summarize_serving(waiting)["slo_hit_rate"] or 0) > 0.9
    cold = held.runs.found == MISS
    assert cold.any()
    assert (held.runs.start > held.runs.turn)[cold].all()
    assert not (waiting.runs.found == MISS).any()


def test_idle_copies_go_after_their_time() -> None:
    rule = ColdStarts(1, keep_alive_seconds=0.5)
    run = record("esg", "relaxed-light", seconds=8.0, cold=rule)
    check(run)
    gone = run.copies.evicted
    assert gone.sum() > 100
    untouched = np.sort(run.copies.start[gone])[:10]
    assert untouched == pytest.approx(0.5), "those of workers that nothing came to go, too"


# Placers on divided workers


@pytest.mark.parametrize("scheduler", ["compass", "jit", "heft", "hash"])
def test_placers_run_on_divided_workers_at_a_size_that_is_fixed_beforehand(scheduler: str) -> None:
    run = record(scheduler, "strict-light")
    check(run)
    assert set(run.runs.batch.tolist()) == {1}
    size = esg_apps("strict", "dag").fixed_size
    assert size is not None
    assert {*zip(run.runs.cpu.tolist(), run.runs.gpu.tolist(), strict=True)} == {(size.cpu, size.gpu)}
    numbers = summarize_serving(run)
    assert numbers["cost_per_1000_requests"] is not None
    assert numbers["cost_per_1000_requests"] > 0


@pytest.mark.parametrize("scheduler", ["compass", "hash"])
def test_placers_start_cold_as_well(scheduler: str) -> None:
    run = record(scheduler, "relaxed-light", apps="chains", seconds=2.0, cold=ColdStarts())
    check(run)
    cold = run.runs.found == MISS
    assert cold.any()
    assert (run.runs.start - run.runs.turn)[cold].min() > 3.0


def test_the_fixed_size_is_the_cheapest_that_is_in_time() -> None:
    relaxed, strict = (esg_apps(slo).fixed_size for slo in ("relaxed", "strict"))
    assert relaxed is not None
    assert strict is not None
    assert relaxed[1:] == (2, 1)
    assert strict.gpu > 1


def test_configurators_run_on_workers_with_models() -> None:
    workload = ServingWorkload("compass-edge", "clients", None, 120, 2.0)
    numbers = summarize_serving(ServingRun(workload, "esg", ServingOptions(seed=42))())
    assert numbers["completed"] == 120
    assert numbers["slowdown"]["mean"] >= 1.0  # type: ignore[operator]
    assert 0 < numbers["cold_starts"] < 120
    assert numbers["slo_hit_rate"] > 0.5  # type: ignore[operator]


# What goes wrong


@pytest.mark.parametrize("scheduler", ["esg", "infless+hash", "compass"])
def test_a_lost_worker_costs_time_and_its_part_of_what_it_ran(scheduler: str) -> None:
    failures = (Failure(1, 1.0, 3.0), Failure(2, 1.5))
    run = record(scheduler, "moderate-heavy", failures=failures, warmup=0.0, seconds=3.0)
    assert np.isfinite(run.requests.finish).all()
    runs = run.runs
    gone = (runs.worker == 2) & (runs.end > 1.5)
    assert not gone.any()
    assert not ((runs.worker == 1) & (runs.start < 3.0) & (runs.end > 1.0)).any()
    assert ((runs.worker == 1) & (runs.start >= 3.0)).any()
    first = runs.member == 0
    busy = ((runs.end - runs.start) * runs.gpu / SLICES)[first]
    for worker in (1, 2):
        mine = runs.worker[first] == worker
        assert run.workers.busy_seconds[worker] == pytest.approx(busy[mine].sum())
        assert run.workers.busy_seconds[worker] > 0


def test_a_lock_up_would_be_told() -> None:
    world = World(esg_apps(), esg_arrivals("light", "chains", 0.2, 1), "esg", ServingOptions())

    class Deaf:
        due = float("inf")
        desk = None

        def handle(self, *_: object) -> list[Any]:
            return []

    world.engines[-1] = Deaf()  # type: ignore[call-overload]
    with pytest.raises(FairwayError, match="lock-up"):
        world.run()
