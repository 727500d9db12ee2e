"""The world of the original simulator: whole steps, rounds that end with the last gang, jobs that vanish."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fairway.allocate.arrays import IntArray
from fairway.compat.gavel.micro_tasks import MOST_FAILURES, MicroTasks, Played


def numbers(*values: int) -> IntArray:
    return np.array(values, dtype=np.int64)


def alone(tasks: MicroTasks, now: float, *gangs: tuple[int, int, float]) -> Played:
    """Play a round of gangs of one job each: (job, workers, rate)."""
    jobs, sizes, rates = zip(*gangs, strict=True)
    return tasks.play(now, numbers(*jobs), np.full(len(jobs), -1), numbers(*sizes), np.array(rates)[:, None])


def test_a_job_does_the_whole_steps_that_fit_into_a_round() -> None:
    tasks = MicroTasks()
    job = tasks.add(1000.0)
    played = alone(tasks, 0.0, (job, 1, 1.0 / 7.0))
    assert tasks.steps_left[job] == 1000 - 51
    assert played.end == pytest.approx(51 * 7.0)
    assert not len(played.done)


def test_a_round_is_over_when_the_last_gang_is_done() -> None:
    tasks = MicroTasks()
    short, long = tasks.add(10.0), tasks.add(1e6)
    played = alone(tasks, 100.0, (short, 1, 1.0), (long, 1, 2.0))
    assert played.done.tolist() == [short]
    assert tasks.finish[short] == 110.0
    assert math.isnan(tasks.finish[long])
    assert played.end == 100.0 + 360.0


def test_time_counts_from_the_end_of_the_round_before_even_over_a_pause() -> None:
    tasks = MicroTasks()
    job = tasks.add(1e6)
    first = alone(tasks, 0.0, (job, 1, 1.0))
    second = alone(tasks, 1000.0, (job, 2, 1.0))
    assert first.seconds.tolist() == [360.0]
    assert second.seconds.tolist() == [1000.0]
    assert tasks.worker_seconds == 360.0 + 2 * 1000.0


def test_two_that_share_are_done_together() -> None:
    tasks = MicroTasks()
    early, late = tasks.add(10.0), tasks.add(30.0)
    played = tasks.play(0.0, numbers(late), numbers(early), numbers(1), np.array([[1.0, 2.0]]))
    assert sorted(played.done.tolist()) == [early, late]
    assert tasks.finish.tolist() == [15.0, 15.0]


def test_part_of_a_step_is_work_for_one_worker() -> None:
    tasks = MicroTasks()
    job = tasks.add(0.25)
    assert alone(tasks, 0.0, (job, 1, 1.0)).done.tolist() == [job]
    assert tasks.finish[job] == 0.25


def test_a_gang_with_fewer_steps_than_workers_fails_and_is_dropped_in_the_end() -> None:
    tasks = MicroTasks()
    job, other = tasks.add(1.0), tasks.add(1e6)
    for attempt in range(MOST_FAILURES):
        played = alone(tasks, 360.0 * attempt, (job, 2, 1.0), (other, 1, 1.0))
        assert played.failed
        assert played.seconds[0] == 0.0
        assert played.done.tolist() == ([job] if attempt == MOST_FAILURES - 1 else [])
    assert math.isnan(tasks.finish[job])


def test_a_round_that_works_ends_a_series_of_failures() -> None:
    tasks = MicroTasks()
    job = tasks.add(3.0)
    for attempt in range(MOST_FAILURES - 1):
        assert alone(tasks, 360.0 * attempt, (job, 4, 1.0)).failed
    assert not alone(tasks, 2000.0, (job, 2, 1.0 / 180.0)).failed
    assert tasks.steps_left[job] == 1.0
    for attempt in range(MOST_FAILURES - 1):
        assert not len(alone(tasks, 3000.0 + 360.0 * attempt, (job, 4, 1.0)).done)
    assert alone(tasks, 9000.0, (job, 4, 1.0)).done.tolist() == [job]


def test_room_for_jobs_grows() -> None:
    tasks = MicroTasks(jobs=2)
    assert [tasks.add(float(number)) for number in range(9)] == list(range(9))
    assert tasks.steps_left.tolist() == [float(number) for number in range(9)]
