"""Rows as messages, over any transport: for workers that share no memory.

A process asks each other worker that joins for its row, and gets it from then on. So a worker knows which processes
read its row, and its answer comes after the news that it is there, in whatever order the supervisor reaches the two.
Loads change with every task, so they are pushed at most once in a period, the last one only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from fairway.engine.serving.messages import PeerLoad, PeerModels, PublishLoad, PublishModels
from fairway.live.serving.seams.state_board import RowTable
from fairway.live.serving.seams.transport import Message, Transport, WireError

PERIOD_SECONDS = 0.01
"""How old a load may be when it is pushed; it is the staleness that simulations assume as well."""


class MessageBoard:
    """The rows as one process knows them from messages; `transport` brings the own row to its readers."""

    publishes = True

    def __init__(
        self, table: RowTable, number: int, transport: Transport, period_seconds: float = PERIOD_SECONDS
    ) -> None:
        self.table = table
        self.due = math.inf
        self._number, self._transport, self._period = number, transport, period_seconds
        self._pushed_at = -math.inf
        self._readers: dict[int, None] = {}
        self._load: PublishLoad | None = None
        self._models: PublishModels | None = None
        self._pushed: tuple[PublishLoad | None, PublishModels | None] = (None, None)
        for worker in range(len(table.fleet)):
            table.leave(worker)

    def join(self) -> None:
        """Have a row from now on."""
        if self._has_row(self._number):
            self.table.join(self._number)

    def publish(self, row: PublishLoad | PublishModels) -> None:
        """Let the readers see this part of the own row at the next push."""
        if isinstance(row, PublishLoad):
            self._load = row
        else:
            self._models = row
        self.due = self._pushed_at + self._period

    def push(self, now: float) -> None:
        """Send the readers what has changed since the last push."""
        load, models = self._pushed
        if self._load is not load:
            self._send(self._readers, self._load_message())
        if self._models is not models:
            self._send(self._readers, self._models_message())
        self._pushed = (self._load, self._models)
        self._pushed_at, self.due = now, math.inf

    def peers_present(self, workers: Sequence[int]) -> None:
        """Take these workers for present, and ask for their rows; they read the own row as well."""
        for worker in workers:
            if worker == self._number or not self._has_row(worker):
                continue
            if not self.table.is_seen(worker):
                self.table.join(worker)
            self._readers[worker] = None
            self._transport.send(worker, ("row", ("wanted", self._number)))

    def peer_lost(self, worker: int) -> None:
        """A reader is gone."""
        self._readers.pop(worker, None)

    def line_ended(self, worker: int) -> None:
        """Push the whole row again; a reader that is gone is then noticed by the way."""
        if worker != self._number:
            self._readers[worker] = None
            self._pushed = (None, None)
            self.due = self._pushed_at + self._period

    def received(self, content: Sequence[Any]) -> PeerLoad | PeerModels | None:
        """What another process says of its row, or asks for; what the supervisor says of others."""
        match content:
            case ("load", int(worker), int(sequence), float(queued), float(busy_until), *line) if self._is_peer(worker):
                if all(type(number) is float for number in line):
                    return PeerLoad(worker, sequence, queued, busy_until, tuple(line))
            case ("models", int(worker), int(sequence), tuple(models)) if self._is_peer(worker):
                if all(type(model) is int and 0 <= model < len(self.table.fleet.models) for model in models):
                    return PeerModels(worker, sequence, models)
            case ("wanted", int(reader)) if reader >= 0 and reader != self._number:
                self._readers[reader] = None
                self._send([reader], self._load_message(), self._models_message())
                return None
            case ("present", tuple(workers)) if all(type(worker) is int for worker in workers):
                self.peers_present(workers)
                return None
            case ("busy", int(worker), float(until)) if self._is_peer(worker):
                self.table.call_busy(worker, until)
                return None
        raise WireError(f"{str(content)[:80]} given, expected a row of another worker")

    def _has_row(self, number: int) -> bool:
        return 0 <= number < len(self.table.fleet)

    def _is_peer(self, number: int) -> bool:
        return self._has_row(number) and number != self._number

    def _load_message(self) -> Message | None:
        load = self._load
        if load is None:
            return None
        row = (self._number, load.sequence, float(load.queued), float(load.busy_until), *load.line)
        return ("row", ("load", *row))

    def _models_message(self) -> Message | None:
        models = self._models
        return None if models is None else ("row", ("models", self._number, models.sequence, tuple(models.models)))

    def _send(self, readers: Iterable[int], *messages: Message | None) -> None:
        for reader in list(readers):
            for message in messages:
                if message is not None and not self._transport.send(reader, message):
                    self._readers.pop(reader, None)  # it asks again when it is back


class MessageMarks:
    """The supervisor's marks where rows are messages: it has no rows, and tells the workers what to make of theirs."""

    def __init__(self, tell_others: Callable[[int, Message], None]) -> None:
        self._tell_others = tell_others

    def leave(self, worker: int) -> None:
        """The news of a death, which go to all workers anyway, say this."""

    def call_busy(self, worker: int, until: float) -> None:
        """Tell all other workers."""
        self._tell_others(worker, ("row", ("busy", worker, until)))

    def greeting(self, others: Sequence[int]) -> Sequence[Message]:
        """Which workers it may ask for their rows."""
        return [("row", ("present", tuple(others)))]
