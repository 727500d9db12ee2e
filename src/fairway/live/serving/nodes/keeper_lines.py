"""The supervisor's lines to the keepers of all nodes: what each has to know, and what all must know before going on.

A node whose line has ended is lost: it is not waited for, and is told nothing more. What keepers say of themselves goes
to `heard`.
"""

from __future__ import annotations

import itertools
import select
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from fairway.live.serving.nodes.address_book import Place
from fairway.live.serving.nodes.guarded_channel import Credentials, called
from fairway.live.serving.seams.transport import Line, Message, WireError

_PATIENCE_SECONDS = 2.0
"""A keeper that has not answered by then is not waited for: what follows must not depend on one machine alone."""


class KeeperLines:
    """Lines by node; `heard` gets each message of a keeper that is no answer, `lost` a node whose line has ended."""

    def __init__(
        self, credentials: Credentials, heard: Callable[[int, Message], None], lost: Callable[[int], None]
    ) -> None:
        self._credentials, self._heard, self._lost = credentials, heard, lost
        self._lines: dict[int, Line] = {}
        self._numbers = itertools.count(1)
        self._done: dict[int, int] = {}

    def call(self, node: int, place: Place) -> None:
        """Have a line to the keeper of a node; raises `OSError` if it cannot be reached."""
        self._lines[node] = called(place.host, place.port, self._credentials)

    @property
    def nodes(self) -> list[int]:
        """The nodes that are there."""
        return list(self._lines)

    @property
    def lines(self) -> Iterable[Line]:
        """For a poll."""
        return self._lines.values()

    def tell(self, message: Message, node: int | None = None) -> None:
        """Tell one keeper something, or all of them."""
        for each in [node] if node is not None else self.nodes:
            line = self._lines.get(each)
            if line is None:
                continue
            try:
                line.send(message)
            except OSError:
                self._end(each)

    def tell_for_sure(self, word: str, *content: Any) -> bool:
        """Tell all keepers something, and wait until they have taken it in; False if one has not answered in time."""
        number = next(self._numbers)
        self.tell((word, number, *content))
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while waited_for := [node for node in self._lines if self._done.get(node, 0) < number]:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self._wait(left, waited_for)
            self.pump()
        return True

    def book(self, places: Mapping[int, Place]) -> bool:
        """Let all nodes know where all processes are."""
        return self.tell_for_sure("book", {number: tuple(place) for number, place in places.items()})

    def pump(self) -> None:
        """Take in what keepers have said."""
        for node, line in list(self._lines.items()):
            messages = None
            with suppress(OSError, WireError):
                if line.unwritten:
                    line.flush()
                messages = line.receive()
            for message in messages or ():
                if message[0] == "done":
                    self._done[node] = message[1]
                else:
                    self._heard(node, message)
            if messages is None:
                self._end(node)

    def close(self) -> None:
        """End all lines."""
        for line in self._lines.values():
            line.close()
        self._lines.clear()

    def _wait(self, seconds: float, nodes: Iterable[int]) -> None:
        waiting = select.poll()
        for node in nodes:
            waiting.register(self._lines[node].fileno(), select.POLLIN)
        waiting.poll(1000 * min(seconds, 0.05))

    def _end(self, node: int) -> None:
        line = self._lines.pop(node, None)
        if line is not None:
            line.close()
            self._lost(node)


class KeeperMarks:
    """The supervisor's marks in the rows of all nodes; `epoch_of` is the life of a worker that it knows of."""

    def __init__(self, lines: KeeperLines, epoch_of: Callable[[int], int]) -> None:
        self._lines, self._epoch_of = lines, epoch_of

    def leave(self, worker: int) -> None:
        """Mark the row absent on all nodes, before any worker hears of the death."""
        self._lines.tell_for_sure("leave", worker, self._epoch_of(worker))

    def call_busy(self, worker: int, until: float) -> None:
        """Write it in the row, on all nodes."""
        self._lines.tell(("busy", worker, float(until)))

    def greeting(self, others: Iterable[int]) -> tuple[Message, ...]:  # noqa: ARG002
        """Nothing: a new worker sees all rows."""
        return ()
