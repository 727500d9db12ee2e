"""Virtual time: things happen at their moment, in the order of their moments, and nothing takes time in between."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable


class VirtualTime:
    """A clock that stands still until it is advanced; what happens at one moment keeps the order of its planning."""

    def __init__(self) -> None:
        self._now = 0.0
        self._planned: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._advances = False

    def now(self) -> float:
        """The time."""
        return self._now

    def at(self, time: float, action: Callable[[], None]) -> None:
        """Let something happen at a time; one that has passed means now."""
        heapq.heappush(self._planned, (max(time, self._now), next(self._numbers), action))

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Let something happen after some seconds."""
        self.at(self._now + seconds, action)

    def advance(self, seconds: float | None, until: Callable[[], bool] = lambda: False) -> None:
        """Let time pass, no longer than this (None: without end), or until a condition holds."""
        assert not self._advances, "what happens at a moment must not wait"
        end = math.inf if seconds is None else self._now + seconds
        self._advances = True
        try:
            while not until() and self._planned and self._planned[0][0] <= end:
                self._now, _, action = heapq.heappop(self._planned)
                action()
            if not until() and end < math.inf:
                self._now = end
        finally:
            self._advances = False
        assert seconds is not None or until(), "a wait without end, and nothing is planned that could end it"
