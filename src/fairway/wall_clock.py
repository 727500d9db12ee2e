"""The two clocks of a machine: one that decides, and one for people, which the machine's owner may set at any moment.

`seconds` is the monotonic clock: rounds, waits and intervals go by it, and it never goes back. `today` is the wall
clock: for what people read, for deadlines given as dates, and for times that outlive the process. When the system clock
is set by an hour, `today` follows at once, and nothing that was timed by `seconds` notices.
"""

from __future__ import annotations

import time
from collections import deque
from threading import Lock
from typing import Protocol

_STEP_SECONDS = 0.1
"""By how much both clocks have to differ from before: less is the time between two readings."""

_REMEMBERED = 100


class MachineClock(Protocol):
    """What `time` offers; tests have another."""

    def time(self) -> float:
        """Seconds since 1970."""
        ...

    def monotonic(self) -> float:
        """Seconds since some moment, which never go back."""
        ...


class WallClock:
    """Both clocks of a machine, and the steps back of the one for people. Any thread may ask."""

    def __init__(self, machine: MachineClock = time) -> None:
        self._machine = machine
        self._lock = Lock()
        self._read = machine.monotonic()
        self._offset = machine.time() - self._read
        self._steps_back: deque[tuple[float, float]] = deque(maxlen=_REMEMBERED)

    def seconds(self) -> float:
        """Seconds since some moment, which never go back and are never set."""
        return self._machine.monotonic()

    def today(self) -> float:
        """Seconds since 1970, as the system clock has them now."""
        now = self._machine.monotonic()
        return now + self._followed(now)

    def wall(self, seconds: float) -> float:
        """The time on the wall when `seconds` was or will be this, as the system clock is set now."""
        return seconds + self._followed(self._machine.monotonic())

    def seconds_at(self, wall: float) -> float:
        """What `seconds` was or will be at a time on the wall, as the system clock is set now."""
        return wall - self._followed(self._machine.monotonic())

    def earliest_since(self, wall: float) -> float:
        """The earliest time that the wall clock has shown since it showed this one: another if it was set back."""
        self.today()
        with self._lock:
            for before, after in self._steps_back:
                if after < wall <= before:
                    wall = after
        return wall

    def _followed(self, now: float) -> float:
        """What the wall clock is ahead of the other; notes a step since the last reading."""
        with self._lock:
            offset = self._machine.time() - now
            step, elapsed = offset - self._offset, now - self._read
            if abs(step) > _STEP_SECONDS:
                if step < 0:  # at some moment since the last reading
                    self._steps_back.append((now + self._offset, now + offset - elapsed))
                self._offset = offset
            self._read = max(now, self._read)
            return self._offset
