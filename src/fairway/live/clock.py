"""The engine's clock: seconds since the controller started, as fast as the emulated accelerators run.

Real accelerators run at real time. Emulated ones can be run faster, and then everything that the engine counts in
seconds passes faster too, such as its rounds; what people see are always seconds of the wall clock.
"""

from __future__ import annotations

import time


class Clock:
    """Turns times of the wall clock (seconds since 1970) into the engine's, and back."""

    def __init__(self, time_scale: float = 1.0, origin: float | None = None) -> None:
        self.time_scale = time_scale
        self.origin = time.time() if origin is None else origin

    def now(self) -> float:
        """The engine's time."""
        return self.at(time.time())

    def at(self, wall: float) -> float:
        """The engine's time at a time of the wall clock; before 0 if that was before the controller started."""
        return (wall - self.origin) * self.time_scale

    def wall(self, engine: float) -> float:
        """The time of the wall clock at a time of the engine."""
        return self.origin + engine / self.time_scale
