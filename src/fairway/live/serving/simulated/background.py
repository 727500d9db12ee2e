"""Background work in virtual time: done at the moment when it begins, and ended when it was expected to have.

What runs may say that it takes longer (`spend`), or that it never ends (`never_end`), which is how a simulated stage
or load waits. What it has written in a lane as ended counts as ended with the work.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from fairway.live.serving.seams.background import Done
from fairway.live.serving.simulated.life import Life, ProcessEnded
from fairway.live.serving.simulated.virtual_time import VirtualTime

_Work = tuple[Callable[[], Any], Done, float]
_Result = tuple[Done, Any, BaseException | None]


class SimulatedBackground:
    """Does one thing after the other, as long as its process lives; `runs` says which one runs on the machine now."""

    def __init__(
        self, time: VirtualTime, wake: Callable[[], None], life: Life, runs: Callable[[SimulatedBackground | None], Any]
    ) -> None:
        self.life = life
        self.hangs = False
        self.ends_later: list[Callable[[], None]] = []
        self.now = time.now
        self._time, self._wake, self._runs = time, wake, runs
        self._work: deque[_Work] = deque()
        self._is_busy = False
        self._is_closed = False
        self._extra = 0.0
        self._reported: list[_Result] = []
        self._done: deque[_Result] = deque()

    def run(self, function: Callable[[], Any], done: Done, seconds: float) -> None:
        """Run a function after those before; it ends so many seconds after it began."""
        self._work.append((function, done, seconds))
        if not self._is_busy:
            self._next()

    def report(self, done: Done, value: Any) -> None:
        """From within a function that runs: hand the loop something, which it gets before the function has ended."""
        self._reported.append((done, value, None))

    def sleep(self, seconds: float) -> None:
        """Nothing waits for real: the work takes so much longer."""
        self._extra += seconds

    def spend(self, seconds: float) -> None:
        """From within a function that runs: it takes so many seconds longer than expected."""
        self._extra += seconds

    def never_end(self) -> None:
        """From within a function that runs: it hangs here, and nothing after it begins."""
        self.hangs = True
        raise ProcessEnded("a stage or a load that hangs")

    def give_back_memory(self) -> None:
        """One process has the memory of all, and keeps it."""

    def deliver(self) -> None:
        """In the loop: call `done` of all that has ended or was reported."""
        while self._done:
            done, value, problem = self._done.popleft()
            done(value, problem)

    def close(self) -> None:
        """The process is dead: nothing more begins."""
        self._is_closed = True
        self._work.clear()

    def _next(self) -> None:
        self._is_busy = bool(self._work)
        if self._work:
            work = self._work.popleft()
            self._time.at(self._time.now(), lambda: self._begin(*work))

    def _begin(self, function: Callable[[], Any], done: Done, seconds: float) -> None:
        if self._is_gone():
            return
        if self.life.is_halted:
            self.life.later.append(lambda: self._begin(function, done, seconds))
            return
        self._extra = 0.0
        before = self._runs(self)
        try:
            value, problem = function(), None
        except BaseException as error:  # a stage may raise anything, and the worker outlives it
            value, problem = None, error
        finally:
            self._runs(before)
        reported, self._reported = self._reported, []
        ends_later, self.ends_later = self.ends_later, []
        if self._is_gone() or self.hangs:
            return
        seconds += self._extra
        for position, each in enumerate(reported, start=1):
            self._time.after(seconds * position / (len(reported) + 1), lambda each=each: self._hand_over([each]))  # type: ignore[misc]
        self._time.after(seconds, lambda: self._end((done, value, problem), ends_later))

    def _end(self, result: _Result, ends_later: list[Callable[[], None]]) -> None:
        if self._is_gone():
            return
        for each in ends_later:
            each()
        self._hand_over([result])
        self._next()

    def _is_gone(self) -> bool:
        return self._is_closed or self.life.is_over

    def _hand_over(self, done: list[_Result]) -> None:
        self._done.extend(done)
        self._wake()
