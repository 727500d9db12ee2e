"""Asks for workflows from asyncio code: many at a time over one connection to each worker.

What it says and hears is what `client` says and hears (`client_protocol`); only the waiting differs.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any

from fairway.live.serving.clients.client_protocol import (
    MOST_LOSSES,
    PATIENCE_SECONDS,
    ClientRequest,
    Deadline,
    NoWorkerAnswersError,
    RequestFailedError,
    Site,
    lost,
    pause_after,
)
from fairway.live.serving.seams.transport import Line, Message, WireError


class _Ear:
    """What a worker says of one request, for the coroutine that waits for it; None says that the worker is gone."""

    __slots__ = ("_came", "_waiter")

    def __init__(self) -> None:
        self._came: deque[Message | None] = deque()
        self._waiter: asyncio.Future[None] | None = None

    def put(self, heard: Message | None) -> None:
        self._came.append(heard)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def next(self, deadline: Deadline) -> Message | None:
        """What comes next; raises when time is over."""
        while not self._came:
            self._waiter = asyncio.get_running_loop().create_future()
            left = deadline.left()
            if left is None:
                await self._waiter
            else:
                with suppress(TimeoutError):
                    async with asyncio.timeout(left):
                        await self._waiter
        return self._came.popleft()

    def rest(self) -> list[Message]:
        """What the coroutine has not waited for."""
        return [heard for heard in self._came if heard is not None]


class _Connection:
    """A connection to one worker; `heard` are the ears of the coroutines that wait, by the name of their request."""

    def __init__(self, worker: int, line: Line, site: Site) -> None:
        self.worker = worker
        self.heard: dict[int, _Ear] = {}
        self.gone = False
        self._line, self._site = line, site
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(line.fileno(), self._read)

    def send(self, message: Message) -> None:
        if self.gone:
            return
        try:
            if self._line.send(message):
                self._loop.add_writer(self._line.fileno(), self._write)
        except OSError:
            self.close()

    def _write(self) -> None:
        try:
            if not self._line.flush():
                self._loop.remove_writer(self._line.fileno())
        except OSError:
            self.close()

    def _read(self) -> None:
        try:
            messages = self._line.receive()
        except WireError:
            messages = None
        if messages is None:
            self.close()
            return
        if self._line.unwritten:  # what came lets something go out that had to wait for it
            self._loop.add_writer(self._line.fileno(), self._write)
        for kind, name, *content in messages:
            if (ear := self.heard.get(name)) is not None:
                ear.put((kind, *content))
            else:
                self._site.unheard(kind, content)

    def close(self) -> None:
        if self.gone:
            return
        self.gone = True
        self._loop.remove_reader(self._line.fileno())
        self._loop.remove_writer(self._line.fileno())
        self._line.close()
        for ear in self.heard.values():
            ear.put(None)

    def forget(self, name: int) -> None:
        """No coroutine waits any more for what the worker says about a request."""
        ear = self.heard.pop(name, None)
        for kind, *content in () if ear is None else ear.rest():
            self._site.unheard(kind, content)


class AsyncServingClient:
    """A client of the application that is served from a directory, or that a `Site` describes; for one event loop."""

    def __init__(self, place: Path | str | Site) -> None:
        self.site = place if isinstance(place, Site) else Site.find(Path(place))
        self._names = itertools.count(1)
        self._connections: dict[int, _Connection] = {}
        self._workers = self.site.some_order()
        self._last: _Connection | None = None

    async def ask(self, workflow: str | None = None, /, *, deadline_seconds: float | None = None, **inputs: Any) -> Any:
        """Run a workflow and return its result; raises `RequestFailedError` if it has none."""
        async with aclosing(self.conversation(workflow, inputs, deadline_seconds)) as heard:
            async for kind, value in heard:
                if kind == "reply":
                    return value
        raise AssertionError

    async def stream(
        self, workflow: str | None = None, /, *, deadline_seconds: float | None = None, **inputs: Any
    ) -> AsyncIterator[Any]:
        """Run a workflow whose last stage yields, and get each piece as it comes."""
        async with aclosing(self.conversation(workflow, inputs, deadline_seconds)) as heard:
            async for kind, value in heard:
                if kind == "chunk":
                    yield value

    async def conversation(
        self, workflow: str | None, inputs: dict[str, Any], seconds: float | None, trace: str | None = None
    ) -> AsyncGenerator[tuple[str, Any], None]:
        """All that is heard of a request: `chunk` for each piece, `reply` at the end; leaving early cancels it.

        `trace` is the W3C `traceparent` of the trace that it belongs to.
        """
        site, name = self.site, next(self._names)
        number, deadline = site.number(workflow), Deadline(seconds, site.seams.now)
        parcel = site.values.pack(inputs)
        pieces, losses, over, busy = 0, 0, False, set[int]()
        gone: int | None = None
        connection: _Connection | None = None
        try:
            while not over:
                connection = await self._connected(deadline, busy)
                ear = connection.heard[name] = _Ear()
                connection.send(ClientRequest(name, number, parcel, deadline.left(), trace, gone).message())
                while (heard := await ear.next(deadline)) is not None:
                    kind, *content = heard
                    if kind == "refused":
                        if content[0] == "busy" and len(busy) < len(site.settings.doors) - 1:
                            busy.add(connection.worker)
                            break
                        over = True
                        raise RequestFailedError(*content)
                    if kind == "chunk" and content[0] != pieces:  # after a loss, the first ones come again
                        site.unheard(kind, content)
                        continue
                    try:
                        value = site.opened(content[-1])
                    except OSError:  # its maker has died, and its files are gone
                        connection.send(("cancel", name))
                        losses += 1
                        break
                    if kind == "reply":
                        over = True
                        yield "reply", value
                        break
                    pieces += 1
                    yield "chunk", value
                else:
                    losses += 1
                    gone = connection.worker
                if losses >= MOST_LOSSES:
                    raise lost(losses)
                connection.forget(name)
                if losses and not over:
                    await asyncio.sleep(pause_after(losses))
        finally:
            if connection is not None:
                if not over:
                    connection.send(("cancel", name))
                connection.forget(name)
            site.values.discard(parcel)

    async def close(self) -> None:
        """End all connections."""
        for connection in self._connections.values():
            connection.close()

    async def _connected(self, deadline: Deadline, busy: set[int]) -> _Connection:
        """A connection to the worker that has the fewest requests from here, of those that are there and not busy.

        Of several, it is the one that was asked last: it is warm, and the others may sleep on.
        """
        last = self._last
        if last is not None and not (last.gone or last.heard or busy):
            return last
        seams = self.site.seams
        end = seams.now() + PATIENCE_SECONDS
        while True:
            for worker in sorted(self._workers, key=self._waiting_at):
                if worker in busy:
                    continue
                found = self._connections.get(worker)
                if found is None or found.gone:
                    try:
                        line = seams.connect(worker)
                    except OSError:
                        continue
                    found = self._connections[worker] = _Connection(worker, line, self.site)
                self._last = found
                return found
            if busy:
                raise RequestFailedError("busy", "all workers have as many requests as they take; try again later")
            if seams.now() > end:
                raise NoWorkerAnswersError(f"no worker answers in {self.site.settings.directory}; is it still served?")
            deadline.left()
            await asyncio.sleep(0.05)

    def _waiting_at(self, worker: int) -> tuple[int, bool]:
        """How many requests from here a worker has, and whether another one was asked last."""
        found = self._connections.get(worker)
        return (0 if found is None or found.gone else len(found.heard), found is None or found is not self._last)
