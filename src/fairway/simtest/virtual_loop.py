"""Time that passes only when nothing is left to do at a moment, and processes that live in it, each with an event loop.

All that is to happen stands in one heap, in the order of its time and then of its number, so the order is total and the
same in every run. A process is a loop of `asyncio` on that heap. One that is paused has what is due put aside until it
goes on; one that is killed never runs again: neither its callbacks nor what it would have done on its way out.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

_CALLBACK_SECONDS = 1e-6
"""What a callback takes: a program that waits for a moment that rounding puts a hair too late has to get there."""


class ProcessKilledError(BaseException):
    """The process that runs has been killed at this place."""


class Due:
    """Something that is to happen; as a handle of `asyncio`, it can be cancelled."""

    __slots__ = ("action", "arguments", "owner", "when")

    def __init__(
        self,
        when: float,
        action: Callable[..., object] | None,
        arguments: tuple[Any, ...],
        owner: VirtualProcess | None,
    ) -> None:
        self.when, self.action, self.arguments, self.owner = when, action, arguments, owner

    def cancel(self) -> None:
        """Let it not happen."""
        self.action, self.arguments = None, ()

    def cancelled(self) -> bool:
        """Whether it will not happen."""
        return self.action is None


class Timeline:
    """What is to happen, and what time it is. `current` is the process that runs at the moment."""

    def __init__(self) -> None:
        self.now = 0.0
        self.events = 0
        self.current: VirtualProcess | None = None
        self._heap: list[tuple[float, int, Due]] = []
        self._count = 0

    def at(
        self, when: float, action: Callable[..., object], *arguments: Any, owner: VirtualProcess | None = None
    ) -> Due:
        """Have something happen at a time, or now if that is over."""
        due = Due(when, action, arguments, owner)
        self.push(due)
        return due

    def push(self, due: Due) -> None:
        """Put something in its place in the order."""
        self._count += 1
        heapq.heappush(self._heap, (max(due.when, self.now), self._count, due))

    def run_until(self, until: float) -> None:
        """Let time pass."""
        heap = self._heap
        while heap and heap[0][0] <= until:
            when, _, due = heapq.heappop(heap)
            action = due.action
            if action is None:
                continue
            self.now = max(self.now, when)
            owner = due.owner
            if owner is None:
                self.events += 1
                action(*due.arguments)
            elif owner.alive:
                if owner.paused:
                    owner.put_aside.append(due)
                else:
                    self.events += 1
                    owner.run(action, due.arguments)
                    self.now += _CALLBACK_SECONDS
        self.now = max(self.now, until)


class VirtualProcess:
    """A process with an event loop in virtual time. `steps_to_live` counts its callbacks down to its death."""

    def __init__(self, timeline: Timeline, name: str, *, on_death: Callable[[VirtualProcess], None]) -> None:
        self.timeline, self.name = timeline, name
        self.loop = VirtualLoop(self)  # type: ignore[abstract]
        self.alive, self.paused = True, False
        self.put_aside: list[Due] = []
        self.steps_to_live: int | None = None
        self._on_death = on_death
        self._main: asyncio.Task[None] | None = None
        self._tasks: list[asyncio.Task[Any]] = []

    def start(self, main: Coroutine[Any, Any, None]) -> None:
        """Begin; the process ends with this coroutine."""
        self._main = self.loop.create_task(main)
        self._main.add_done_callback(lambda _: self.kill())

    @property
    def failure(self) -> BaseException | None:
        """With what it ended, if it did so by itself and not well."""
        if self._main is None or not self._main.done() or self._main.cancelled():
            return None
        return self._main.exception()

    def remember(self, task: asyncio.Task[Any]) -> None:
        """A task of this process, to be let go of when it is dead."""
        self._tasks.append(task)

    def run(self, action: Callable[..., object], arguments: tuple[Any, ...]) -> None:
        """Run one callback in it."""
        if self.steps_to_live is not None:
            self.steps_to_live -= 1
            if self.steps_to_live <= 0:
                self.kill()
                return
        with self.running(), suppress(ProcessKilledError):
            action(*arguments)

    def running(self) -> _Running:
        """While this lasts, it is the process that runs."""
        return _Running(self)

    def pause(self) -> None:
        """Let nothing of it happen."""
        self.paused = True

    def resume(self) -> None:
        """Let it go on, with all that has come due meanwhile."""
        self.paused = False
        put_aside, self.put_aside = self.put_aside, []
        for due in put_aside:
            self.timeline.push(due)

    def kill(self) -> None:
        """Let it be dead from now on."""
        if self.alive:
            self.alive = False
            self._on_death(self)

    def bury(self) -> None:
        """Let go of its coroutines; what they do on their way out has no effect, since a dead process has none."""
        assert not self.alive
        with self.running():
            for task in self._tasks:
                if not task.done():
                    with suppress(BaseException):
                        task.get_coro().close()
                    task._log_destroy_pending = False  # type: ignore[attr-defined]
                elif not task.cancelled():
                    task.exception()
        self._tasks.clear()
        self.put_aside.clear()


class _Running:
    """Sets and resets which process and which event loop run."""

    __slots__ = ("_before", "_loop_before", "_process")

    def __init__(self, process: VirtualProcess) -> None:
        self._process = process

    def __enter__(self) -> None:
        timeline = self._process.timeline
        self._before, self._loop_before = timeline.current, asyncio._get_running_loop()
        timeline.current = self._process
        asyncio._set_running_loop(self._process.loop)

    def __exit__(self, *_: object) -> None:
        self._process.timeline.current = self._before
        asyncio._set_running_loop(self._loop_before)


class VirtualLoop(asyncio.AbstractEventLoop):
    """As much of an event loop as programs without sockets and threads need."""

    def __init__(self, process: VirtualProcess) -> None:
        self._process, self._timeline = process, process.timeline

    def time(self) -> float:
        """Virtual seconds."""
        return self._timeline.now

    # The contexts of callbacks are not kept apart, and there is one thread.

    def call_soon(self, callback: Any, *args: Any, context: Any = None) -> Any:  # type: ignore[override]  # noqa: ARG002
        """As its base says."""
        return self._timeline.at(self._timeline.now, callback, *args, owner=self._process)

    def call_soon_threadsafe(  # type: ignore[override]
        self,
        callback: Any,
        *args: Any,
        context: Any = None,  # noqa: ARG002
    ) -> Any:
        """As its base says."""
        return self._timeline.at(self._timeline.now, callback, *args, owner=self._process)

    def call_later(  # type: ignore[override]
        self,
        delay: float,
        callback: Any,
        *args: Any,
        context: Any = None,  # noqa: ARG002
    ) -> Any:
        """As its base says."""
        return self._timeline.at(self._timeline.now + delay, callback, *args, owner=self._process)

    def call_at(self, when: float, callback: Any, *args: Any, context: Any = None) -> Any:  # type: ignore[override]  # noqa: ARG002
        """As its base says."""
        return self._timeline.at(when, callback, *args, owner=self._process)

    def create_future(self) -> asyncio.Future[Any]:
        """As its base says."""
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, *, name: str | None = None, context: Any = None) -> asyncio.Task[Any]:  # noqa: ARG002
        """As its base says."""
        task = asyncio.Task(coro, loop=self, name=name)
        self._process.remember(task)
        return task

    def get_debug(self) -> bool:
        """No."""
        return False

    def is_running(self) -> bool:
        """For as long as its process lives."""
        return self._process.alive

    def is_closed(self) -> bool:
        """When its process is dead."""
        return not self._process.alive

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Nothing: what matters shows in the history."""
