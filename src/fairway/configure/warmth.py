"""When to begin a copy of a model before a batch needs it.

A copy that is begun when its batch is due makes the batch wait for a cold start of seconds. A later stage is due when
the one before it ends, so its copy is begun a cold start earlier, on the same worker, where its input will be. An entry
stage is due when the next request is: after the mean gap of late,

    mean gap <- α · gap + (1 - α) · mean gap
"""

from __future__ import annotations

from typing import NamedTuple

SMOOTHING = 0.3
"""α: the weight of the last gap in the mean."""


class Gaps(NamedTuple):
    """The mean time between the jobs of a queue, and when the last one came; nothing known before the second."""

    mean: float | None = None
    last: float | None = None

    def after(self, time: float, smoothing: float = SMOOTHING) -> Gaps:
        """The same after another job has come."""
        if self.last is None:
            return Gaps(None, time)
        gap = time - self.last
        return Gaps(gap if self.mean is None else smoothing * gap + (1 - smoothing) * self.mean, time)

    def next_arrival(self) -> float | None:
        """When the next job is expected; None if nothing is known yet."""
        return None if self.mean is None or self.last is None else self.last + self.mean


def prewarm_later(seconds_to_start: float, cold_seconds: float) -> float:
    """In how many seconds to begin a copy for a stage that starts when the running one ends."""
    return max(0.0, seconds_to_start - cold_seconds)


def prewarm_entry(gaps: Gaps, now: float, cold_seconds: float) -> float | None:
    """In how many seconds to begin a copy for an entry stage, in time for the next request.

    None as long as no gap is known.
    """
    due = gaps.next_arrival()
    return None if due is None else max(0.0, due - cold_seconds - now)
