"""Jobs that are taken back, wherever they are then, in virtual time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fairway.live.backend.commands import RetireJob
from fairway.store.states import JobState
from tests.live.training.invariants import check_all_over
from tests.live.training.virtual import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with World(tmp_path, "v100=1").running() as made:
        yield made


def test_a_job_that_waits_is_cancelled_at_once_and_retired(world: World) -> None:
    runs, waits = (world.submit(10_000, throughputs={"v100": 2.0}, preemptible=False) for _ in range(2))
    world.run_for(3.0)
    scheduler = world.session.scheduler
    scheduler.cancel(waits)
    assert RetireJob(waits) in scheduler.commands
    assert waits not in scheduler.jobs
    world.commit()
    record = world.job(waits)
    assert (record.state, record.reason_code, record.reason) == (
        JobState.CANCELLED, "Cancelled", "cancelled while it waited",
    )  # fmt: skip
    assert world.job(runs).state is JobState.RUNNING
    scheduler.cancel(waits)
    scheduler.cancel("never was")
    assert scheduler.commands == []


def test_a_job_that_runs_is_cancelled_when_its_processes_have_ended(world: World) -> None:
    job = world.submit(10_000, throughputs={"v100": 2.0})
    world.run_for(3.0)
    world.cancel(job)
    assert world.session.scheduler.jobs[job].cancelled
    assert world.job(job).state is JobState.RUNNING
    world.finish()
    record = world.job(job)
    assert (record.state, record.reason) == (JobState.CANCELLED, "cancelled while it ran")
    check_all_over(world.store)


def test_a_job_that_rests_after_a_failure_does_not_come_back(world: World) -> None:
    job = world.submit(10_000, run=["fail"], retries=5, throughputs={"v100": 2.0})
    world.run_until(lambda: world.job(job).reason_code == "BackOff")
    world.cancel(job)
    assert world.job(job).state is JobState.CANCELLED
    world.run_for(30.0)
    assert (world.job(job).attempts, world.statistics.failures_total) == (1, 1)
