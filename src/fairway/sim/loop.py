"""Virtual time: a queue of things that will happen, and a clock that jumps from one to the next.

After the core of SimPy, of which it takes the order of events: by time, then by priority, then by the sequence number
in which they were scheduled. It is a total order, so two runs that schedule the same things see them happen in the same
order; and what an event causes at its own time comes after all that was already due then with the same priority.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from typing import Final

Action = Callable[[], None]

URGENT: Final = 0
"""Before anything else at the same time: what the world does, such as a worker that is lost."""

NORMAL: Final = 1

LATE: Final = 2
"""After everything else at the same time: what must see all of it, such as the decision of a round."""


class Handle:
    """Something scheduled; can be cancelled until it happens."""

    __slots__ = ("_action",)

    def __init__(self, action: Action) -> None:
        self._action: Action | None = action

    def cancel(self) -> None:
        """Let it not happen; without effect if it has happened or been cancelled before."""
        self._action = None

    def take(self) -> Action | None:
        """The action, once; None if it was cancelled."""
        action, self._action = self._action, None
        return action


class Loop:
    """The clock, in seconds, and what is to come."""

    def __init__(self, start: float = 0.0) -> None:
        self._now = start
        self._scheduled: list[tuple[float, int, int, Handle]] = []
        self._number = 0
        self._stopped = False
        self.events = 0
        """How many things have happened."""

    @property
    def now(self) -> float:
        """The current time."""
        return self._now

    def at(self, time: float, action: Action, priority: int = NORMAL) -> Handle:
        """Let something happen at a time that is not over."""
        if not (time >= self._now and math.isfinite(time)):
            raise ValueError(f"cannot schedule at {time} s: it is {self._now} s now, and time does not go back")
        handle = Handle(action)
        heapq.heappush(self._scheduled, (time, priority, self._number, handle))
        self._number += 1
        return handle

    def after(self, delay: float, action: Action, priority: int = NORMAL) -> Handle:
        """Let something happen in so many seconds."""
        return self.at(self._now + delay, action, priority)

    def stop(self) -> None:
        """Let nothing more happen after what is happening now."""
        self._stopped = True

    def run(self, until: float = math.inf) -> None:
        """Let everything happen that is scheduled up to and including `until`, and what that schedules in turn.

        The clock then stands at `until`, or at the last event if there is no such limit.
        """
        while not self._stopped and self._scheduled and self._scheduled[0][0] <= until:
            time, _, _, handle = heapq.heappop(self._scheduled)
            action = handle.take()
            if action is not None:
                self._now = time
                self.events += 1
                action()
        if math.isfinite(until) and not self._stopped:
            self._now = max(self._now, until)
