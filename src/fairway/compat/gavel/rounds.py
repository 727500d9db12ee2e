"""The original's round mechanism: from shares of time to who runs on which workers in this round (Gavel §5).

A job has a row, and so have two that may share. Since the last reset each row has had some time on each type, which is
a fraction of all the time that rows have had there; who has had the least of it compared with its share comes first:

    priority_rj = x_rj / (time_rj / sum_r' time_r'j)

This is the mechanism as the original implements it, with all that one would write differently. Time starts with half a
round, counts once for a gang of any size, and is not taken back when a job leaves. A new decision is taken at most
every 1920 seconds (but for the first ones), and a job that came since then has no share: it may be chosen, and then its
workers stay idle. Types are served one after the other, each until it is full, and where there is room with jobs that
have no priority at all. No clock is read here: times come from the caller.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fairway.allocate.arrays import BoolArray, FloatArray, IntArray
from fairway.compat.gavel.choice import choose_and_place
from fairway.compiled import BoolTable, FloatTable, IntTable, compiled

BETWEEN_DECISIONS = 1920.0
"""Seconds that a decision stays in force at least."""


@dataclass(frozen=True, slots=True)
class Placed:
    """What runs in a round: rows (as they stand in `GavelRounds` now), their jobs, and the type on which each runs.

    `late` are the jobs; of two that share, the later one, and `early` the other (-1 where there is none).
    """

    rows: IntArray
    types: IntArray
    late: IntArray
    early: IntArray
    sizes: IntArray


class _Rows(NamedTuple):
    """Everything about the rows: `held` are the workers of the last round, on type `held_type` (-1: it did not run)."""

    late: IntArray
    early: IntArray
    sizes: IntArray
    runs: BoolTable
    shares: FloatTable
    known: BoolArray
    times: FloatTable
    deficits: FloatTable
    held: IntTable
    held_type: IntArray

    @classmethod
    def of(cls, rows: int, types: int, width: int) -> _Rows:
        return cls(
            late=np.zeros(rows, dtype=np.int64),
            early=np.zeros(rows, dtype=np.int64),
            sizes=np.zeros(rows, dtype=np.int64),
            runs=np.zeros((rows, types), dtype=np.bool_),
            shares=np.zeros((rows, types)),
            known=np.zeros(rows, dtype=np.bool_),
            times=np.zeros((rows, types)),
            deficits=np.zeros((rows, types)),
            held=np.zeros((rows, width), dtype=np.int64),
            held_type=np.zeros(rows, dtype=np.int64),
        )

    def grown(self, rows: int, width: int) -> _Rows:
        larger = _Rows.of(rows, self.shares.shape[1], width)
        for old, new in zip(self, larger, strict=True):
            new[tuple(slice(length) for length in old.shape)] = old
        return larger


class GavelRounds:
    """Who has had how much time since the last reset, and who held which workers in the last round.

    Jobs have numbers, in order of arrival, that are never used again. Rows stand in the order in which they came: a
    job, then its pairs with earlier ones. `order` are the types (columns of `workers`) as they are served, the fastest
    first; `shuffled` draws another order for each round. With `needs_priority`, only rows with a priority run, as under
    the original's FIFO.
    """

    def __init__(
        self,
        workers: Sequence[int],
        *,
        order: Sequence[int] | None = None,
        round_seconds: float = 360.0,
        shuffled: bool = False,
        needs_priority: bool = False,
        seed: int = 0,
    ) -> None:
        self._workers = np.array(workers, dtype=np.int64)
        self._order = [column for column in (order or range(len(workers))) if workers[column] > 0]
        self._orders = {tuple(self._order): np.array(self._order, dtype=np.int64)}
        self._draws = random.Random(seed + 5) if shuffled else None  # seed + 5 is the original's, for the same rounds
        self._needs_priority = needs_priority
        self._credit = round_seconds / 2.0
        self._worker_time = np.zeros(len(workers))
        self._last_decision, self._outdated = 0.0, True
        self._table, self._count, self._jobs = _Rows.of(64, len(workers), 1), 0, 0
        self._chosen_in, self._round = np.zeros(64, dtype=np.int64), 0
        self._widowed = 0
        self.lease_extensions = 0
        """How often a row kept its workers from one round to the next."""
        self.lease_opportunities = 0
        """How often a row could have kept them."""

    def __len__(self) -> int:
        return self._count

    @property
    def late(self) -> IntArray:
        """The job of each row; of two that share, the later one."""
        return self._table.late[: self._count]

    @property
    def early(self) -> IntArray:
        """The earlier job of each row of two, -1 in the others."""
        return self._table.early[: self._count]

    def workers_of(self, row: int) -> IntArray:
        """The workers that a row has in this round, numbered through the types; none if it does not run."""
        table = self._table
        return table.held[row, : table.sizes[row] if table.held_type[row] >= 0 else 0]

    def arrive(
        self,
        number: int,
        size: int,
        runs: BoolArray,
        partners: IntArray | None = None,
        together: BoolArray | None = None,
    ) -> None:
        """A job came, for `size` workers of any one of the types where it `runs`.

        Where jobs may share, `partners` are the numbers of all jobs here with as many workers, in increasing order, and
        `together[k]` says on which types it runs beside partner k.
        """
        table, start = self._table, self._count
        end = start + 1 if partners is None else start + 1 + len(partners)
        if end > len(table.late) or size > table.held.shape[1]:
            self._table = table = table.grown(max(2 * len(table.late), end), max(size, table.held.shape[1]))
        if number >= len(self._chosen_in):
            self._chosen_in = np.concatenate([self._chosen_in, np.zeros(number + 1, dtype=np.int64)])
        _clear(table, start, end, number, size, self._credit)
        table.runs[start] = runs
        if partners is not None:
            table.early[start + 1 : end] = partners
            table.runs[start + 1 : end] = together
        self._count = end
        self._jobs += 1
        self._outdated = True

    def depart(self, numbers: IntArray) -> None:
        """These jobs are gone, and all of their rows with them."""
        self._count, widowed = _drop(self._table, self._count, numbers)
        self._widowed += widowed
        self._jobs -= len(numbers)
        self._outdated = True

    def disturb(self) -> None:
        """Something went wrong: the next decision is due as if a job had come or gone."""
        self._outdated = True

    def wake(self) -> None:
        """Let the next decision not wait for its time, if something has changed."""
        self._last_decision = 0.0

    def due(self, now: float) -> bool:
        """Whether the shares are to be decided anew in this round."""
        return self._outdated and (self._last_decision == 0.0 or now - self._last_decision >= BETWEEN_DECISIONS)

    def decide(
        self, now: float, shares: FloatArray, late: IntArray | None = None, early: IntArray | None = None
    ) -> None:
        """Take new shares, after comparing what each row should have had of the old ones with what it has had.

        One row of `shares` for each row here; or, with `late` and `early`, for the rows of these jobs, and none for the
        others.
        """
        table, count = self._table, self._count
        _reset(table, count, now - self._last_decision, self._credit, self._worker_time)
        self._last_decision, self._outdated = now, False
        if late is None or early is None:
            table.shares[:count] = shares
        else:
            table.shares[:count] = 0.0
            _fill(table, count, late, early, shares)

    def choose(self) -> Placed:
        """Choose who runs in this round, and place them."""
        order = self._order
        if self._draws is not None:
            order = order.copy()
            self._draws.shuffle(order)
        columns = self._orders.get(tuple(order))
        if columns is None:
            columns = self._orders[tuple(order)] = np.array(order, dtype=np.int64)
        self._round += 1
        table = self._table
        chosen, kept, could_be = choose_and_place(
            columns, self._workers, self._worker_time, self._needs_priority, self._chosen_in, self._round,
            self._count, self._jobs, table.late, table.early, table.sizes, table.runs, table.shares, table.known,
            table.times, table.deficits, table.held, table.held_type,
        )  # fmt: skip
        self.lease_extensions += kept
        self.lease_opportunities += could_be + self._widowed
        self._widowed = 0
        return Placed(*chosen)

    def ran(self, placed: Placed, seconds: FloatArray) -> None:
        """Count how long each row ran in this round (0 if it failed); to be called before jobs arrive or depart."""
        _count_time(self._table.times, placed.rows, placed.types, seconds, self._worker_time)


@compiled(releases_gil=True)
def _clear(table: _Rows, start: int, end: int, number: int, size: int, credit: float) -> None:
    """Rows of a new job: itself, with half a round of credit, and its pairs, which get theirs with the next reset."""
    for row in range(start, end):
        table.late[row], table.early[row], table.sizes[row] = number, -1, size
        table.known[row], table.held_type[row] = False, -1
        for j in range(table.shares.shape[1]):
            table.shares[row, j], table.deficits[row, j] = 0.0, 0.0
            table.times[row, j] = credit if row == start else 0.0


@compiled(releases_gil=True)
def _drop(table: _Rows, count: int, gone: IntArray) -> tuple[int, int]:
    """Move the rows of all other jobs together; returns their number, and how many pairs in a gang lost one of two."""
    types, width = table.shares.shape[1], table.held.shape[1]
    kept, widowed = 0, 0
    for row in range(count):
        lost = 0
        for number in gone:
            lost += (table.late[row] == number) + (table.early[row] == number)
        if lost:
            widowed += table.early[row] >= 0 and lost == 1 and table.held_type[row] >= 0
            continue
        if kept < row:
            table.late[kept], table.early[kept], table.sizes[kept] = table.late[row], table.early[row], table.sizes[row]
            table.known[kept], table.held_type[kept] = table.known[row], table.held_type[row]
            for j in range(types):
                table.runs[kept, j], table.shares[kept, j] = table.runs[row, j], table.shares[row, j]
                table.times[kept, j], table.deficits[kept, j] = table.times[row, j], table.deficits[row, j]
            for k in range(width):
                table.held[kept, k] = table.held[row, k]
        kept += 1
    return kept, widowed


@compiled(releases_gil=True)
def _reset(table: _Rows, count: int, elapsed: float, credit: float, worker_time: FloatArray) -> None:
    """Book what each row has missed since the last reset, and start counting anew."""
    for j in range(len(worker_time)):
        for row in range(count):
            table.deficits[row, j] += table.shares[row, j] * elapsed - (table.times[row, j] - credit)
            table.times[row, j] = credit
        worker_time[j] = credit * count
    table.known[:count] = True


@compiled(releases_gil=True)
def _fill(table: _Rows, count: int, late: IntArray, early: IntArray, shares: FloatTable) -> None:
    """Write the shares of some rows; rows are in the order of their later job, then of the earlier one."""
    for k in range(len(late)):
        low, high = 0, count
        while low < high:
            middle = (low + high) // 2
            before = table.late[middle] < late[k] or (table.late[middle] == late[k] and table.early[middle] < early[k])
            if before:
                low = middle + 1
            else:
                high = middle
        for j in range(shares.shape[1]):
            table.shares[low, j] = shares[k, j]


@compiled(releases_gil=True)
def _count_time(
    times: FloatTable, rows: IntArray, types: IntArray, seconds: FloatArray, worker_time: FloatArray
) -> None:
    for k in range(len(rows)):
        times[rows[k], types[k]] += seconds[k]
        worker_time[types[k]] += seconds[k]
