"""A thread that does long things one after the other while the worker's loop goes on, and tells it when each is done.

Stages run in one such thread and models are loaded in another, so that a model for the next task comes in while this
one computes: libraries such as onnxruntime let other threads run meanwhile.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Any

INLINE_SECONDS = 5e-4
"""A stage that takes less runs in the loop itself: handing it to a thread would take about as long."""

Done = Callable[[Any, BaseException | None], None]


class SideThread:
    """Runs functions in their order; `finished` is called in the loop's thread when `wake` is readable."""

    def __init__(self, name: str) -> None:
        self.wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._work: SimpleQueue[tuple[Callable[[], Any], Done]] = SimpleQueue()
        self._done: deque[tuple[Done, Any, BaseException | None]] = deque()
        self._thread = Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    def run(self, function: Callable[[], Any], done: Done) -> None:
        """Run a function; `done` gets what it returns, or what it raises."""
        self._work.put((function, done))

    def tell(self, done: Done, value: Any) -> None:
        """From within a function that runs: let the loop know something before it ends."""
        self._done.append((done, value, None))
        os.eventfd_write(self.wake, 1)

    def deliver(self) -> None:
        """In the loop's thread: tell what has ended."""
        os.eventfd_read(self.wake)
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
            os.eventfd_write(self.wake, 1)
