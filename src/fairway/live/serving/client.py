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
import time
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import closing, suppress
from pathlib import Path
from select import POLLIN, POLLOUT, poll
from types import TracebackType
from typing import Any, NamedTuple, Self

from fairway.live.serving.talk import (
    MOST_LOSSES,
    PATIENCE_SECONDS,
    Asked,
    Deadline,
    NobodyAnswersError,
    RequestFailedError,
    Site,
    lost,
    pause_after,
)
from fairway.live.serving.wire import Channel, WireError, connect


class _GoneError(Exception):
    """The worker at the other end is gone."""


class _Line(NamedTuple):
    """A connection to a worker."""

    worker: int
    channel: Channel


class ServingClient:
    """A client of the application that is served from a directory."""

    def __init__(self, directory: Path | str) -> None:
        self._site = Site.find(Path(directory))
        self._names = itertools.count(1)
        self._free: deque[_Line] = deque()  # the last one used is taken first
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
            self._free.pop().channel.close()

    def _conversation(
        self, workflow: str | None, inputs: dict[str, Any], seconds: float | None
    ) -> Generator[tuple[str, Any], None, None]:
        site, name = self._site, next(self._names)
        number, deadline = site.number(workflow), Deadline(seconds)
        parcel = site.buffers.pack(inputs)
        pieces, losses, busy = 0, 0, set[int]()
        line: _Line | None = None
        try:
            while True:
                line = used = self._connected(deadline, busy)
                try:
                    used.channel.send(Asked(name, number, parcel, deadline.left()).message())
                    for kind, *content in self._heard(used.channel, name, deadline):
                        if kind == "chunk":
                            if content[0] == pieces:  # after the loss of a worker, the first ones come again
                                pieces += 1
                                yield "chunk", site.opened(content[1])
                            else:
                                site.unheard(kind, content)
                        elif kind == "reply":
                            value = site.opened(content[0])
                            self._give_back(used)
                            line = None
                            yield "reply", value
                            return
                        elif content[0] == "busy" and len(busy) < len(site.settings.doors) - 1:
                            busy.add(used.worker)
                            break
                        else:
                            self._give_back(used)
                            line = None
                            raise RequestFailedError(*content)
                    self._give_back(used)
                except (_GoneError, OSError, WireError):
                    used.channel.close()
                    line = None
                    losses += 1
                    if losses >= MOST_LOSSES:
                        raise lost(losses) from None
                    time.sleep(pause_after(losses))
                line = None
        finally:
            if line is not None:  # the caller has left, or time is over
                with suppress(OSError):
                    line.channel.send(("cancel", name))
                self._give_back(line)
            site.buffers.discard(parcel)

    def _heard(self, channel: Channel, name: int, deadline: Deadline) -> Iterator[tuple[Any, ...]]:
        """What the worker says about a request."""
        waiting = poll()
        while True:
            waiting.register(channel, POLLIN | POLLOUT if channel.unwritten else POLLIN)
            left = deadline.left()
            if not waiting.poll(None if left is None else left * 1000):
                continue
            channel.flush()
            messages = channel.receive()
            if messages is None:
                raise _GoneError
            for kind, about, *content in messages:
                if about == name:
                    yield (kind, *content)
                else:
                    self._site.unheard(kind, content)

    def _connected(self, deadline: Deadline, busy: set[int]) -> _Line:
        """A connection to some worker, but not to one that has too much to do."""
        with suppress(IndexError):
            for _ in range(len(self._free)):
                line = self._free.pop()
                if not self._is_alive(line):
                    line.channel.close()
                elif line.worker not in busy:
                    return line
                else:
                    self._free.appendleft(line)
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            for worker in self._site.some_order():
                if worker not in busy:
                    with suppress(OSError):
                        return _Line(worker, Channel(connect(self._site.settings.socket(worker))))
            if busy:
                raise RequestFailedError("busy", "all workers have as many requests as they take; try again later")
            if time.monotonic() > end:
                raise NobodyAnswersError(f"no worker answers in {self._site.settings.directory}; is it still served?")
            deadline.left()
            time.sleep(0.05)

    def _is_alive(self, line: _Line) -> bool:
        """Whether the worker of an idle connection is still there; what it had to say to others before is dropped.

        All of it has to be heard to know: the end of a connection comes after everything that was said over it.
        """
        try:
            while messages := line.channel.receive():
                for kind, _, *content in messages:
                    self._site.unheard(kind, content)
        except WireError:
            return False
        return messages is not None

    def _give_back(self, line: _Line) -> None:
        if self._closed:
            line.channel.close()
        else:
            self._free.append(line)
