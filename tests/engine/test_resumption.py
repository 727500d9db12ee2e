"""An engine that goes on where another stopped: what it holds and is owed stays; workers are drained and return."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fairway.allocate.registry import policy_of
from fairway.cluster import Cluster
from fairway.engine.training import EngineOptions, TrainingEngine, TransitionError
from fairway.engine.training_messages import (
    Command,
    Event,
    Grant,
    JobArrived,
    JobFinished,
    JobResumed,
    LeaseResumed,
    Revoke,
    RoundBegan,
    WorkersJoined,
    WorkersLeft,
    WorkersReturned,
)
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
        engine.handle(JobArrived(now, job, deadline=now + 1e5 if number % 3 else None))
    for _ in range(rounds):
        now = math.ceil(now / 60 + 1) * 60
        engine.handle(RoundBegan(now))
    return engine, now


def _resumed(engine: TrainingEngine) -> TrainingEngine:
    other = _engine()
    for event in engine.resumption():
        for command in other.handle(event):
            assert not isinstance(command, Grant | Revoke), "nothing moves before the first round"
    return other


@pytest.mark.parametrize("seed", range(5))
def test_goes_on_as_if_nothing_had_happened(seed: int) -> None:
    engine, now = _busy_engine(seed)
    engine.handle(WorkersJoined(now, "k80", 1))
    engine.handle(WorkersLeft(now, "k80", (0,), drain=True))
    other = _resumed(engine)
    for name in ("on", "lease", "isolated", "owed", "shares", "left", "arrival", "deadline", "rates", "fixed", "rate"):
        np.testing.assert_array_equal(getattr(other.jobs, name), getattr(engine.jobs, name), err_msg=name)
    np.testing.assert_array_equal(other.workers.free, engine.workers.free)
    np.testing.assert_array_equal(other.workers.present, engine.workers.present)
    for one in (engine, other):
        one.handle(RoundBegan(now + 60))
    np.testing.assert_allclose(other.jobs.shares, engine.jobs.shares, atol=1e-6)


def test_a_restart_stops_nobody_who_runs() -> None:
    engine, now = _busy_engine(3)
    running = {job for job, lease in zip(engine.jobs.ids, engine.jobs.lease.tolist(), strict=True) if lease >= 0}
    other = _resumed(engine)
    stopped = {job for c in other.handle(RoundBegan(now)) if isinstance(c, Revoke) for job in c.jobs}
    expected = {job for c in engine.handle(RoundBegan(now + 60)) if isinstance(c, Revoke) for job in c.jobs}
    assert running
    assert stopped <= expected


def test_new_leases_have_higher_numbers_than_resumed_ones() -> None:
    engine, now = _busy_engine(0)
    highest = int(engine.jobs.lease.max())
    other = _resumed(engine)
    finished = next(job for job, lease in zip(engine.jobs.ids, engine.jobs.lease.tolist(), strict=True) if lease >= 0)
    other.handle(RoundBegan(now))
    commands: list[Command] = other.handle(JobFinished(now + 1, finished))
    grants = [command.lease for command in commands if isinstance(command, Grant)]
    assert grants
    assert min(grants) > highest


def test_a_lease_on_workers_that_are_not_free_is_refused() -> None:
    engine = _engine()
    job = Job("a", {"v100": 1.0, "k80": 1.0})
    for event in (
        JobResumed(0.0, job, arrived=-100.0),
        JobResumed(0.0, Job("b", job.throughputs), arrived=-90.0),
        LeaseResumed(0.0, 7, ("a",), "v100", (1,)),
    ):
        engine.handle(event)
    for wrong in (
        LeaseResumed(0.0, 8, ("b",), "v100", (1,)),
        LeaseResumed(0.0, 8, ("nobody",), "v100", (0,)),
        LeaseResumed(0.0, 8, ("b",), "v100", (99,)),
    ):
        with pytest.raises(TransitionError):
            engine.handle(wrong)


def _one_job(preemptible: bool) -> TrainingEngine:
    engine = _engine()
    events: list[Event] = [JobArrived(0.0, Job("a", {"v100": 4.0}, preemptible=preemptible)), RoundBegan(0.0)]
    for event in events:
        engine.handle(event)
    return engine


def test_drained_workers_let_their_jobs_save_and_take_nothing_new() -> None:
    engine = _one_job(preemptible=True)
    commands = engine.handle(WorkersLeft(1.0, "v100", (0, 1, 2), drain=True))
    assert [(type(c), getattr(c, "restart", None)) for c in commands] == [(Revoke, True)]
    assert not any(isinstance(c, Grant) for c in engine.handle(RoundBegan(60.0)))
    commands = engine.handle(WorkersReturned(61.0, "v100", (2,)))
    assert [c.workers for c in commands if isinstance(c, Grant)] == [(2,)]


def test_a_job_that_is_not_preemptible_keeps_a_drained_worker_to_its_end() -> None:
    engine = _one_job(preemptible=False)
    assert engine.handle(WorkersLeft(1.0, "v100", (0, 1, 2), drain=True)) == []
    assert engine.workers.present[0] == 1
    engine.handle(JobArrived(2.0, Job("b", {"v100": 4.0, "k80": 1.0})))
    commands = engine.handle(JobFinished(3.0, "a"))
    assert not any(isinstance(c, Grant) and c.accelerator == "v100" for c in commands)
    assert engine.workers.present[0] == 0
