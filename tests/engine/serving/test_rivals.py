"""Rivals do what their papers say, in the engine that all share: early drop, exact times, plans that keep to memory."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway import Stage, Worker, Workflow
from fairway.configure.application import Application
from fairway.configure.capacity import Capacity
from fairway.configure.configuration import Configuration
from fairway.configure.configurators.clockwork import Clockwork
from fairway.configure.configurators.nexus import Nexus, SquishyPlanner
from fairway.configure.configurators.shepherd import HerdPlanner, Shepherd
from fairway.configure.fleet_plan import Demand, Machines, StagePlan
from fairway.configure.platform import BARE
from fairway.configure.profile import Profile
from fairway.configure.queues import Candidates, Choice, Decision, Drop, Preempt, Queue, Running
from fairway.errors import InputError
from fairway.links import NO_TRANSFERS
from fairway.report.serving.metrics import summarize_serving
from fairway.report.serving.record import RequestOutcome, ServingRecord
from fairway.sim.arrivals import Arrivals, poisson
from fairway.sim.failures import Failure
from fairway.sim.scenario import Scenario
from fairway.sim.scenarios import SCENARIOS
from fairway.sim.serving import ServingOptions, simulate_serving
from tests.figures import vortex_run

TRAFFIC = SCENARIOS["loki-traffic"]()
TIGHT = SCENARIOS["loki-both-tight"]()
DRAWS = np.random.default_rng(0)
BATCHES = {1: 0.02, 2: 0.03, 4: 0.05, 8: 0.09}


def simulated(scenario: Scenario, scheduler: str, rate: float, requests: int = 300, **options: object) -> ServingRecord:
    arrivals = poisson(requests, rate, np.array(scenario.shares), 1)
    return simulate_serving(scenario, arrivals, scheduler, ServingOptions(keep_runs=True, **options))  # type: ignore[arg-type]


def application(stages: int = 1, slo: float = 0.2) -> Application:
    profile = Profile.of({Configuration(size, 1, 1): seconds for size, seconds in BATCHES.items()})
    names = "abc"[:stages]
    return Application.of(dict.fromkeys(names, profile), list(itertools.pairwise(names)), slo)


def asked(*left: float, plan: StagePlan | None = None, stage: int = 0) -> Queue:
    return Queue(stage, len(left), left[0], deadlines=left, plan=plan)


IDLE = Capacity.idle(2, 1, 1)
PLAN = StagePlan(np.array([4, 0]), 0.2, 0.0)


# Nexus


@pytest.mark.parametrize(
    ("left", "expected"),
    [
        ((0.06, 0.06, 0.06, 0.06, 0.06), 4),  # the window of the planned batch is in time
        ((0.04, 0.06, 0.06, 0.06, 0.06), Drop(1)),  # its first is not, with three behind it
        ((0.04, 0.045, 0.06, 0.06), Drop(2)),  # then two are left, which take less
        ((0.04, 0.06), 2),  # a short queue has a short batch
        ((0.01, 0.01), Drop(2)),
    ],
)
def test_early_drop_moves_the_window_until_its_first_request_is_in_time(
    left: tuple[float, ...], expected: Drop | int
) -> None:
    decision = Nexus().prepare(application(), BARE, DRAWS).decide(asked(*left, plan=PLAN), IDLE)
    if isinstance(expected, Drop):
        assert decision == expected
    else:
        assert isinstance(decision, Candidates)
        assert decision.choices[0].configuration.batch == expected
        assert decision.among is not None
        assert decision.among.tolist() == [True, False], "on the workers that are planned, and no others"


def test_lazy_drop_serves_the_first_request_in_a_small_batch() -> None:
    decide = Nexus(lazy=True).prepare(application(), BARE, DRAWS).decide
    decision = decide(asked(0.04, 0.06, 0.06, 0.06, 0.06, plan=PLAN), IDLE)
    assert isinstance(decision, Candidates)
    assert decision.choices[0].configuration.batch == 2
    assert decide(asked(0.01, 0.06, plan=PLAN), IDLE) == Drop(1)


def test_a_stage_keeps_back_what_later_ones_may_take() -> None:
    later = StagePlan(np.array([4, 0]), 0.1, 0.1)
    decision = Nexus().prepare(application(2), BARE, DRAWS).decide(asked(0.13, 0.16, plan=later), IDLE)
    assert decision == Candidates(decision.choices, None, decision.among)  # type: ignore[union-attr]
    assert decision.choices[0].configuration.batch == 2  # type: ignore[union-attr]
    dropped = Nexus().prepare(application(2), BARE, DRAWS).decide(asked(0.125, 0.16, plan=later), IDLE)
    assert dropped == Drop(1)


def test_all_workers_are_planned_within_their_memory_and_a_new_plan_moves_nothing_without_need() -> None:
    fleet = TIGHT.fleet()
    demands = [
        Demand(app, tuple(int(needed[0]) for needed in graph.needed), rate)
        for app, graph, rate in zip(TIGHT.applications(), TIGHT.graphs(fleet), (50.0, 50.0), strict=True)
    ]
    machines = Machines(fleet.memory, fleet.model_bytes)
    plan = SquishyPlanner().plan(demands, machines, None)
    for worker in range(len(fleet)):
        held = {
            model
            for demand, stages in zip(demands, plan, strict=True)
            for model, stage in zip(demand.models, stages, strict=True)
            if stage.batches[worker]
        }
        assert held, "no worker is left idle"
        assert sum(fleet.model_bytes[model] for model in held) <= fleet.memory[worker]
    assert all(stage.batches.any() for stages in plan for stage in stages)
    again = SquishyPlanner().plan(demands, machines, plan)
    for one, other in zip(plan, again, strict=True):
        for before, after in zip(one, other, strict=True):
            assert before.batches.tolist() == after.batches.tolist()


def test_a_worker_that_is_lost_is_planned_around() -> None:
    record = simulated(TRAFFIC, "nexus", 40.0, failures=(Failure(0, 2.0, 5.0),))
    summary = summarize_serving(record)
    assert summary["completed"] + summary["refused"] == 300
    assert summary["slo_hit_rate"] is not None
    assert summary["slo_hit_rate"] > 0.9


def test_under_overload_early_drop_answers_more_in_time_than_lazy_drop() -> None:
    early, lazy = (summarize_serving(simulated(TRAFFIC, name, 120.0)) for name in ("nexus", "nexus:lazy"))
    assert early["slo_hit_rate"] > lazy["slo_hit_rate"]  # type: ignore[operator]


@pytest.mark.parametrize("scheduler", ["nexus", "clockwork"])
def test_what_is_answered_in_time_in_vortex_is_in_time_here(scheduler: str) -> None:
    # Three vision encoders of 24 GB and four parts of 6 GB there; seven workers that are alike here, at the same times.
    run = vortex_run("textvision0-fcfs-r80")  # all of its schedulers, Nexus too, have the same requests in time
    assert run.in_time == 1.0
    mix = SCENARIOS["vortex-mix"]()
    one = Scenario("textvision0", mix.workflows[:1], mix.workers[:7], mix.links, slo_seconds={"textvision0": run.slo})
    number = len(run.created)
    arrivals = Arrivals(run.created, np.zeros(number, np.int64), np.linspace(0, 0.99, number), np.ones(number))
    record = simulate_serving(one, arrivals, scheduler, ServingOptions(discard=0.4))  # models are loaded by then
    hits = summarize_serving(record)["slo_hit_rate"]
    assert hits is not None
    assert hits == 1.0


# Clockwork


def test_a_batch_is_the_largest_that_is_in_time_for_its_most_urgent_job() -> None:
    decide = Clockwork().prepare(application(), BARE, DRAWS).decide
    for left, size in ((0.1, 8), (0.06, 4), (0.03, 2), (0.02, 1)):
        decision = decide(asked(left, *[0.2] * 9), IDLE)
        assert isinstance(decision, Candidates)
        assert decision.choices[0].configuration.batch == size
    assert decide(asked(0.01, 0.015, 0.03), IDLE) == Drop(2)


def test_the_latest_start_counts_what_follows() -> None:
    prepared = Clockwork().prepare(application(3), BARE, DRAWS)
    assert prepared.reserves == pytest.approx((0.06, 0.04, 0.02))
    assert prepared.decide(asked(0.059), IDLE) == Drop(1)
    assert isinstance(prepared.decide(asked(0.061), IDLE), Candidates)


@pytest.mark.parametrize("scenario", [TRAFFIC, TIGHT], ids=lambda each: each.name)
@pytest.mark.parametrize("rate", [60.0, 300.0])
def test_nothing_is_started_that_cannot_be_in_time(scenario: Scenario, rate: float) -> None:
    record = simulated(scenario, "clockwork", rate)
    requests = record.requests
    done = requests.outcome == RequestOutcome.COMPLETED
    assert (requests.finish[done] - requests.arrival[done] <= 0.25 + 1e-9).all()
    assert done.any()
    assert (requests.outcome[~done] == RequestOutcome.REFUSED).all()


def test_the_most_urgent_queue_goes_first() -> None:
    # Two workflows of one stage on one worker: the one with the shorter SLO overtakes those that wait.
    mix = SCENARIOS["vortex-mix"]()
    long, short = mix.workflows[5], mix.workflows[3]
    one = Scenario("two", (long, short), mix.workers[:1], mix.links, slo_seconds={long.name: 60.0, short.name: 3.0})
    arrivals = Arrivals(np.array([0, 0.01, 0.02, 0.03]), np.array([0, 0, 0, 1]), np.zeros(4), np.ones(4))
    record = simulate_serving(one, arrivals, "clockwork", ServingOptions(discard=0.0))
    finish = record.requests.finish
    assert (record.requests.outcome == RequestOutcome.COMPLETED).all()
    assert finish[3] < finish[1] < finish[2]


# Shepherd


SPLIT = StagePlan(np.array([8, 8]), 0.2, 0.0)
BUSY = Capacity(np.array([0, 0]), np.array([0, 0]), 1, 1)


def flex(left: tuple[float, ...], capacity: Capacity = IDLE, *running: Running | None) -> Decision:
    decide = Shepherd().prepare(application(), BARE, DRAWS).decide
    return decide(asked(*left, plan=SPLIT)._replace(running=running), capacity)


@pytest.mark.parametrize(
    ("left", "size", "skip"),
    [
        ((0.06,) * 5, 4, 0),  # four in 50 ms; five would take 90 ms
        ((0.1,) * 5, 8, 0),  # five take as long as eight, and are in time
        ((0.025, 0.06, 0.06, 0.06, 0.06), 4, 1),  # the most urgent would be late in the batch, and stays behind
        ((0.035, 0.035, 0.06, 0.06, 0.06), 4, 2),  # three in 50 ms rather than two in 30 ms
        ((0.025, 0.025), 1, 0),
    ],
)
def test_a_candidate_is_the_largest_batch_in_time(left: tuple[float, ...], size: int, skip: int) -> None:
    decision = flex(left)
    assert isinstance(decision, Candidates)
    assert (decision.choices[0].configuration.batch, decision.skip) == (size, skip)
    assert flex((0.01, 0.015, 0.06)) == Drop(2), "what has no chance even alone is given up"


@given(st.lists(st.floats(0.02, 0.3), min_size=1, max_size=16))
def test_no_larger_batch_is_in_time(left: list[float]) -> None:
    queues = Shepherd().prepare(application(), BARE, DRAWS)
    left.sort()
    best = queues.at_once(0, left, SPLIT)
    for jobs in range(1, len(left) + 1):
        seconds = next((time for size, time in BATCHES.items() if size >= jobs), np.inf)
        assert jobs <= best or sum(each >= seconds for each in left) < jobs


def test_a_batch_takes_the_place_of_one_a_third_as_large() -> None:
    four = (0.06,) * 4
    assert flex(four, BUSY, Running(1, 1, 0.01), Running(2, 2, 0.02)) == Preempt(Choice(Configuration(4, 1, 1)), 0), (
        "4 >= 3.03 * 1"
    )
    assert flex((0.06,) * 3, BUSY, Running(1, 1, 0.01), None) == Candidates(()), "3 < 3.03 * 1"
    eight = (0.1,) * 8
    assert flex(eight, BUSY, Running(1, 2, 0.01), Running(2, 2, 0.02)) == Preempt(Choice(Configuration(8, 1, 1)), 1), (
        "of equal ones, the one that has more to do"
    )
    assert flex(eight, BUSY, Running(1, 3, 0.01), None) == Candidates(()), "8 < 3.03 * 3"
    with pytest.raises(InputError, match="preemption: 1 given"):
        Shepherd(preemption=1)


def test_a_stage_leaves_time_for_what_follows_unless_told_otherwise() -> None:
    fleet = TRAFFIC.fleet()
    (graph,) = TRAFFIC.graphs(fleet)
    demand = Demand(TRAFFIC.applications()[0], tuple(int(each[0]) for each in graph.needed), 100.0)
    machines = Machines(fleet.memory, fleet.model_bytes)
    (kept,) = HerdPlanner().plan([demand], machines, None)
    assert kept[0].later > 0
    assert kept[0].seconds + kept[0].later == pytest.approx(0.25)
    (whole,) = HerdPlanner(request_deadlines=True).plan([demand], machines, None)
    assert [stage.later for stage in whole] == [0.0, 0.0, 0.0]


def test_groups_keep_to_memory_and_all_workers_have_one() -> None:
    fleet = TIGHT.fleet()
    demands = [
        Demand(app, tuple(int(needed[0]) for needed in graph.needed), 50.0)
        for app, graph in zip(TIGHT.applications(), TIGHT.graphs(fleet), strict=True)
    ]
    plan = HerdPlanner().plan(demands, Machines(fleet.memory, fleet.model_bytes), None)
    held = [
        frozenset(
            model
            for demand, stages in zip(demands, plan, strict=True)
            for model, stage in zip(demand.models, stages, strict=True)
            if stage.batches[worker]
        )
        for worker in range(len(fleet))
    ]
    assert all(held)
    assert all(sum(fleet.model_bytes[model] for model in each) <= fleet.memory[0] for each in held)
    for one, other in itertools.combinations(set(held), 2):
        assert not one & other, "a model belongs to one group"


def test_a_stopped_batch_gives_its_worker_up_and_its_jobs_run_later() -> None:
    # One worker, one stage: a single request runs for a second when four come that take as long together.
    profile = Profile.of({Configuration(1, 1, 1): 1.0, Configuration(4, 1, 1): 1.2})
    stage = Stage.of("a", 1.0)
    worker = Worker("w", 1e9, "gpu", None, 1, 1)
    one = Scenario(
        "one", (Workflow((stage,), (), name="one"),), (worker,), NO_TRANSFERS,
        slo_seconds={"one": 4.0}, profiles={"one": (profile,)},
    )  # fmt: skip
    arrivals = Arrivals(np.array([0.0, 0.5, 0.5, 0.5, 0.5]), np.zeros(5, np.int64), np.zeros(5), np.ones(5))
    stopped, patient = (
        simulate_serving(one, arrivals, name, ServingOptions(discard=0.0, keep_runs=True))
        for name in ("shepherd", "shepherd:no-preemption")
    )
    assert stopped.requests.finish.tolist() == pytest.approx([2.7, 1.7, 1.7, 1.7, 1.7], abs=0.01)
    assert patient.requests.finish.tolist() == pytest.approx([1.0, 2.2, 2.2, 2.2, 2.2], abs=0.01)
    assert sorted(stopped.runs.end.tolist()) == pytest.approx([0.5, 1.7, 1.7, 1.7, 1.7, 2.7], abs=0.01)
    assert stopped.workers.busy_seconds[0] == pytest.approx(0.5 + 1.2 + 1.0, abs=0.01)
    assert stopped.workers.tasks.tolist() == [5], "the run that was stopped is none"


@pytest.mark.parametrize("scheduler", ["shepherd", "shepherd:preemption=1.2", "inferline", "inferline:no-drop"])
@pytest.mark.parametrize("scenario", [TRAFFIC, TIGHT], ids=lambda each: each.name)
def test_every_request_has_one_end_whatever_is_stopped_or_lost(scheduler: str, scenario: Scenario) -> None:
    for failures in ((), (Failure(0, 0.5, 1.5), Failure(3, 1.0))):
        record = simulated(scenario, scheduler, 220.0, failures=failures)
        outcome = record.requests.outcome.tolist()
        assert set(outcome) <= {RequestOutcome.COMPLETED, RequestOutcome.REFUSED}
        again = simulated(scenario, scheduler, 220.0, failures=failures)
        assert np.array_equal(record.requests.finish, again.requests.finish, equal_nan=True)


def test_shepherd_holds_under_overload_and_loses_its_work_with_the_deadlines_of_requests() -> None:
    kept, whole = (
        summarize_serving(simulated(TRAFFIC, name, 300.0, 600))["slo_hit_rate"] or 0.0
        for name in ("shepherd", "shepherd:request-deadlines")
    )
    assert kept > 0.6
    assert whole < kept - 0.25


def test_shepherd_has_more_in_time_than_that_of_vortex() -> None:
    # There, a stage may take all that is left of the request's time, and most requests are lost after its second stage.
    run = vortex_run("textvision0-shepherd-r130")
    number = len(run.created)
    mix = SCENARIOS["vortex-mix"]()
    one = Scenario("textvision0", mix.workflows[:1], mix.workers[:7], mix.links, slo_seconds={"textvision0": run.slo})
    arrivals = Arrivals(run.created, np.zeros(number, np.int64), np.linspace(0, 0.99, number), np.ones(number))
    record = simulate_serving(one, arrivals, "shepherd", ServingOptions(discard=0.4))
    assert (summarize_serving(record)["slo_hit_rate"] or 0.0) > run.in_time + 0.2
