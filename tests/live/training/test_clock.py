"""The engine's clock: what passes on it while the machine's clocks go on, and are set."""

from __future__ import annotations

import pytest

from fairway.live.training.clock import Clock


class _Machine:
    """Clocks of a machine that stand until the test moves them."""

    def __init__(self) -> None:
        self.real, self.wall = 500.0, 1_700_000_000.0

    def monotonic(self) -> float:
        return self.real

    def time(self) -> float:
        return self.wall

    def passes(self, seconds: float) -> None:
        self.real += seconds
        self.wall += seconds


@pytest.fixture
def machine() -> _Machine:
    return _Machine()


@pytest.mark.parametrize("scale", [1.0, 4.0, 0.5])
def test_the_engines_time_begins_with_the_controller_and_passes_at_its_scale(machine: _Machine, scale: float) -> None:
    clock = Clock(scale, machine=machine)
    began, real = machine.wall, clock.seconds()
    assert clock.now() == 0.0
    machine.passes(10.0)
    assert clock.now() == 10.0 * scale
    assert clock.seconds() - real == 10.0
    assert clock.today() == machine.wall
    assert clock.seconds_until(16.0 * scale) == 6.0
    assert clock.seconds_until(4.0 * scale) == -6.0, "it is over"
    assert clock.wall_seconds(8.0) == 8.0 / scale
    assert clock.at(began + 3.0) == 3.0 * scale
    assert clock.at(began - 2.0) == -2.0 * scale, "before the controller started"
    assert clock.wall(25.0 * scale) == began + 25.0


def test_setting_the_system_clock_brings_no_round_sooner_or_later(machine: _Machine) -> None:
    for step in (3600.0, -7200.0):
        clock = Clock(2.0, machine=machine)
        machine.passes(10.0)
        clock.now()
        machine.wall += step
        clock.now()
        machine.passes(5.0)
        assert clock.now() == 30.0
        assert clock.seconds_until(40.0) == 5.0
        assert clock.wall(40.0) == machine.wall + 5.0, "people are told the time as it is set now"
        assert clock.at(machine.wall) == 30.0


def test_what_has_happened_was_not_later_than_now(machine: _Machine) -> None:
    clock = Clock(2.0, machine=machine)
    machine.passes(10.0)
    assert clock.past(machine.wall - 4.0) == 12.0
    assert clock.past(machine.wall) == 20.0
    assert clock.past(machine.wall + 4.0) == 20.0, "the wall clock was set back in between"


def test_a_machine_that_is_not_emulated_runs_in_real_time(machine: _Machine) -> None:
    clock = Clock(machine=machine)
    machine.passes(3.0)
    assert clock.now() == 3.0
