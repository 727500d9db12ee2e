"""The engine's clock: seconds since the controller started, as fast as the emulated accelerators run.

Real accelerators run at real time. Emulated ones can be run faster, and then everything that the engine counts in
seconds passes faster too, such as its rounds; what people see are always seconds of the wall clock. The engine's time
is that of the machine's monotonic clock: when the system clock is set, no round comes sooner or later.
"""

from __future__ import annotations

import time

from fairway.wall_clock import MachineClock, WallClock


class Clock:
    """Turns times of the wall clock (seconds since 1970) into the engine's, and back, as the wall clock is set now."""

    def __init__(self, time_scale: float = 1.0, *, machine: MachineClock = time) -> None:
        self.time_scale = time_scale
        self._clock = WallClock(machine)
        self._origin = self._clock.seconds()

    def today(self) -> float:
        """The time of the wall clock."""
        return self._clock.today()

    def seconds(self) -> float:
        """Real seconds since some moment, which never go back, for what happens every so often."""
        return self._clock.seconds()

    def earliest_since(self, wall: float) -> float:
        """The earliest time that the wall clock has shown since it showed this one: another if it was set back."""
        return self._clock.earliest_since(wall)

    def now(self) -> float:
        """The engine's time."""
        return (self._clock.seconds() - self._origin) * self.time_scale

    def seconds_until(self, engine: float) -> float:
        """How many real seconds there are until a time of the engine; below 0 if it is over."""
        return self._origin + engine / self.time_scale - self._clock.seconds()

    def at(self, wall: float) -> float:
        """The engine's time at a time of the wall clock; before 0 if that was before the controller started."""
        return (self._clock.seconds_at(wall) - self._origin) * self.time_scale

    def past(self, wall: float) -> float:
        """The same of something that has happened: now, if the wall clock was set back to before it."""
        return min(self.at(wall), self.now())

    def wall_seconds(self, engine_seconds: float) -> float:
        """How long so many of the engine's seconds take."""
        return engine_seconds / self.time_scale

    def wall(self, engine: float) -> float:
        """The time of the wall clock at a time of the engine."""
        return self._clock.wall(self._origin + engine / self.time_scale)
