"""Means over intervals of time of things that change in steps.

The integral of a step function is linear between its steps, so these means are exact whatever the lengths of rounds
and leases, and a chart of a long run needs no more points than a short one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairway.report.training.record import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Series:
    """The mean of something in each interval `edges[k]`..`edges[k + 1]` (seconds)."""

    edges: FloatArray
    values: FloatArray


def mean_of_steps(time: FloatArray, values: IntArray | FloatArray, edges: FloatArray) -> FloatArray:
    """The mean in each interval of what is `values[k]` from `time[k]` on, and 0 before the first."""
    if len(edges) < 2 or not len(time):
        return np.zeros(max(len(edges) - 1, 0))
    ends = np.append(time[1:], max(edges[-1], time[-1]))
    area = np.concatenate([[0.0], np.cumsum(values * (ends - time))])
    knots = np.append(time, ends[-1])
    return np.asarray(np.diff(np.interp(edges, knots, area)) / np.diff(edges), dtype=np.float64)


def held_between(start: FloatArray, end: FloatArray, amount: FloatArray, edges: FloatArray) -> FloatArray:
    """The integral over each interval of the sum of the amounts that hold from `start[k]` to `end[k]`."""

    def until(since: FloatArray) -> FloatArray:
        """The integral up to each edge of amounts that hold from `since` on for ever."""
        order = np.argsort(since, kind="stable")
        sums = np.concatenate([[0.0], np.cumsum(amount[order])])
        moments = np.concatenate([[0.0], np.cumsum((amount * since)[order])])
        before = np.searchsorted(since[order], edges)
        return np.asarray(edges * sums[before] - moments[before], dtype=np.float64)

    return np.diff(until(start) - until(end))


def held_by_owner(
    owner: IntArray, start: FloatArray, end: FloatArray, amount: FloatArray, edges: FloatArray, owners: int
) -> FloatArray:
    """The same by interval and owner: each stretch is cut at the edges that it crosses."""
    intervals = len(edges) - 1
    first = np.clip(np.searchsorted(edges, start, side="right") - 1, 0, intervals - 1)
    last = np.clip(np.searchsorted(edges, end, side="left") - 1, first, intervals - 1)
    pieces = last - first + 1
    whole = np.repeat(np.arange(len(owner)), pieces)
    interval = np.arange(len(whole)) - np.repeat(np.cumsum(pieces) - pieces, pieces) + first[whole]
    seconds = np.minimum(end[whole], edges[interval + 1]) - np.maximum(start[whole], edges[interval])
    cells = np.bincount(
        interval * owners + owner[whole],
        weights=amount[whole] * np.maximum(seconds, 0.0),
        minlength=intervals * owners,
    )
    return np.asarray(cells, dtype=np.float64).reshape(intervals, owners)
