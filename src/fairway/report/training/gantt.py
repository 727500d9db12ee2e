"""What each worker did: the leases of a run, cut and merged into stretches that a chart can draw.

A gang's lease becomes one stretch per worker; consecutive leases of the same job on the same worker become one. A
chart shows a bounded number of workers and stretches, so what does not fit is left out from the end of the run, and
said.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairway.report.training.record import FloatArray, IntArray, TrainingRecord
from fairway.report.training.series import end_of

MOST_WORKERS_PER_TYPE = 64
MOST_ROWS = 256
ROWS_FOR_NAME = 2


@dataclass(frozen=True, slots=True)
class WorkerRows:
    """The rows `first`..`first + shown - 1` are the first workers of a type that has `workers` of them."""

    accelerator: str
    workers: int
    first: int
    shown: int


@dataclass(frozen=True, eq=False)
class Gantt:
    """Stretches in order of row, then time; job and partner (-1: none) are numbers of jobs in the record.

    `until` is where the chart ends (seconds), before the end of the run when not all stretches fit.
    """

    rows: tuple[WorkerRows, ...]
    row: IntArray
    start: FloatArray
    end: FloatArray
    job: IntArray
    partner: IntArray
    until: float
    complete: bool

    def __len__(self) -> int:
        return len(self.row)


def gantt(record: TrainingRecord, most: int) -> Gantt:
    """The chart of a run with at most so many stretches."""
    rows = _rows(record)
    until = end_of(record)
    first = np.array([block.first for block in rows], dtype=np.int64)
    shown = np.array([block.shown for block in rows], dtype=np.int64)
    leases = record.leases
    lease = np.repeat(np.arange(len(leases)), np.diff(leases.offset)) if len(leases) else np.zeros(0, dtype=np.int64)
    worker, accelerator = leases.workers[: len(lease)], leases.accelerator[lease]
    # A lease that ended as it began has nothing to draw, and would stand between two that should merge.
    kept = (worker < shown[accelerator]) & (leases.end[lease] > leases.start[lease])
    lease, row = lease[kept], (first[accelerator] + worker)[kept]
    order = np.lexsort((leases.start[lease], row))
    lease, row = lease[order], row[order]
    job, partner = leases.job[lease], leases.partner[lease]
    start, end = leases.start[lease], leases.end[lease]
    same = (row[1:] == row[:-1]) & (job[1:] == job[:-1]) & (partner[1:] == partner[:-1])
    joined = same & (start[1:] - end[:-1] <= 1e-6 * np.maximum(1.0, end[:-1]))
    head = np.flatnonzero(np.concatenate([np.ones(min(len(row), 1), dtype=np.bool_), ~joined]))
    last = np.append(head[1:], len(row)) - 1 if len(head) else head
    row, job, partner, start, end = row[head], job[head], partner[head], start[head], end[last]
    complete = len(row) <= most
    if not complete:
        until = float(np.sort(start)[most])
        early = start < until
        row, job, partner, start, end = row[early], job[early], partner[early], start[early], end[early]
        end = np.minimum(end, until)
    return Gantt(rows, row, start, end, job, partner, until, complete)


def _rows(record: TrainingRecord) -> tuple[WorkerRows, ...]:
    """The rows of each type in the order of the cluster, with room for its name above."""
    counts = record.cluster.workers
    used = sum(count > 0 for count in counts.values())
    most = max(min(MOST_WORKERS_PER_TYPE, MOST_ROWS // max(used, 1)), 4)
    blocks: list[WorkerRows] = []
    first = 0
    for name, count in counts.items():
        shown = min(count, most)
        first += ROWS_FOR_NAME if shown else 0
        blocks.append(WorkerRows(name, count, first, shown))
        first += shown
    return tuple(blocks)
