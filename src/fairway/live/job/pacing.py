"""Slows a job down to the rate of an emulated accelerator, and measures how fast a job really goes."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

_SHORTEST_SLEEP = 0.002
_MOST_BEHIND = 2.0
"""A job that was held up, by a busy machine, catches up at most so many seconds; a real accelerator would not wait."""


class Pace:
    """Lets steps happen at a rate: sleeps for as long as the job is ahead of it."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._clock, self._sleep = clock, sleep
        self._rate: float | None = None
        self._due = clock()

    def set(self, steps_per_second: float | None) -> None:
        """From now on so fast; None lets the job go as fast as it can."""
        if steps_per_second != self._rate:
            self._rate = steps_per_second
            self._due = self._clock()

    def begin(self) -> None:
        """The first step begins now."""
        self._due = self._clock()

    def step(self) -> None:
        """A step was done."""
        if not self._rate:
            return
        now = self._clock()
        self._due = max(self._due + 1 / self._rate, now - _MOST_BEHIND)
        if self._due - now >= _SHORTEST_SLEEP:
            self._sleep(self._due - now)

    def pause(self, seconds: float) -> None:
        """Time that was spent on something else than steps, such as a checkpoint."""
        self._due += seconds


class Meter:
    """Steps per second over the last half minute or so, without the time spent on checkpoints.

    The first step, in which libraries load and kernels are compiled, is left out.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._paused = 0.0
        self._marks: deque[tuple[int, float]] = deque(maxlen=60)

    def pause(self, seconds: float) -> None:
        """Time that does not count."""
        self._paused += seconds

    def restart(self) -> None:
        """What was measured so far does not hold any more."""
        self._marks.clear()

    def mark(self, step: int) -> None:
        """So many steps are done now; to be called after the first one and then every half second or so."""
        self._marks.append((step, self._clock() - self._paused))

    @property
    def steps_per_second(self) -> float | None:
        """None before there is anything to measure."""
        if len(self._marks) < 2:
            return None
        (first, since), (last, now) = self._marks[0], self._marks[-1]
        return (last - first) / (now - since) if last > first and now > since else None
