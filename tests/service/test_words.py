"""Durations and states of workers in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fairway.service.words import clock_time, span
from fairway.service.worker_state import state_of
from fairway.store.records import Worker


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0 s"), (119.4, "119 s"), (120, "2 min"), (150, "2 min"), (600, "10 min"), (7199, "120 min"),
        (7200, "2.0 h"), (12600, "3.5 h"),
    ],
)  # fmt: skip
def test_a_duration_is_said_in_the_unit_that_fits(seconds: float, said: str) -> None:
    assert span(seconds) == said


def test_a_time_beyond_all_calendars_is_out_of_sight() -> None:
    assert clock_time(1e18) == "a time out of sight"
    assert len(clock_time(1e9)) == 8


def test_the_first_of_lost_drained_busy_and_free_that_applies_is_said() -> None:
    worker = Worker("v100", 0, "agent", "GPU-0", emulated=False, registered_at=1.0)
    assert (state_of(worker, held=False), state_of(worker, held=True)) == ("free", "busy")
    drained = replace(worker, drained_at=0.0)
    assert {state_of(drained, held=held) for held in (False, True)} == {"drained"}
    lost = replace(drained, lost_at=0.0)
    assert {state_of(lost, held=held) for held in (False, True)} == {"lost"}
