"""The serving simulator: what must hold in any run, and the acceptance tests of Compass's specification."""

from __future__ import annotations

import gc
import weakref
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.engine.serving.engine import ServingEngine
from fairway.engine.serving.messages import Command, Event, Reply
from fairway.engine.serving.tasks_here import KEPT_REQUESTS
from fairway.errors import FairwayError, InputError
from fairway.report.serving.metrics import summarize_serving
from fairway.report.serving.record import RequestOutcome, ServingRecord
from fairway.sim.arrivals import Arrivals, from_clients, poisson
from fairway.sim.failures import Failure
from fairway.sim.scenario import Scenario
from fairway.sim.scenarios import SCENARIOS
from fairway.sim.serving import ServingOptions, World, simulate_serving

EDGE = SCENARIOS["compass-edge"]()
PLACERS = ("compass", "compass:no-adjust", "compass:centralised", "compass:fifo-eviction", "jit", "heft", "hash")
SCHEDULERS = (*PLACERS, "fairway", "esg", "front+compass", "infless+hash", "orion+jit", "fast-gshare+heft")


def requests(*asked: tuple[float, int], ingress: float = 0.0) -> Arrivals:
    times, workflows = zip(*asked, strict=True)
    return Arrivals(np.array(times), np.array(workflows), np.full(len(asked), ingress), np.ones(len(asked)))


def run(scenario: Scenario, arrivals: Arrivals, scheduler: str = "compass", **options: Any) -> ServingRecord:
    return simulate_serving(scenario, arrivals, scheduler, ServingOptions(**{"discard": 0.0, **options}))


def mean(record: ServingRecord) -> float:
    value = summarize_serving(record)["slowdown"]["mean"]
    assert value is not None
    return value


class Validated(ServingEngine):
    """An engine that is validated after every event."""

    __slots__ = ()

    def handle(self, now: float, events: Sequence[Event]) -> list[Command]:
        commands = super().handle(now, events)
        self.validate()
        return commands


class Watched(World):
    """A world that looks after each step whether all is as it must be."""

    def __init__(self, *arguments: Any) -> None:
        self.replies: Counter[int] = Counter()
        super().__init__(*arguments)

    def engine(self, worker: int, epoch: int = 0) -> ServingEngine:
        engine = super().engine(worker, epoch)
        engine.__class__ = Validated
        return engine

    def do(self, worker: int, commands: list[Command]) -> None:
        for command in commands:
            if isinstance(command, Reply):
                self.replies[self._owner[command.key]] += 1
        super().do(worker, commands)

    def run(self) -> None:
        """Let everything happen that is to come, after the last reply too: as if one more request were open."""
        self._left += 1
        with pytest.raises(FairwayError, match=r"^1 requests wait at .* but nothing is to come: a lock-up"):
            super().run()
        self._left -= 1


def drained(world: Watched) -> None:
    """Nothing waits or runs anywhere, and no more outputs are kept than a worker keeps."""
    assert world._left == 0
    for engine in world.engines:
        if engine is not None:
            assert len(engine.queue) == 0
            assert engine.load.queued == 0.0
            assert engine.running is None
            assert not engine.beside
            assert all(task.ended is not None for key in engine.here.tasks for task in engine.here.of(key))
            assert len(engine.here.tasks) <= 2 * KEPT_REQUESTS
            assert not engine.ingress.open
            if engine.desk is not None:
                assert engine.desk.waiting == len(engine.desk.open) == len(engine.desk.batches) == 0


# Acceptance


def test_on_warm_idle_workers_chains_take_their_lower_bound_and_parallel_stages_overlap() -> None:
    answering = requests((0.0, 1), (5.0, 1))
    record = run(EDGE.with_workers(1), answering)
    assert record.requests.finish[1] - 5.0 == pytest.approx(0.587, abs=1e-4)
    translation = requests((0.0, 0), (20.0, 0))
    one = run(EDGE.with_workers(1), translation)
    assert one.requests.finish[1] - 20.0 == pytest.approx(2.584, abs=1e-3)
    apart = run(EDGE.with_workers(4), requests(*((20.0 * number, 0) for number in range(6))))
    assert apart.requests.finish[-1] - 100.0 == pytest.approx(1.365, abs=1e-3)


@pytest.mark.parametrize("rate", [3.0, 4.0])
def test_compass_is_faster_than_its_rivals_by_two_to_six_times(rate: float) -> None:
    arrivals = from_clients(600, rate, 4, 42)
    means = {
        name: np.mean(run(EDGE, arrivals, name).requests.finish - arrivals.time)
        for name in ("compass", "compass:as-published", "jit", "heft", "hash")
    }
    assert means["compass"] < means["compass:as-published"] < min(means["jit"], means["heft"], means["hash"])
    assert any(2 <= means[name] / means["compass:as-published"] <= 6 for name in ("jit", "heft", "hash"))


def test_older_news_of_loads_cost_more_under_contention_and_nothing_at_light_load() -> None:
    def at(workers: int, rate: float, age: float) -> float:
        options = {"load_staleness_seconds": age}
        return float(
            np.mean(
                [
                    mean(run(EDGE.with_workers(workers), from_clients(500, rate, 4, seed), seed=seed, **options))
                    for seed in (42, 43)
                ]
            )
        )

    contended = [at(60, 40.0, age) for age in (0.001, 0.05, 0.1, 0.25)]
    assert contended == sorted(contended)
    assert contended[-1] > 1.5 * contended[0]
    light = [at(5, 0.5, age) for age in (0.001, 0.1, 0.3)]
    assert max(light) < 1.08 * min(light)


@pytest.mark.parametrize(("workers", "rate"), [(5, 3.0), (100, 40.0)])
def test_planning_at_every_worker_is_as_good_as_in_one_place(workers: int, rate: float) -> None:
    own, one = (
        np.mean(
            [
                mean(run(EDGE.with_workers(workers), from_clients(500, rate, 4, seed), name, seed=seed))
                for seed in (42, 43)
            ]
        )
        for name in ("compass", "compass:centralised")
    )
    assert own == pytest.approx(one, rel=0.15)


# What holds in any run


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Scenario, Arrivals, str, ServingOptions]:
    workers = draw(st.integers(1, 6))
    memory = draw(st.sampled_from([6.0e9, 9.0e9, 14.3e9, 30.0e9]))
    scenario = EDGE.with_workers(workers)
    scenario = replace(
        scenario,
        workers=tuple(
            replace(worker, memory_bytes=memory, host=f"h{number // 2}" if draw(st.booleans()) else None)
            for number, worker in enumerate(scenario.workers)
        ),
    )
    seed = draw(st.integers(0, 1000))
    arrivals = poisson(draw(st.integers(1, 25)), draw(st.sampled_from([0.5, 3.0, 20.0])), np.ones(4), seed)
    options = ServingOptions(
        load_staleness_seconds=draw(st.sampled_from([0.0, 0.001, 0.1])),
        noise=draw(st.sampled_from([0.0, 0.3])),
        nic_queues=draw(st.booleans()),
        eviction_copies=draw(st.booleans()),
        keep_runs=True,
        discard=0.0,
        seed=seed,
    )
    return scenario, arrivals, draw(st.sampled_from(SCHEDULERS)), options


@given(worlds())
@settings(max_examples=80)
def test_every_task_runs_once_after_its_predecessors(world: tuple[Scenario, Arrivals, str, ServingOptions]) -> None:
    scenario, arrivals, scheduler, options = world
    watched = Watched(scenario, arrivals, scheduler, options)
    watched.run()
    drained(watched)
    assert watched.replies == Counter(range(len(arrivals)))
    record = simulate_serving(scenario, arrivals, scheduler, options)
    runs = record.runs
    names = list(zip(runs.request.tolist(), runs.stage.tolist(), strict=True))
    expected = {
        (request, stage)
        for request, workflow in enumerate(arrivals.workflow.tolist())
        for stage in range(len(scenario.workflows[workflow]))
    }
    assert sorted(names) == sorted(expected)
    ends = dict(zip(names, runs.end.tolist(), strict=True))
    for (request, stage), start in zip(names, runs.start.tolist(), strict=True):
        workflow = scenario.workflows[int(arrivals.workflow[request])]
        assert start >= arrivals.time[request]
        assert all(start >= ends[request, before] for before in workflow.predecessors[stage])
    assert (runs.queued <= runs.turn).all()
    assert (runs.turn <= runs.start).all()
    for worker in range(len(scenario.workers)):
        mine = np.argsort(runs.start[runs.worker == worker], kind="stable")
        start, end = runs.start[runs.worker == worker][mine], runs.end[runs.worker == worker][mine]
        assert (start[1:] >= end[:-1] - 1e-9).all(), "one task at a time"
    last = [max(end for (each, _), end in ends.items() if each == request) for request in range(len(arrivals))]
    heard = scenario.links.message_seconds if watched.engines[-1] is not None else 0.0  # by the engine that plans
    assert record.requests.finish.tolist() == pytest.approx(last, abs=1.01 * heard)


@given(worlds(), st.data())
@settings(max_examples=80)
def test_lost_workers_lose_no_request_and_nobody_is_answered_twice(
    world: tuple[Scenario, Arrivals, str, ServingOptions], data: st.DataObject
) -> None:
    scenario, arrivals, scheduler, options = world
    end = float(arrivals.time[-1]) + 10.0
    failures = []
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.floats(0.0, end))
        failures.append(
            Failure(data.draw(st.integers(0, len(scenario.workers) - 1)), at, at + data.draw(st.floats(0.1, 8.0)))
        )
    options = replace(options, failures=tuple(failures), detection_seconds=data.draw(st.sampled_from([0.0, 0.3])))
    watched = Watched(scenario, arrivals, scheduler, options)
    watched.run()
    outcome = np.array(watched.recorder.outcome)
    answered = np.flatnonzero(outcome == RequestOutcome.COMPLETED).tolist()
    assert watched.replies == Counter(answered)
    if not watched.centralised:  # where all workers are gone, clients wait; the one planner may refuse
        assert len(answered) == len(arrivals)
    assert RequestOutcome.UNFINISHED not in outcome.tolist()
    drained(watched)


def test_a_request_that_its_client_has_given_up_does_not_reach_the_successor_of_a_lost_worker() -> None:
    # Both workers are lost, and that noticed, as a request is on its way to one of them; it is asked for once more.
    arrivals = poisson(4, 3.0, np.ones(4), 279)
    lost_at = float(arrivals.time[1])
    failures = (
        Failure(0, lost_at, lost_at + 3.0),
        Failure(1, lost_at, lost_at + 0.1),
        Failure(0, lost_at, lost_at + 0.1),
    )
    record = run(EDGE.with_workers(2), arrivals, "hash", failures=failures, detection_seconds=0.0, seed=279)
    assert (record.requests.outcome == RequestOutcome.COMPLETED).all()


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_the_same_seed_gives_the_same_run(scheduler: str) -> None:
    arrivals = from_clients(60, 4.0, 4, 1)
    failures = (Failure(1, 3.0, 8.0), Failure(2, 6.0))
    first, second = (
        run(EDGE, arrivals, scheduler, noise=0.2, seed=5, keep_runs=True, failures=failures) for _ in range(2)
    )
    assert first.requests.finish.tolist() == second.requests.finish.tolist()
    assert first.runs.start.tolist() == second.runs.start.tolist()
    assert first.events == second.events


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_recovery_and_time_watching_change_nothing_while_all_is_as_expected(scheduler: str) -> None:
    arrivals = from_clients(150, 4.0, 4, 1)
    usual, without = (
        run(EDGE, arrivals, scheduler, seed=5, keep_runs=True, eviction_copies=False, recovers=on, watches_time=on)
        for on in (True, False)
    )
    assert usual.requests.finish.tolist() == without.requests.finish.tolist()
    assert usual.runs.start.tolist() == without.runs.start.tolist()
    assert usual.runs.worker.tolist() == without.runs.worker.tolist()


# The machines


def test_noise_is_that_of_the_task_whichever_scheduler_runs_it() -> None:
    arrivals = from_clients(40, 0.5, 4, 3)
    one, other = (run(EDGE, arrivals, name, noise=0.3, keep_runs=True) for name in ("compass", "hash"))

    def seconds(record: ServingRecord) -> dict[tuple[int, int], float]:
        names = zip(record.runs.request.tolist(), record.runs.stage.tolist(), strict=True)
        return dict(zip(names, (record.runs.end - record.runs.start).tolist(), strict=True))

    assert seconds(one) == pytest.approx(seconds(other))
    assert np.std([value for (_, stage), value in seconds(one).items() if stage == 0]) > 0


def test_an_eviction_that_copies_costs_time_and_one_that_does_not_costs_none() -> None:
    arrivals = from_clients(200, 3.0, 4, 42)
    copied, free = (run(EDGE, arrivals, "hash", eviction_copies=copies, keep_runs=True) for copies in (True, False))
    assert mean(copied) > mean(free)
    assert (copied.copies.end > copied.copies.start)[copied.copies.evicted].any()
    assert (free.copies.end == free.copies.start)[free.copies.evicted].all()


def test_a_network_card_that_sends_one_thing_at_a_time_is_slower() -> None:
    slow = replace(EDGE.with_workers(4), links=replace(EDGE.links, network_bandwidth=2e7))
    arrivals = requests(*((0.01 * number, 3) for number in range(20)))
    queued, unlimited = (run(slow, arrivals, "hash", nic_queues=nic) for nic in (True, False))
    assert mean(queued) > mean(unlimited)


def test_energy_and_utilisation_follow_from_the_time_of_tasks_and_copies() -> None:
    record = run(EDGE.with_workers(2), requests((0.0, 1)))
    numbers = summarize_serving(record)
    end = record.end_seconds
    assert numbers["utilization"] == pytest.approx(0.587 / (2 * end))
    copied = float(record.workers.copy_seconds.sum())
    assert numbers["energy_joules"] == pytest.approx(10 * 2 * end + 60 * 0.587 + 25 * copied)
    assert numbers["cold_starts"] == 2
    assert numbers["cache_hit_rate"] == 0.0


def test_a_lost_worker_costs_time_but_no_request() -> None:
    arrivals = from_clients(150, 3.0, 4, 42)
    whole, lost = (run(EDGE, arrivals, failures=failures) for failures in ((), (Failure(2, 9.0, 30.0),)))
    assert (lost.requests.outcome == RequestOutcome.COMPLETED).all()
    assert lost.requests.asked.max() == 2
    assert mean(lost) > mean(whole)
    with pytest.raises(InputError, match="worker 9 given, but there are 5 workers"):
        run(EDGE, arrivals, failures=(Failure(9, 1.0),))


def test_requests_are_refused_with_a_reason_while_their_model_fits_nowhere_and_the_rest_go_on() -> None:
    small = replace(EDGE.workers[0], memory_bytes=4.5e9)
    scenario = replace(EDGE, workers=(EDGE.workers[0], *(replace(small, name=f"s{number}") for number in range(3))))
    arrivals = requests((0.0, 1), (5.0, 3), (6.0, 1), (30.0, 1), ingress=0.9)
    record = run(scenario, arrivals, failures=(Failure(0, 2.0, 20.0),))
    assert record.requests.outcome.tolist() == [0, 0, 2, 0]
    assert "'answer' can run on 1 of 4 workers, and none of these is there" in record.refusals[0]


@pytest.mark.parametrize("scheduler", ["hash", "esg"])
def test_a_run_that_is_over_leaves_nothing_for_the_collector(scheduler: str) -> None:
    """Under hash, workers of the last requests still want to be woken then; all that was kept would wait with them."""
    arrivals = from_clients(60, 40.0, len(EDGE.workflows), 1)
    world = World(EDGE.with_workers(40), arrivals, scheduler, ServingOptions())
    gone = weakref.ref(world)
    enabled = gc.isenabled()
    gc.disable()
    try:
        world.run()
        del world
        assert gone() is None
    finally:
        if enabled:
            gc.enable()
