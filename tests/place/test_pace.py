"""How a worker learns that it is slow, and forgets it."""

from __future__ import annotations

import pytest

from fairway.place.pace import Pace
from fairway.place.state import Load


def test_tasks_that_take_their_time_change_nothing() -> None:
    pace = Pace()
    for number in range(20):
        pace.ran(0.1, number, number + (0.12 if number % 2 else 0.08))
    assert (pace.factor, pace.extra) == (1.0, 0.0)


def test_the_first_run_of_a_model_is_slow_and_forgiven() -> None:
    pace = Pace()
    pace.ran(0.1, 0.0, 0.3)
    assert pace.factor == 1.0


def test_tasks_that_take_ten_times_as_long_count_and_a_usual_task_costs_so_much_more() -> None:
    pace, now = Pace(), 0.0
    factors = []
    for _ in range(60):
        pace.ran(0.1, now, now + 1.0)
        factors.append(pace.factor)
        now += 1.0
    assert factors == sorted(factors)
    assert factors[0] > 1.5
    assert pace.factor == pytest.approx(10.0, rel=0.02)
    assert pace.extra == pytest.approx(0.9, rel=0.02)


def test_microseconds_do_not_matter() -> None:
    pace = Pace()
    for number in range(50):
        pace.ran(1e-5, number, number + 2e-4)
    assert (pace.factor, pace.extra) == (1.0, 0.0)


def test_it_is_forgotten_while_nothing_runs() -> None:
    pace = Pace()
    for number in range(20):
        pace.ran(0.1, number, number + 1.0)
    factor = pace.factor
    pace.fade(30.0)
    assert pace.factor - 1 == pytest.approx((factor - 1) / 2)
    pace.fade(25.0)  # time does not go back
    assert pace.factor - 1 == pytest.approx((factor - 1) / 2)
    pace.fade(300.0)
    assert (pace.factor, pace.extra) == (1.0, 0.0)


def test_a_load_says_what_waits_really_takes_and_what_a_task_more_would() -> None:
    load = Load()
    load.enqueue(0.1)
    load.enqueue(0.1)
    assert load.queued == pytest.approx(0.2)
    for number in range(60):
        load.pace.ran(0.1, number, number + 1.0)
        load.sum_up()
    assert load.queued == pytest.approx(0.2 * 10 + 0.9, rel=0.03)
    load.start(0.1, 100.0)
    assert load.busy_until == pytest.approx(101.0, abs=0.02)
    load.overrun(102.0, since=100.0)
    assert load.busy_until == 104.0
    load.finish()
    load.drop(0.1)
    load.fade(1000.0)
    assert load.queued == 0.0
