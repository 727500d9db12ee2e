"""Which jobs come before others whatever they are owed: those of a higher priority class.

Within a class the policy decides. A job of a class that preempts comes before all jobs of lower classes, also before
those that run, which then save and stop as a round begins. One of a class that does not preempt comes before jobs of
lower classes that wait, and takes turns with those that run as the policy has it.
"""

from __future__ import annotations

import numpy as np

from fairway.allocate.arrays import BoolArray, FloatArray
from fairway.engine.training.job_table import JobTable

_CLASS = 1e9
"""Seconds by which a class is ahead of the next lower one: far more than any job is ever owed."""


def before_all(ahead: FloatArray, some: BoolArray) -> FloatArray:
    """Let some jobs be ahead of all others: those for whose teams workers are reserved."""
    return np.where(some, ahead.max(initial=0.0) + _CLASS, ahead)


def precedence(jobs: JobTable) -> FloatArray:
    """By how many seconds each job is ahead of what it is owed; 0 for all where all are of the same class."""
    if jobs.of_one_class:
        return np.zeros(len(jobs))
    priority = jobs.priority
    values, ranks = np.unique(priority, return_inverse=True)
    ahead = ranks.astype(float)
    waits, preempts = jobs.on < 0, jobs.preempts > 0
    patient, eager = ranks[waits & ~preempts], ranks[waits & preempts]
    for rank in range(len(values) - 1):
        above = patient[patient > rank]
        if len(above):  # jobs of this class that run are equal to those, but not to any that preempt them
            below = eager[eager > rank].min(initial=len(values)) - 0.5
            ahead[~waits & (ranks == rank)] = max(min(float(above.max()), below), rank)
    return ahead * _CLASS
