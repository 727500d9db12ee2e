"""When something that works by turns takes its next one: when it is due, or when something has come for it."""

from __future__ import annotations

import math
from collections.abc import Callable

from fairway.live.serving.simulated.virtual_time import VirtualTime


class Turns:
    """Calls `turn` at the right moments, or later by its `lateness`; it returns when it is due again."""

    def __init__(
        self, time: VirtualTime, turn: Callable[[], float], lateness: Callable[[], float] = lambda: 0.0
    ) -> None:
        self._time, self._turn, self._lateness = time, turn, lateness
        self._planned_at = math.inf
        self._is_over = False

    def take_now(self) -> None:
        """Something has come: take a turn at this moment, after all that happens before in it."""
        if self._planned_at > self._time.now():
            self.take_at(self._time.now() + self._lateness())

    def take_at(self, time: float) -> None:
        """Take a turn at a time, or before."""
        at = max(time, self._time.now())
        if at < self._planned_at:
            self._planned_at = at
            self._time.at(at, lambda: self._take(at))

    def end(self) -> None:
        """Take no turn any more."""
        self._is_over = True

    def _take(self, at: float) -> None:
        if self._planned_at == at and not self._is_over:
            self._planned_at = math.inf
            self.take_at(self._turn())
