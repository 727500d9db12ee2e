"""Rounds in which jobs may share workers: who runs, and beside whom, by the work that every job is owed.

A decision says at what rate each job is to make progress. That a solver splits this among certain pairs means nothing:
there are many ways to split, and to serve one pair after the other by its share keeps jobs waiting for their partners.
So what is owed is the work of a job, however it is done: while time passes, a job is owed its due rate and given the
rate that it has. Each round then runs the assignment of whole gangs, alone or in pairs, that serves most of what is
owed,

    maximise  sum_m (owed_m + base) R_m / due_m,

with owed_m in seconds at the due rate and R_m the rate of job m there (`kernels.assignment`). If any schedule gives all
jobs their due, the one with the highest sum does (Tassiulas and Ephremides, 1992). What runs counts for more, so that a
job is stopped, or a pair parted, only for more than a restart costs.
"""

from __future__ import annotations

import numpy as np

from fairway.allocate.arrays import BoolArray, FloatArray, IntArray
from fairway.allocate.kernels.assignment import choose_jobs
from fairway.compiled import FloatBlocks, FloatTable, compiled
from fairway.engine.training.job_table import JobTable

MOST_OWED = 12.0
"""The most that a job is owed, in turns."""

_BASE = 1.0
"""What a job counts that is owed nothing, in turns."""

_STAY = 1.3
"""How many times as much a job or a pair counts that runs on as it does."""

_LEAST = 1e-6
"""The part of its fastest rate that a job counts as due at least, so that what is left over is of use to it."""


@compiled()
def account_work(seconds: float, due: FloatArray, rate: FloatArray, owed: FloatTable, most: float) -> None:
    """Let time pass: every job is owed its due rate, and is given the rate at which it runs.

    What it is owed, in seconds at its due rate, stands in the first column.
    """
    for job in range(len(due)):
        if due[job] > 0.0:
            value = seconds * (1.0 - rate[job] / due[job])
            for column in range(owed.shape[1]):
                value += owed[job, column]
                owed[job, column] = 0.0
            owed[job, 0] = min(max(value, 0.0), most)


def serve(
    jobs: JobTable, table: FloatBlocks, rates: FloatArray, stays: BoolArray, free: IntArray, ahead: FloatArray,
    turn: float,
) -> tuple[IntArray, IntArray]:  # fmt: skip
    """The type of each job (-1: none) and the job beside it (-1: none); those that `stays` marks are left out.

    `table` has the rates of every two kinds of jobs, `free` what may be given away of the workers, in thousandths, and
    jobs come first by so many seconds as they are `ahead`.
    """
    fastest = rates.max(axis=1, initial=0.0)
    due = np.maximum(jobs.due, _LEAST * fastest)
    counts = jobs.owed.sum(axis=1) + _BASE * turn + ahead
    value = np.divide(counts, due, out=np.zeros(len(jobs)), where=(fastest > 0) & ~stays)
    held = jobs.held
    rates = np.where(stays[:, None] | (held[:, None] > free), 0.0, rates)
    to, mate, _ = choose_jobs(
        value, rates, held, jobs.kind.copy(), table, free.copy(), np.where(stays, -1, jobs.on),
        jobs.partners(), _STAY,
    )  # fmt: skip
    return to, mate
