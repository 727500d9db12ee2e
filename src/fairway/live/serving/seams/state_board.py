"""The rows that planning reads: for each worker, its load and the models in its memory.

A `StateBoard` is what one process sees of all rows: an engine reads and writes its `table`, and the board lets other
processes see what changed in the own row. Where processes share memory, that takes nothing (`SharedBoard`); elsewhere
rows travel as messages (`message_board`). A worker that is dead cannot say so, nor one that hangs that it is busy: its
supervisor says it in its place (`RowMarks`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from fairway.engine.serving.messages import PeerLoad, PeerModels, PublishLoad, PublishModels
from fairway.live.serving.seams.transport import Message, Transport, WireError
from fairway.place.arrays import BoolArray, FloatArray
from fairway.place.fleet import Fleet
from fairway.place.lines import FIELDS, Lines
from fairway.place.state import ABSENT, NEVER, StateTable

_NUMBER = 8


class StateBoard(Protocol):
    """The rows of all workers, as one process sees them.

    `publishes` says whether the engine has to say what changes in the own row (`PublishLoad`, `PublishModels`), for
    `publish`; `due` is when `push` has something to do.
    """

    @property
    def table(self) -> StateTable:
        """What the engine reads and writes: the own row exactly, the others' as they were last seen."""
        ...

    @property
    def publishes(self) -> bool:
        """Whether other processes see the own row only if it is published."""
        ...

    @property
    def due(self) -> float:
        """When what was published should be pushed; infinite if nothing waits."""
        ...

    def join(self) -> None:
        """Have a row from now on, idle and with empty memory; a process that runs no stages has none."""
        ...

    def publish(self, row: PublishLoad | PublishModels) -> None:
        """Let the others see this part of the own row, at the next push; the last one counts."""
        ...

    def push(self, now: float) -> None:
        """Send what was published to the processes that read it."""
        ...

    def peers_present(self, workers: Sequence[int]) -> None:
        """These other workers are there: see their rows from now on."""
        ...

    def peer_lost(self, worker: int) -> None:
        """Another worker is gone: it reads no rows any more."""
        ...

    def line_ended(self, worker: int) -> None:
        """The line to another worker has ended, which may be there all the same: what was under way may be lost."""
        ...

    def received(self, content: Sequence[Any]) -> PeerLoad | PeerModels | None:
        """What the message ("row", content) says, for the engine if it concerns that; `WireError` if it is nonsense."""
        ...


class RowMarks(Protocol):
    """What the supervisor says in rows, in the place of workers that cannot."""

    def leave(self, worker: int) -> None:
        """A worker is dead: nothing is placed there any more."""
        ...

    def call_busy(self, worker: int, until: float) -> None:
        """A worker gives no sign of life: it counts as busy until then, or until its own next word."""
        ...

    def greeting(self, others: Sequence[int]) -> Sequence[Message]:
        """The messages that a new worker needs to see the rows of these others."""
        ...


class RowSpace(Protocol):
    """Where the rows of one application are."""

    def make_rows(self, fleet: Fleet) -> None:
        """Make room for the rows, with no worker present; the supervisor does this before any worker is started."""
        ...

    def board(self, number: int, fleet: Fleet, homes: BoolArray | None, transport: Transport) -> StateBoard:
        """The board of a process, which has a row if its number is that of a worker."""
        ...

    def marks(self, fleet: Fleet, tell_others: Callable[[int, Message], None]) -> RowMarks:
        """The supervisor's marks; `tell_others` brings a message to all workers but one."""
        ...


class RowTable(StateTable):
    """A state table in which a worker can be called busy."""

    def call_busy(self, worker: int, until: float) -> None:
        """Say of a worker that gives no sign that it is busy; its own next word goes before this."""
        if self.is_seen(worker):
            self._busy_until[worker] = max(float(self._busy_until[worker]), until)


class SharedRows(RowTable):
    """Rows in memory that several processes, or several tables of one process, share.

    Each worker writes its own row, and all read them without a lock: every number of a row is eight bytes in their
    proper place (a model's flag one), which the hardware writes and reads as a whole. A reader may see a load that is
    newer than the models beside it; that is the staleness that planning lives with anyway.
    """

    def __init__(self, fleet: Fleet, memory: Any, homes: BoolArray | None = None) -> None:
        super().__init__(fleet, homes=homes)
        self._memory = memory
        (queued, busy_until, free), cached = self.arrays(memory, len(fleet), len(fleet.models))
        self._use_rows(queued, busy_until, free, cached)

    @staticmethod
    def arrays(memory: Any, workers: int, models: int) -> tuple[FloatArray, BoolArray]:
        """The rows in some memory: by worker what waits, until when it is busy and what is free; models by worker."""
        numbers = np.ndarray((3, workers), dtype=np.float64, buffer=memory)
        return numbers, np.ndarray((models, workers), np.bool_, memory, offset=3 * _NUMBER * workers)

    @staticmethod
    def size_of(workers: int, models: int) -> int:
        """How many bytes the rows of so many workers take, those of what waits there included."""
        return max(1, _lines_offset(workers, models) + _NUMBER * Lines.size(models, workers))

    @classmethod
    def size(cls, fleet: Fleet) -> int:
        """How many bytes the rows of a fleet take."""
        return cls.size_of(len(fleet), len(fleet.models))

    @staticmethod
    def lines_in(memory: Any, workers: int, models: int) -> FloatArray:
        """What waits at the workers, by field, model and worker, in the same memory behind the rows."""
        shape = (FIELDS, models + 1, workers)
        return np.ndarray(shape, np.float64, memory, offset=_lines_offset(workers, models))

    def show_lines(self) -> None:
        """Have rows for what waits at the workers, in the shared memory behind the others."""
        if self.lines is None:
            workers, models = len(self.fleet), len(self.fleet.models)
            self._use_lines(Lines(models, workers, self.lines_in(self._memory, workers, models)))

    def clear(self) -> None:
        """Begin with no worker present."""
        self._queued[:], self._busy_until[:], self._free[:] = ABSENT, NEVER, self.fleet.memory
        self._cached[:] = False

    def leave(self, worker: int) -> None:
        """Nothing: the supervisor has marked the row of a dead worker, and by now it may be that of its successor."""

    def mark_absent(self, worker: int) -> None:
        """In the place of a worker that is dead: it has no row."""
        super().leave(worker)

    def is_seen(self, worker: int) -> bool:
        """Whether a worker has a row: its supervisor may have marked it absent, so the shared row says."""
        return bool(self._queued[worker] != ABSENT)


def _lines_offset(workers: int, models: int) -> int:
    """Where the rows of what waits begin: behind the others, in the proper place for a number."""
    return -(-(3 * _NUMBER + models) * workers // _NUMBER) * _NUMBER


class SharedMarks:
    """The supervisor's marks in shared rows, which all workers see at once."""

    def __init__(self, table: SharedRows) -> None:
        self._table = table

    def leave(self, worker: int) -> None:
        """Mark the row absent."""
        self._table.mark_absent(worker)

    def call_busy(self, worker: int, until: float) -> None:
        """Write it in the row."""
        self._table.call_busy(worker, until)

    def greeting(self, others: Sequence[int]) -> Sequence[Message]:  # noqa: ARG002
        """Nothing: a new worker sees all rows."""
        return ()


class SharedBoard:
    """A board over shared rows: what an engine writes, the others see at once."""

    publishes = False
    due = math.inf

    def __init__(self, table: SharedRows, number: int) -> None:
        self.table = table
        self._number = number

    def join(self) -> None:
        """Have a row from now on."""
        if self._number < len(self.table.fleet):
            self.table.join(self._number)

    def publish(self, row: PublishLoad | PublishModels) -> None:
        """The others have seen it."""

    def push(self, now: float) -> None:
        """The others have seen it."""

    def peers_present(self, workers: Sequence[int]) -> None:
        """Their rows say so themselves."""

    def peer_lost(self, worker: int) -> None:
        """Its row says so."""

    def line_ended(self, worker: int) -> None:
        """Rows need no line."""

    def received(self, content: Sequence[Any]) -> PeerLoad | PeerModels | None:
        """No row comes as a message."""
        raise WireError(f"a row as a message given ({str(content)[:40]}), where rows are in shared memory")
