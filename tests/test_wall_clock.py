"""The clock that decides does not notice when the clock for people is set."""

from __future__ import annotations

import pytest

from fairway.wall_clock import WallClock

HOUR = 3600.0


class Machine:
    """A machine whose owner sets the system clock."""

    def __init__(self) -> None:
        self.passed, self.set_by = 50.0, 1_000_000.0

    def time(self) -> float:
        return self.passed + self.set_by

    def monotonic(self) -> float:
        return self.passed


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.mark.parametrize("step", [HOUR, -HOUR])
def test_the_time_on_the_wall_follows_a_step_at_once_and_the_seconds_do_not(machine: Machine, step: float) -> None:
    clock = WallClock(machine)
    before, wall = clock.seconds(), clock.today()
    machine.set_by += step
    machine.passed += 2.0
    assert clock.seconds() - before == 2.0
    assert clock.today() - wall == step + 2.0
    assert clock.wall(before) == wall + step
    assert clock.seconds_at(wall + step) == before


def test_what_is_less_than_a_step_moves_nothing(machine: Machine) -> None:
    clock = WallClock(machine)
    wall = clock.today()
    machine.set_by -= 0.05  # such as the time between the readings of the two clocks
    assert clock.today() == wall
    assert clock.earliest_since(wall) == wall
    machine.set_by -= 0.06
    assert clock.today() == pytest.approx(wall - 0.11, abs=1e-3)


def test_times_that_a_step_back_repeats_begin_at_the_earliest_that_was_shown_again(machine: Machine) -> None:
    clock = WallClock(machine)
    machine.passed += 10.0
    last = clock.today()
    machine.passed += 3.0  # it is set back at some moment in these seconds
    machine.set_by -= HOUR
    shown_again = last - HOUR
    assert clock.earliest_since(last) == shown_again
    assert clock.earliest_since(last + 3.0) == shown_again, "the clock may have shown that before it was set"
    assert clock.earliest_since(last + 3.5) == last + 3.5, "the clock has never shown that"
    assert clock.earliest_since(shown_again - 1.0) == shown_again - 1.0, "that came before, and was not shown again"


def test_a_second_step_back_goes_on_from_the_first(machine: Machine) -> None:
    clock = WallClock(machine)
    first = clock.today()
    for _ in range(2):
        machine.set_by -= HOUR
        clock.today()
    assert clock.earliest_since(first) == first - 2 * HOUR


def test_a_step_forwards_repeats_no_time(machine: Machine) -> None:
    clock = WallClock(machine)
    first = clock.today()
    machine.set_by += HOUR
    assert clock.earliest_since(first) == first
    assert clock.earliest_since(first + HOUR) == first + HOUR
