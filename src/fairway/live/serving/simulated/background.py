"""Background work in virtual time: done at the moment when it begins, and ended when it was expected to have."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from fairway.live.serving.seams.background import Done
from fairway.live.serving.simulated.virtual_time import VirtualTime


class SimulatedBackground:
    """Does one thing after the other, as long as its process lives."""

    def __init__(self, time: VirtualTime, wake: Callable[[], None]) -> None:
        self._time, self._wake = time, wake
        self._free_at = 0.0
        self._is_closed = False
        self._reported: list[tuple[Done, Any, BaseException | None]] = []
        self._done: deque[tuple[Done, Any, BaseException | None]] = deque()

    def run(self, function: Callable[[], Any], done: Done, seconds: float) -> None:
        """Run a function after those before; it ends so many seconds after it began."""
        begins = max(self._time.now(), self._free_at)
        self._free_at = begins + seconds
        self._time.at(begins, lambda: self._begin(function, done, seconds))

    def report(self, done: Done, value: Any) -> None:
        """From within a function that runs: hand the loop something, which it gets when the function has ended."""
        self._reported.append((done, value, None))

    def sleep(self, seconds: float) -> None:
        """Nothing waits for real; what a function takes is said beforehand."""

    def deliver(self) -> None:
        """In the loop: call `done` of all that has ended or was reported."""
        while self._done:
            done, value, problem = self._done.popleft()
            done(value, problem)

    def close(self) -> None:
        """The process is dead: nothing more begins."""
        self._is_closed = True

    def _begin(self, function: Callable[[], Any], done: Done, seconds: float) -> None:
        if self._is_closed:
            return
        try:
            value, problem = function(), None
        except BaseException as error:  # a stage may raise anything, and the worker outlives it
            value, problem = None, error
        reported, self._reported = self._reported, []
        self._time.after(seconds, lambda: self._end([*reported, (done, value, problem)]))

    def _end(self, done: list[tuple[Done, Any, BaseException | None]]) -> None:
        self._done.extend(done)
        self._wake()
