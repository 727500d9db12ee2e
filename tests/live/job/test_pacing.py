"""How a job is slowed down to a rate, and how its own rate is measured, on a clock that the test sets."""

from __future__ import annotations

from fairway.live.job.pacing import Meter, Pace


class Clock:
    """Sleeping lets its time pass."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def test_steps_take_as_long_as_the_rate_says_and_work_counts() -> None:
    clock = Clock()
    pace = Pace(clock, clock.sleep)
    pace.step()
    assert clock.slept == [], "without a rate, as fast as it can"
    pace.set(4.0)
    clock.now += 0.125
    pace.step()
    assert clock.slept == [0.125]
    clock.now += 0.25
    pace.step()
    assert clock.slept == [0.125], "the step took all of its time"


def test_so_little_that_no_sleep_is_worth_it_is_added_up() -> None:
    clock = Clock()
    pace = Pace(clock, clock.sleep)
    pace.set(1024.0)
    for _ in range(3):
        pace.step()
    assert clock.slept == [3 / 1024]


def test_what_was_lost_is_caught_up_but_no_more_than_two_seconds_of_it() -> None:
    clock = Clock()
    pace = Pace(clock, clock.sleep)
    pace.set(1.0)
    clock.now += 10.0
    for _ in range(3):
        pace.step()
    assert clock.slept == [], "9 s late: it stays 2 s behind, and the next two steps may follow at once"
    pace.step()
    assert clock.slept == [1.0]


def test_the_same_rate_again_changes_nothing_another_begins_now_and_pauses_do_not_count() -> None:
    clock = Clock()
    pace = Pace(clock, clock.sleep)
    pace.set(1.0)
    clock.now += 0.5
    pace.set(1.0)
    pace.step()
    assert clock.slept == [0.5]
    clock.now += 0.5
    pace.set(2.0)
    pace.step()
    assert clock.slept == [0.5, 0.5]
    clock.now += 3.0
    pace.pause(3.0)
    pace.step()
    assert clock.slept == [0.5, 0.5, 0.5]
    clock.now += 1.5
    pace.begin()
    pace.step()
    assert clock.slept == [0.5] * 4


def test_the_rate_is_that_between_the_first_and_the_last_mark_without_pauses() -> None:
    clock = Clock()
    meter = Meter(clock)
    assert meter.steps_per_second is None
    meter.mark(1)
    assert meter.steps_per_second is None
    clock.now += 2.0
    meter.mark(9)
    assert meter.steps_per_second == 4.0
    clock.now += 5.0
    meter.pause(3.0)
    meter.mark(17)
    assert meter.steps_per_second == 4.0
    meter.restart()
    assert meter.steps_per_second is None
    meter.mark(17)
    clock.now += 1.0
    meter.mark(17)
    assert meter.steps_per_second is None, "nothing was done"


def test_only_the_last_sixty_marks_count() -> None:
    clock = Clock()
    meter = Meter(clock)
    for step in range(60):
        meter.mark(step)
        clock.now += 1.0
    for step in range(60, 120):
        meter.mark(60 + 3 * (step - 60))
        clock.now += 1.0
    assert meter.steps_per_second == 3.0
