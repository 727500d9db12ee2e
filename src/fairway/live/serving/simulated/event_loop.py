"""An asyncio event loop in virtual time, for clients whose code is coroutines: each client has one.

It waits for nothing itself: what is to be called is planned in virtual time, beside all else that happens. When its
process dies, nothing more of it is called.
"""

from __future__ import annotations

import asyncio
from asyncio import events
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any

from fairway.live.serving.simulated.network import SimulatedLine, SimulatedNetwork
from fairway.live.serving.simulated.virtual_time import VirtualTime


class VirtualLoop:
    """What coroutines of a client need of a loop: callbacks, timers, tasks, and lines that can be read.

    `problems` are what no coroutine has caught.
    """

    def __init__(self, time: VirtualTime, network: SimulatedNetwork) -> None:
        self._time, self._network = time, network
        self._readers: dict[int, Callable[[], None]] = {}
        self._is_over = False
        self._loop: Any = self  # asyncio asks for more than it uses here
        self.problems: list[str] = []

    def end(self) -> None:
        """The process of this loop is dead."""
        self._is_over = True

    def begin_again(self) -> None:
        """Its coroutines go on, so that they can end."""
        self._is_over = False

    def time(self) -> float:
        """The virtual time."""
        return self._time.now()

    def get_debug(self) -> bool:
        """Nothing is watched."""
        return False

    def is_running(self) -> bool:
        """It runs as long as its process lives."""
        return not self._is_over

    def is_closed(self) -> bool:
        """It is closed when its process is dead."""
        return self._is_over

    def call_soon(self, callback: Any, *args: Any, context: Context | None = None) -> asyncio.Handle:
        """Call something at this moment, after all that was planned for it before."""
        handle = asyncio.Handle(callback, args, self._loop, context)
        self._time.at(self._time.now(), lambda: self._run(handle))
        return handle

    def call_later(
        self, delay: float, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Call something after some seconds."""
        return self.call_at(self._time.now() + delay, callback, *args, context=context)

    def call_at(self, when: float, callback: Any, *args: Any, context: Context | None = None) -> asyncio.TimerHandle:
        """Call something at a time."""
        handle = asyncio.TimerHandle(when, callback, args, self._loop, context)
        self._time.at(when, lambda: self._run(handle))
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        """A future of this loop."""
        return asyncio.Future(loop=self._loop)

    def create_task(self, coro: Coroutine[Any, Any, Any], **options: Any) -> asyncio.Task[Any]:
        """A task of this loop."""
        return asyncio.Task(coro, loop=self._loop, **options)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Something was raised that no coroutine catches."""
        if not self._is_over:
            self.problems.append(f"{context.get('message')}: {context.get('exception')!r}")

    def add_reader(self, fd: Any, callback: Any, *args: Any) -> None:
        """Call something when a line can be read, as long as it can."""
        line = self._network.lines[fd]
        self._readers[fd] = lambda: callback(*args)
        line.ready = lambda: self._is_readable(fd, line)
        if line.is_ready():
            self._is_readable(fd, line)

    def remove_reader(self, fd: Any) -> bool:
        """Do not wait for a line any more."""
        return self._readers.pop(fd, None) is not None

    def add_writer(self, fd: Any, callback: Any, *args: Any) -> None:
        """A simulated line takes everything at once."""
        raise NotImplementedError

    def remove_writer(self, fd: Any) -> bool:  # noqa: ARG002
        """Nothing waits to be written."""
        return False

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """It is passed over when its time comes."""

    def _is_readable(self, fd: int, line: SimulatedLine) -> None:
        self.call_soon(self._read, fd, line)

    def _read(self, fd: int, line: SimulatedLine) -> None:
        reader = self._readers.get(fd)
        if reader is not None and line.is_ready():
            reader()
            if fd in self._readers and line.is_ready():
                self._is_readable(fd, line)

    def _run(self, handle: asyncio.Handle) -> None:
        if self._is_over or handle.cancelled():
            return
        before = events._get_running_loop()
        events._set_running_loop(self._loop)
        try:
            handle._run()
        finally:
            events._set_running_loop(before)
