"""What a controller counts of its decisions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fairway.live.training.statistics import Statistics
from fairway.store.states import JobState
from tests.live.training.virtual import World


def test_a_decision_ends_that_nothing_was_decided_and_the_last_thousand_are_kept() -> None:
    counted = Statistics(5.0, undecided="too slow")
    counted.count_decision(0.5)
    assert (counted.solves, counted.undecided, counted.decision_seconds) == (1, None, [0.5])
    for number in range(1000):
        counted.count_decision(float(number))
    assert (counted.solves, len(counted.decision_seconds)) == (1001, 1000)
    assert counted.decision_seconds[0] == 0.0
    assert counted.decision_seconds[-1] == 999.0


def test_it_begins_with_nothing() -> None:
    new = Statistics(5.0)
    totals = (
        new.leases_granted_total, new.preemptions_total, new.restarts_total, new.failures_total,
        new.agent_restarts_total, new.recoveries_total, new.rounds, new.solves, new.undecided_total,
    )  # fmt: skip
    assert (new.started_at, *totals) == (5.0, *[0] * 9)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with World(tmp_path, "v100=1,k80=1").running() as made:
        yield made


def test_a_job_that_fails_twice_is_two_failures_and_one_restart(world: World) -> None:
    job = world.submit(10_000, run=["fail"], retries=1)
    world.finish()
    assert (world.statistics.failures_total, world.statistics.restarts_total) == (2, 1)
    record = world.job(job)
    assert (record.state, record.failures, record.attempts, record.exit_code) == (JobState.FAILED, 2, 2, 1)


def test_a_job_that_is_done_or_cancelled_is_neither(world: World) -> None:
    jobs = [world.submit(4, throughputs={"v100": 2.0}), world.submit(10_000, throughputs={"k80": 1.0})]
    world.run_for(3.0)
    assert world.statistics.restarts_total == 0
    world.cancel(jobs[1])
    world.finish()
    assert (world.statistics.failures_total, world.statistics.restarts_total) == (0, 0)
    assert [world.job(job).state for job in jobs] == [JobState.SUCCEEDED, JobState.CANCELLED]
    assert world.statistics.leases_granted_total == 2


def test_a_job_whose_processes_are_lost_starts_again_and_has_not_failed(world: World) -> None:
    job = world.submit(10_000)
    world.run_for(3.0)
    (process,) = world.alive()
    process.kill()
    world.run_until(lambda: world.statistics.restarts_total > 0)
    assert (world.statistics.failures_total, world.statistics.restarts_total) == (0, 1)
    assert world.job(job).attempts == 2
