"""An engine that goes on where another stopped: what it holds and is owed stays; workers are drained and return."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fairway.allocate.registry import policy_of
from fairway.cluster import Cluster
from fairway.engine.protocol import TransitionError, like
from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.messages import (
    BeginRound,
    Command,
    Extend,
    Grant,
    JobArrived,
    JobFailed,
    JobFinished,
    JobResumed,
    LeaseResumed,
    Retire,
    Revoke,
    RoundBegan,
    WorkersJoined,
    WorkersLeft,
    WorkersReturned,
)
from fairway.engine.training.options import EngineOptions
from fairway.jobs import Job

_CLUSTER = Cluster({"v100": 3, "k80": 4}, workers_per_node={"v100": 2})


def _engine(last_lease: int = 0) -> TrainingEngine:
    return TrainingEngine(_CLUSTER, policy_of("max-min-fairness"), EngineOptions(60.0, 2.0, last_lease=last_lease))


def _busy_engine(seed: int, rounds: int = 7) -> tuple[TrainingEngine, float]:
    draw = np.random.default_rng(seed)
    engine, now = _engine(), 0.0
    for number in range(14):
        now += float(draw.uniform(0, 20))
        rates = {"v100": float(draw.uniform(1, 4)), "k80": float(draw.uniform(0.2, 1))}
        job = Job(
            f"job-{number}", rates, int(draw.integers(1, 3)), steps_left=1e6, entity=f"team-{number % 2}",
            preemptible=number % 5 > 0,
        )  # fmt: skip
        engine.handle(now, [JobArrived(job, deadline=now + 1e5 if number % 3 else None)])
    for _ in range(rounds):
        now = math.ceil(now / 60 + 1) * 60
        engine.handle(now, [RoundBegan()])
    return engine, now


def _resumed(engine: TrainingEngine) -> TrainingEngine:
    other = _engine()
    assert other.handle(engine.now, engine.resumption()) == [like(BeginRound)], "nothing moves before the first round"
    return other


@pytest.mark.parametrize("seed", range(5))
def test_goes_on_as_if_nothing_had_happened(seed: int) -> None:
    engine, now = _busy_engine(seed)
    engine.handle(now, [WorkersJoined("k80", 1), WorkersLeft("k80", (0,), drain=True)])
    other = _resumed(engine)
    for name in ("on", "lease", "isolated", "owed", "shares", "left", "arrival", "deadline", "rates", "fixed", "rate"):
        np.testing.assert_array_equal(getattr(other.jobs, name), getattr(engine.jobs, name), err_msg=name)
    np.testing.assert_array_equal(other.workers.free, engine.workers.free)
    np.testing.assert_array_equal(other.workers.present, engine.workers.present)
    for one in (engine, other):
        one.handle(now + 60, [RoundBegan()])
    np.testing.assert_allclose(other.jobs.shares, engine.jobs.shares, atol=1e-6)


def test_a_restart_stops_nobody_who_runs() -> None:
    engine, now = _busy_engine(3)
    running = {job for job, lease in zip(engine.jobs.ids, engine.jobs.lease.tolist(), strict=True) if lease >= 0}
    other = _resumed(engine)
    stopped = {job for c in other.handle(now, [RoundBegan()]) if isinstance(c, Revoke) for job in c.jobs}
    expected = {job for c in engine.handle(now + 60, [RoundBegan()]) if isinstance(c, Revoke) for job in c.jobs}
    assert running
    assert stopped <= expected


def test_new_leases_have_higher_numbers_than_resumed_ones() -> None:
    engine, now = _busy_engine(0)
    highest = int(engine.jobs.lease.max())
    other = _resumed(engine)
    finished = next(job for job, lease in zip(engine.jobs.ids, engine.jobs.lease.tolist(), strict=True) if lease >= 0)
    other.handle(now, [RoundBegan()])
    commands: list[Command] = other.handle(now + 1, [JobFinished(finished)])
    grants = [command.lease for command in commands if isinstance(command, Grant)]
    assert grants
    assert min(grants) > highest


def test_a_lease_on_workers_that_are_not_free_is_refused() -> None:
    engine = _engine()
    job = Job("a", {"v100": 1.0, "k80": 1.0})
    resumed = JobResumed(job, arrived=-100.0), JobResumed(Job("b", job.throughputs), arrived=-90.0)
    engine.handle(0.0, [*resumed, LeaseResumed(7, ("a",), "v100", (1,))])
    for wrong, why in (
        (LeaseResumed(8, ("b",), "v100", (1,)), "not all of its workers are free"),
        (LeaseResumed(8, ("nobody",), "v100", (0,)), "there is no job 'nobody'"),
        (LeaseResumed(8, ("b",), "v100", (99,)), "not all of its workers are free"),
    ):
        with pytest.raises(TransitionError, match=why):
            engine.handle(0.0, [wrong])
        engine.validate()


def _one_job(preemptible: bool) -> TrainingEngine:
    engine = _engine()
    engine.handle(0.0, [JobArrived(Job("a", {"v100": 4.0}, preemptible=preemptible)), RoundBegan()])
    return engine


def test_drained_workers_let_their_jobs_save_and_take_nothing_new() -> None:
    engine = _one_job(preemptible=True)
    assert engine.handle(1.0, [WorkersLeft("v100", (0, 1, 2), drain=True)]) == [like(Revoke, restart=True)]
    assert engine.handle(60.0, [RoundBegan()]) == [like(Extend), like(BeginRound)]
    assert engine.handle(61.0, [WorkersReturned("v100", (2,))]) == [like(Grant, jobs=("a",), workers=(2,))]


def test_a_job_that_is_not_preemptible_keeps_a_drained_worker_to_its_end() -> None:
    engine = _one_job(preemptible=False)
    assert engine.handle(1.0, [WorkersLeft("v100", (0, 1, 2), drain=True)]) == []
    assert engine.workers.present[0] == 1
    engine.handle(2.0, [JobArrived(Job("b", {"v100": 4.0, "k80": 1.0}))])
    assert engine.handle(3.0, [JobFinished("a")]) == [like(Revoke, jobs=("a",), restart=False), like(Retire, job="a")]
    assert engine.workers.present[0] == 0


def test_a_drained_worker_that_a_failed_attempt_gives_back_makes_the_policy_decide_again() -> None:
    engine = _one_job(preemptible=False)
    engine.handle(1.0, [WorkersLeft("v100", (0, 1, 2), drain=True)])
    engine.handle(60.0, [RoundBegan()])
    solves = engine.solves
    assert engine.handle(61.0, [JobFailed("a", retry=True)]) == [like(Revoke, jobs=("a",), restart=False)]
    assert engine.handle(120.0, [RoundBegan()]) == [like(Extend), like(BeginRound)]
    assert engine.solves == solves + 1
