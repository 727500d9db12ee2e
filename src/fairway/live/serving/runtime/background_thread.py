"""A thread beside a worker's loop: stages that take a while run in one, models are loaded in another.

What has ended is kept until the loop, which is woken, wants to hear of it. A stage that lets go of the interpreter, as
all that compute in libraries do, lets the loop go on meanwhile.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Any

from fairway.live.serving.runtime.process_memory import give_back
from fairway.live.serving.seams.background import Done

INLINE_SECONDS = 5e-4
"""A stage that takes less runs in the loop itself: handing it to a thread would take about as long."""


class BackgroundThread:
    """Runs functions in their order, and calls `wake` when one has ended; `deliver` says so to the loop."""

    def __init__(self, name: str, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._work: SimpleQueue[tuple[Callable[[], Any], Done]] = SimpleQueue()
        self._done: deque[tuple[Done, Any, BaseException | None]] = deque()
        self._thread = Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    def run(self, function: Callable[[], Any], done: Done, seconds: float = 0.0) -> None:  # noqa: ARG002
        """Run a function; `done` gets what it returns, or what it raises."""
        self._work.put((function, done))

    def report(self, done: Done, value: Any) -> None:
        """From within a function that runs: hand the loop something before it ends."""
        self._done.append((done, value, None))
        self._wake()

    def sleep(self, seconds: float) -> None:
        """From within a function that runs: wait."""
        time.sleep(seconds)

    def give_back_memory(self) -> None:
        """From within a function that runs: collect garbage, and give the memory back to the system."""
        give_back()

    def deliver(self) -> None:
        """In the loop's thread: call `done` of all that has ended or was reported."""
        while self._done:
            done, value, problem = self._done.popleft()
            done(value, problem)

    def _serve(self) -> None:
        while True:
            function, done = self._work.get()
            try:
                value, problem = function(), None
            except BaseException as error:  # a stage may raise anything, and the worker outlives it
                value, problem = None, error
            self._done.append((done, value, problem))
            del function, done, value, problem  # or the last result would live until the next work comes
            try:
                self._wake()
            except OSError:  # the work has closed descriptors that were not its own: the loop would never wake again
                os._exit(1)
