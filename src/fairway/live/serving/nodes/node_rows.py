"""The rows of all workers in the memory of one node, as its keeper sees them: which it sends, and which it takes in.

A node's own workers write their rows here themselves. Once in a period, if one of them has changed, all of them go to
each other node in one message, with the life of each worker, and what waits at the workers where planners look at that
(`place.lines`); where nothing waits, nothing is sent of it. A node takes in the rows of lives that its address book
has, and no others: so no process sees a row before it can reach the worker, nor after it was told that the worker is
gone, in whatever order messages come.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fairway.live.serving.seams.state_board import SharedRows
from fairway.live.serving.seams.transport import Message, WireError
from fairway.place.arrays import FloatArray
from fairway.place.state import ABSENT, NEVER

_NOBODY = -1
_NOTHING = np.zeros((1, 1, 1))
_MOST_CHECKED = 256
_QUEUED, _BUSY_UNTIL, _FREE = range(3)


class NodeRows:
    """The rows in `memory`, which the processes of a node share; `budgets` is how much room for models each has."""

    def __init__(self, memory: Any, budgets: FloatArray, models: int) -> None:
        self._memory, self._budgets = memory, budgets
        self._numbers, self._cached = SharedRows.arrays(memory, len(budgets), models)
        self._lines = SharedRows.lines_in(memory, len(budgets), models)
        self._lives = np.full(len(budgets), _NOBODY)
        self._own: dict[int, int] = {}
        self._positions = self._epochs = np.zeros(0, dtype=np.int64)
        self._checked: dict[tuple[bytes, bytes], tuple[Any, Any]] = {}
        self._held: dict[bytes, bytes] = {}
        self._quiet: set[bytes] = set()
        self._head: tuple[bytes, bytes] = (b"", b"")
        self._sent: tuple[bytes, bytes, bytes] | None = None

    @property
    def workers(self) -> int:
        """How many workers there are."""
        return len(self._budgets)

    @staticmethod
    def size(workers: int, models: int) -> int:
        """How many bytes the memory has."""
        return SharedRows.size_of(workers, models)

    def clear(self) -> None:
        """Begin with no worker present."""
        self._numbers[_QUEUED], self._numbers[_BUSY_UNTIL], self._numbers[_FREE] = ABSENT, NEVER, self._budgets
        self._cached[:] = False
        self._lines[:] = 0.0

    def host(self, worker: int, epoch: int) -> None:
        """A life of a worker begins on this node."""
        self._own[worker] = epoch
        self._own_changed()

    def reachable(self, worker: int, epoch: int) -> None:
        """A life of a worker, on whichever node, can be reached from here: it has a row from now on."""
        if epoch <= self._lives[worker]:
            return
        self._life_changed(worker, epoch)
        if worker not in self._own:  # else it writes the row itself, and may have begun to
            self._reset(worker, 0.0)

    def leave(self, worker: int, epoch: int) -> None:
        """A life of a worker is over: it has no row any more, and what still comes of it does not count."""
        if self._own.get(worker, epoch + 1) <= epoch:
            del self._own[worker]
            self._own_changed()
        elif worker in self._own:
            return
        if self._lives[worker] <= epoch:
            self._life_changed(worker, _NOBODY)
            self._reset(worker, ABSENT)

    def call_busy(self, worker: int, until: float) -> None:
        """A worker gives no sign of life: it counts as busy until then."""
        if self._numbers[_QUEUED, worker] != ABSENT:
            self._numbers[_BUSY_UNTIL, worker] = max(float(self._numbers[_BUSY_UNTIL, worker]), until)

    def changed(self) -> Message | None:
        """What to tell the other nodes; None if nothing has changed since it was last asked for."""
        if not self._own:
            return None
        lines = self._lines[:, :, self._positions]
        waiting = lines.tobytes() if lines.any() else b""
        now = (self._numbers[:, self._positions].tobytes(), self._cached[:, self._positions].tobytes(), waiting)
        if now == self._sent:
            return None
        self._sent = now
        return ("rows", *self._head, *now)

    def send_anew(self) -> None:
        """Another node may have missed what was sent."""
        self._sent = None

    def take(self, positions: Any, epochs: Any, numbers: Any, cached: Any, waiting: Any = b"") -> None:
        """What another node says of the rows of its workers; raises `WireError` if no node would."""
        if (positions, epochs) not in self._checked:
            self._check(positions, epochs)
        where, known = self._checked[positions, epochs]
        try:
            rows = np.frombuffer(numbers, np.float64).reshape(3, -1)
            held = np.frombuffer(cached, np.bool_).reshape(len(self._cached), len(where))
            # Where nothing waits, and nothing did, there is nothing to write.
            same = not waiting and positions in self._quiet
            shape = (*self._lines.shape[:2], len(where))
            lines = np.frombuffer(waiting, np.float64).reshape(shape) if waiting else _NOTHING
            known = known & (rows[_QUEUED] != ABSENT)  # a worker that begins may have no row yet
        except (TypeError, ValueError) as error:
            raise WireError(f"rows that are none: {error}") from None
        if not known.all():
            where, rows, held = where[known], rows[:, known], held[:, known]
            lines = lines[:, :, known] if waiting else lines
        self._numbers[:, where] = rows
        if not same:
            self._lines[:, :, where] = lines
            (self._quiet.discard if waiting else self._quiet.add)(positions)
        if self._held.get(positions) != cached:
            self._cached[:, where] = held
            self._held[positions] = cached

    def _check(self, positions: Any, epochs: Any) -> None:
        """Find out of which workers rows are, and of which lives; the same ones come again and again."""
        try:
            where, lives = np.frombuffer(positions, np.int64), np.frombuffer(epochs, np.int64)
        except (TypeError, ValueError) as error:
            raise WireError(f"rows that are none: {error}") from None
        if len(lives) != len(where) or not ((where >= 0) & (where < len(self._budgets))).all():
            raise WireError("rows of workers that are none")
        if len(self._checked) > _MOST_CHECKED:
            self._checked.clear()
        self._checked[positions, epochs] = (where, self._lives[where] == lives)

    def _life_changed(self, worker: int, epoch: int) -> None:
        self._lives[worker] = epoch
        self._checked.clear()
        self._held.clear()
        self._quiet.clear()

    def _own_changed(self) -> None:
        self._positions = np.array(sorted(self._own), dtype=np.int64)
        self._epochs = np.array([self._own[worker] for worker in sorted(self._own)], dtype=np.int64)
        self._head = (self._positions.tobytes(), self._epochs.tobytes())
        self._sent = None

    def _reset(self, worker: int, queued: float) -> None:
        self._numbers[:, worker] = queued, NEVER, self._budgets[worker]
        self._cached[:, worker] = False
        self._lines[:, :, worker] = 0.0
