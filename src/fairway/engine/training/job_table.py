"""The jobs that are in the system, in order of arrival, as the columns that decisions are computed from.

A column is an array without gaps, as compiled loops take it; columns of one type of values are the rows of one block,
so that a job comes or goes in a few steps. Jobs are appended as they arrive, which keeps `number` sorted, and close up
when one leaves. Columns are views, valid until the next job comes or goes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fairway.allocate.arrays import FloatArray, IntArray
from fairway.allocate.packing.requests import WHOLE

NONE = -1
"""Instead of the number of a type, a lease or a job: there is none."""

_INTS = ("number", "scale", "on", "beside", "charged", "lease", "team", "kind", "group", "fixed", "bound", "priority",
         "preempts", "nodes", "part")  # fmt: skip
_FLOATS = ("weight", "left", "done", "since", "rate", "arrival", "deadline", "isolated", "pooled", "cpus", "memory",
           "changed", "due")  # fmt: skip
_TABLES = ("rates", "spread", "shares", "owed", "known")
_PLACE = {name: place for place, name in enumerate((*_INTS, *_FLOATS, *_TABLES))}


class _Column:
    def __set_name__(self, owner: type, name: str) -> None:
        self._place = _PLACE[name]

    def __set__(self, table: JobTable, values: npt.ArrayLike) -> None:
        table.columns[self._place][...] = values


class _Ints(_Column):
    def __get__(self, table: JobTable, owner: type) -> IntArray:
        column: IntArray = table.columns[self._place]
        return column


class _Floats(_Column):
    def __get__(self, table: JobTable, owner: type) -> FloatArray:
        column: FloatArray = table.columns[self._place]
        return column


class JobTable:
    """Columns of the jobs present.

    `number` counts all jobs that ever came; `rates` are steps per second by type, `spread` those of a gang that spans
    nodes. `left` steps remain at `since`, and `done` have been done; from then on the job runs at `rate`. `on` is the
    type that it runs on, `beside` the number of the job that it shares with, `lease` what it holds. Rounds go by
    `shares` and `owed`, and `charged` is the type on which it is being given time. `isolated` is the time that the work
    done so far takes on an equal share, and `pooled` the sum of its rates on all workers, from which that follows.
    `kind` numbers the jobs that share alike, `group` the classes whose arrivals are learned. `fixed` jobs are not
    stopped; `bound` ones would begin from zero elsewhere. Jobs of a higher `priority` come first, and before jobs that
    run if `preempts` is set. Rates are `known` (1) or guessed (0), by type. `cpus` and `memory` (bytes) are what
    it asks for of its machines, in all, and `nodes` how many of them it spans at most (0: no matter how many); since
    `changed` it has run, or waited, without a break. Of each of its workers it asks for a `part`, in thousandths. `due`
    is the rate, in steps per second, that the last decision gives it, where rounds go by that (`sharing`).
    """

    number, scale, on, beside, charged, lease, team, kind, group, fixed, bound, priority, preempts, nodes, part = (
        _Ints() for _ in range(15)
    )
    weight, left, done, since, rate, arrival, deadline, isolated, pooled, cpus, memory, changed, due = (
        _Floats() for _ in range(13)
    )
    rates, spread, shares, owed, known = (_Floats() for _ in range(5))

    def __init__(self, types: int) -> None:
        self._ints = np.zeros((len(_INTS), 64), dtype=np.int64)
        self._floats = np.zeros((len(_FLOATS), 64))
        self._tables = np.zeros((len(_TABLES), 64, types))
        self.ids: list[str] = []
        self._number_of: dict[str, int] = {}
        self._next = 0
        self._look()

    def _look(self) -> None:
        """Make the columns anew: jobs have come or gone."""
        size = len(self.ids)
        self.columns: list[npt.NDArray[Any]] = [
            *self._ints[:, :size], *self._floats[:, :size], *self._tables[:, :size]
        ]  # fmt: skip
        self._forget()

    def _forget(self) -> None:
        """Forget what follows from columns that stay as they are while the job is here."""
        self._held: IntArray | None = None
        self._sizes: FloatArray | None = None
        self._of_one_class: bool | None = None
        self._plain: bool | None = None

    def __deepcopy__(self, memo: dict[int, object]) -> JobTable:
        copy = JobTable(self._tables.shape[2])
        copy._ints, copy._floats, copy._tables = self._ints.copy(), self._floats.copy(), self._tables.copy()
        copy.ids, copy._number_of, copy._next = list(self.ids), dict(self._number_of), self._next
        copy._look()
        return copy

    def __len__(self) -> int:
        return len(self.ids)

    def __contains__(self, job: object) -> bool:
        return job in self._number_of

    def add(
        self,
        job: str,
        *,
        time: float,
        rates: FloatArray,
        spread: FloatArray,
        scale: int,
        weight: float,
        steps: float,
        deadline: float,
        team: int,
        kind: int,
        group: int = NONE,
        fixed: bool = False,
        bound: bool = False,
        known: FloatArray | float = 1.0,
        cpus: float = 0.0,
        memory: float = 0.0,
        priority: int = 0,
        preempts: bool = True,
        nodes: int = 0,
        part: int = WHOLE,
    ) -> None:
        """Append a job that waits."""
        size = len(self)
        if size == self._ints.shape[1]:
            self._ints, self._floats, self._tables = (
                np.concatenate([block, np.zeros_like(block)], axis=1)
                for block in (self._ints, self._floats, self._tables)
            )
        # In the order of the columns; one assignment is many times as fast as one for each.
        self._ints[:, size] = (
            self._next, scale, NONE, NONE, NONE, NONE, team, kind, group, fixed, bound, priority, preempts, nodes, part,
        )  # fmt: skip
        self._floats[:, size] = (
            weight, steps, 0.0, time, 0.0, time, deadline, 0.0, 0.0, cpus, memory, time, 0.0,
        )  # fmt: skip
        table = self._tables[:, size]
        table[0], table[1], table[2:4], table[4] = rates, spread, 0.0, known
        self.ids.append(job)
        self._number_of[job] = self._next
        self._next += 1
        self._look()

    @property
    def held(self) -> IntArray:
        """What each job asks for, or holds, of the workers of a type: thousandths of one. It is not to be changed."""
        if self._held is None:
            self._held = self.scale * self.part
        return self._held

    @property
    def sizes(self) -> FloatArray:
        """The same in workers, as policies count. It is not to be changed."""
        if self._sizes is None:
            self._sizes = self.held / WHOLE
        return self._sizes

    @property
    def of_one_class(self) -> bool:
        """Whether all jobs are of the same priority."""
        if self._of_one_class is None:
            self._of_one_class = bool((self.priority == self.priority[0]).all()) if len(self) else True
        return self._of_one_class

    @property
    def plain(self) -> bool:
        """Whether no job asks for parts of workers, for CPUs or memory, or for few nodes."""
        if self._plain is None:
            asks = (self.part < WHOLE) | (self.cpus != 0) | (self.memory != 0)
            self._plain = not (asks | ((self.nodes > 0) & (self.nodes < self.scale))).any()
        return self._plain

    def resize(self, position: int, workers: int) -> None:
        """Let a job ask for so many workers."""
        self.scale[position] = workers
        self._forget()

    def copied(self) -> JobTable:
        """The columns as they are now, which stay so: a table to read, without jobs by name."""
        copy, size = JobTable.__new__(JobTable), len(self)
        copy._ints, copy._floats = self._ints[:, :size].copy(), self._floats[:, :size].copy()
        copy._tables = self._tables[:, :size].copy()
        copy.ids = self.ids
        copy._look()
        return copy

    def remove(self, position: int) -> None:
        """Take a job out; those behind it move up."""
        size = len(self)
        for block in (self._ints, self._floats, self._tables):
            block[:, position : size - 1] = block[:, position + 1 : size]
        del self._number_of[self.ids.pop(position)]
        self._look()

    def position(self, job: str) -> int:
        """Where a job stands."""
        return int(np.searchsorted(self.number, self._number_of[job]))

    def positions(self, numbers: IntArray) -> IntArray:
        """Where the jobs with these numbers stand, all of them present."""
        found: IntArray = np.searchsorted(self.number, numbers)
        return found

    def partners(self) -> IntArray:
        """The position of the job that each one shares with, -1 for none."""
        beside = self.beside
        if not (beside >= 0).any():
            return beside.copy()
        found: IntArray = np.where(beside >= 0, np.searchsorted(self.number, beside), NONE)
        return found
