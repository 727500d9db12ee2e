"""Asks for workflows from Python, waiting for each answer: straight to a worker, with nothing in between.

    client = ServingClient(directory)
    text = client.ask(image=page)
    for piece in client.stream("summarise", text=text):
        print(piece)

Any thread may use it, and ask for something while another answer is still coming in: each conversation has a connection
for itself. `close`, or the end of a `with` block, ends them all.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import closing, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

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


class _GoneError(Exception):
    """The worker at the other end is gone."""


class _Connection(NamedTuple):
    """A line to a worker."""

    worker: int
    line: Line


class ServingClient:
    """A client of the application that is served from a directory, or that a `Site` describes."""

    def __init__(self, place: Path | str | Site) -> None:
        self._site = place if isinstance(place, Site) else Site.find(Path(place))
        self._names = itertools.count(1)
        self._free: deque[_Connection] = deque()  # the last one used is taken first
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def workflows(self) -> tuple[str, ...]:
        """What can be asked for."""
        return self._site.workflows

    def ask(self, workflow: str | None = None, /, *, deadline_seconds: float | None = None, **inputs: Any) -> Any:
        """Run a workflow and return its result; raises `RequestFailedError` if it has none."""
        with closing(self._conversation(workflow, inputs, deadline_seconds)) as heard:
            for kind, value in heard:
                if kind == "reply":
                    return value
        raise AssertionError

    def stream(
        self, workflow: str | None = None, /, *, deadline_seconds: float | None = None, **inputs: Any
    ) -> Iterator[Any]:
        """Run a workflow whose last stage yields, and get each piece as it comes; leaving early cancels it."""
        with closing(self._conversation(workflow, inputs, deadline_seconds)) as heard:
            for kind, value in heard:
                if kind == "chunk":
                    yield value

    def close(self) -> None:
        """End the connections; those that are in use end with their conversation."""
        self._closed = True
        while self._free:
            self._free.pop().line.close()

    def _conversation(
        self, workflow: str | None, inputs: dict[str, Any], seconds: float | None
    ) -> Generator[tuple[str, Any], None, None]:
        site, name = self._site, next(self._names)
        number, deadline = site.number(workflow), Deadline(seconds, site.seams.now)
        parcel = site.values.pack(inputs)
        pieces, losses, busy = 0, 0, set[int]()
        gone: int | None = None
        used: _Connection | None = None
        try:
            while True:
                used = connection = self._connected(deadline, busy)
                try:
                    connection.line.send(ClientRequest(name, number, parcel, deadline.left(), lost=gone).message())
                    for kind, *content in self._heard(connection.line, name, deadline):
                        if kind == "chunk":
                            if content[0] == pieces:  # after the loss of a worker, the first ones come again
                                pieces += 1
                                yield "chunk", site.opened(content[1])
                            else:
                                site.unheard(kind, content)
                        elif kind == "reply":
                            value = site.opened(content[0])
                            self._give_back(connection)
                            used = None
                            yield "reply", value
                            return
                        elif content[0] == "busy" and len(busy) < len(site.settings.doors) - 1:
                            busy.add(connection.worker)
                            break
                        else:
                            self._give_back(connection)
                            used = None
                            raise RequestFailedError(*content)
                    self._give_back(connection)
                except (_GoneError, OSError, WireError):
                    connection.line.close()
                    used, gone = None, connection.worker
                    losses += 1
                    if losses >= MOST_LOSSES:
                        raise lost(losses) from None
                    site.seams.sleep(pause_after(losses))
                used = None
        finally:
            if used is not None:  # the caller has left, or time is over
                with suppress(OSError):
                    used.line.send(("cancel", name))
                self._give_back(used)
            site.values.discard(parcel)

    def _heard(self, line: Line, name: int, deadline: Deadline) -> Iterator[Message]:
        """What the worker says about a request."""
        while True:
            messages = line.receive(deadline.left())
            if messages is None:
                raise _GoneError
            for kind, about, *content in messages:
                if about == name:
                    yield (kind, *content)
                else:
                    self._site.unheard(kind, content)

    def _connected(self, deadline: Deadline, busy: set[int]) -> _Connection:
        """A connection to some worker, but not to one that has too much to do."""
        with suppress(IndexError):
            for _ in range(len(self._free)):
                connection = self._free.pop()
                if not self._is_alive(connection):
                    connection.line.close()
                elif connection.worker not in busy:
                    return connection
                else:
                    self._free.appendleft(connection)
        site, seams = self._site, self._site.seams
        end = seams.now() + PATIENCE_SECONDS
        while True:
            for worker in site.some_order():
                if worker not in busy:
                    with suppress(OSError):
                        return _Connection(worker, seams.connect(worker))
            if busy:
                raise RequestFailedError("busy", "all workers have as many requests as they take; try again later")
            if seams.now() > end:
                raise NoWorkerAnswersError(f"no worker answers in {site.settings.directory}; is it still served?")
            deadline.left()
            seams.sleep(0.05)

    def _is_alive(self, connection: _Connection) -> bool:
        """Whether the worker of an idle connection is still there; what it said of requests that are over is dropped.

        All of it has to be heard to know: the end of a connection comes after everything that was said over it.
        """
        try:
            while messages := connection.line.receive():
                for kind, _, *content in messages:
                    self._site.unheard(kind, content)
        except WireError:
            return False
        return messages is not None

    def _give_back(self, connection: _Connection) -> None:
        if self._closed:
            connection.line.close()
        else:
            self._free.append(connection)
