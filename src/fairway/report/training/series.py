"""How a run went over time: how many jobs waited and ran, and how busy each accelerator type was.

Both come from the state after each round's decision, as means over intervals of time.
"""

from __future__ import annotations

import numpy as np

from fairway.report.intervals import Series, mean_of_steps
from fairway.report.training.record import FloatArray, TrainingRecord

MOST_INTERVALS = 300
"""A line of a chart has at most so many points: about one for each three pixels."""


def end_of(record: TrainingRecord) -> float:
    """When the run ended: nothing in the record is later."""
    ends = [record.makespan_seconds, *record.timeline.time[-1:], record.leases.end.max(initial=0.0)]
    return float(max(end for end in ends if np.isfinite(end)))


def queue_length(record: TrainingRecord) -> tuple[Series, Series]:
    """How many jobs waited and how many ran."""
    edges = _edges(record)
    waiting = mean_of_steps(record.timeline.time, record.timeline.waiting, edges)
    running = mean_of_steps(record.timeline.time, record.timeline.running, edges)
    return Series(edges, waiting), Series(edges, running)


def utilization_by_type(record: TrainingRecord) -> dict[str, Series]:
    """The part of the workers of each type that was busy, for the types that have workers."""
    edges = _edges(record)
    workers = record.cluster.workers
    busy = record.timeline.busy.reshape(len(record.timeline.time), len(workers))
    return {
        name: Series(edges, mean_of_steps(record.timeline.time, busy[:, k], edges) / count)
        for k, (name, count) in enumerate(workers.items())
        if count
    }


def _edges(record: TrainingRecord) -> FloatArray:
    """The rounds themselves where they are few, equal intervals otherwise."""
    time, end = record.timeline.time, end_of(record)
    if len(time) <= MOST_INTERVALS:
        return np.unique(np.append(time, end)) if len(time) else np.zeros(0)
    return np.linspace(time[0], end, MOST_INTERVALS + 1)
