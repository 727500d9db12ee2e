"""The engine's clock: seconds since the controller started, as fast as the emulated accelerators run.

Real accelerators run at real time. Emulated ones can be run faster, and then everything that the engine counts in
seconds passes faster too, such as its rounds; what people see are always seconds of the wall clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable


class Clock:
    """Turns times of the wall clock (seconds since 1970) into the engine's, and back."""

    def __init__(self, time_scale: float = 1.0, *, today: Callable[[], float] = time.time) -> None:
        self.time_scale = time_scale
        self._today = today
        self._origin = today()

    def today(self) -> float:
        """The time of the wall clock."""
        return self._today()

    def now(self) -> float:
        """The engine's time."""
        return self.at(self._today())

    def at(self, wall: float) -> float:
        """The engine's time at a time of the wall clock; before 0 if that was before the controller started."""
        return (wall - self._origin) * self.time_scale

    def wall_seconds(self, engine_seconds: float) -> float:
        """How long so many of the engine's seconds take."""
        return engine_seconds / self.time_scale

    def wall(self, engine: float) -> float:
        """The time of the wall clock at a time of the engine."""
        return self._origin + engine / self.time_scale
