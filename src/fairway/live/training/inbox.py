"""How other threads reach the one that runs an event loop: things to do, in order, and questions that are answered.

A thread that waits for an answer gets one whatever happens: when the loop is over, all threads that wait get an error,
and so does every one that asks later.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from threading import Lock
from typing import Any, TypeVar

from fairway.errors import FairwayError

T = TypeVar("T")


class OverError(FairwayError):
    """The loop that should do what is asked has ended."""


class Inbox:
    """The way in to one event loop; `open` and `take` are for the loop's own thread, the rest for any."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._over = False
        self._asked: set[Future[Any]] = set()
        self._actions: deque[Callable[[], None]] = deque()
        self._news = asyncio.Event()

    def open(self) -> None:
        """Let the running loop be the one."""
        with self._lock:
            self._loop = asyncio.get_running_loop()

    def post(self, action: Callable[[], None]) -> bool:
        """Have something done; False if the loop does not run."""
        return self._call(self.put, action)

    def put(self, action: Callable[[], None]) -> None:
        """Have something done, from the loop's own thread."""
        self._actions.append(action)
        self._news.set()

    def ask(self, question: Callable[[], T]) -> T:
        """Have something answered as soon as the loop gets to it, also before what was posted."""
        answer: Future[T] = self.promise()

        def reply() -> None:
            try:
                answer.set_result(question())
            except Exception as error:
                answer.set_exception(error)

        if not self._call(reply):
            self.break_promise(answer)
        return answer.result()

    def promise(self) -> Future[Any]:
        """Something to wait for, which is kept or fails with the loop."""
        promised: Future[Any] = Future()
        with self._lock:
            if self._over or self._loop is None:
                raise OverError("the controller does not run")
            self._asked.add(promised)
        promised.add_done_callback(self._asked.discard)
        return promised

    def break_promise(self, promised: Future[Any]) -> None:
        """Nothing comes of it."""
        with suppress(Exception):  # it was kept in the meantime
            promised.set_exception(OverError("the controller has stopped"))

    async def wait(self, seconds: float) -> None:
        """Until something is to be done, or so long."""
        if not self._actions:
            with suppress(TimeoutError):
                async with asyncio.timeout(max(seconds, 0.0)):
                    await self._news.wait()
        self._news.clear()

    def take(self) -> Callable[[], None] | None:
        """The next thing to do."""
        return self._actions.popleft() if self._actions else None

    def close(self) -> None:
        """The loop is over."""
        with self._lock:
            self._over = True
            waiting = list(self._asked)
        for promised in waiting:
            self.break_promise(promised)

    def _call(self, function: Callable[..., object], *arguments: object) -> bool:
        with self._lock:
            if self._over or self._loop is None:
                return False
            try:
                self._loop.call_soon_threadsafe(function, *arguments)
            except RuntimeError:  # the loop is closed
                return False
            return True
