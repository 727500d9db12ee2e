"""How long jobs take that do not say so: quantiles of those that came before, of the same type and the same team.

A job counts with the seconds that it takes where it is fastest: when it arrives, if it says how long it is, and
otherwise when it ends. Lengths differ by factors of hundreds, so that means say little: what is kept is how many jobs
were how long, in classes of length that are half as long again as the one before. Old jobs are forgotten little by
little. The lengths of a team are drawn towards those of all jobs, these towards those of the type, and these towards
those of the type in the team, each as far as jobs of it were seen. A job that has run for some time is as long as one
of those that took longer; one that has run for longer than any of them is taken to be half done.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from fairway.allocate.arrays import FloatArray

_MEMORY = 500.0
"""How many jobs of a type or a team count, in the mean, before they are forgotten."""

_LIKE_WIDER = 10.0
"""As many jobs must be seen of a group for it to count as much as the wider one."""

_ENOUGH = 5
"""Jobs that must have been seen in all before anything is said."""

_SHORTEST, _FACTOR, _BINS = 1.0, 1.5, 48
"""Lengths from 1 s to 1.5^48 s, which is nine years."""

Group = tuple[str | None, str | None]
"""A job type and a team; None for any."""

Learned = tuple[tuple[str | None, str | None, tuple[tuple[int, float], ...]], ...]
"""By group, how many jobs were in which class of length."""

_EDGES = _SHORTEST * _FACTOR ** np.arange(_BINS + 1)

_NEWS = 0.02
"""The part of all jobs that count, by which there must be more of them before what is said changes."""


class LengthHistory:
    """Counts of jobs by group and length."""

    def __init__(self) -> None:
        self._counts: dict[Group, FloatArray] = {}
        self._seen = 0
        self._news = 0
        self._likely: dict[Group, FloatArray] = {}

    def learn(self, job_type: str | None, team: str | None, seconds: float) -> None:
        """A job has taken so long, or says that it will."""
        if not (math.isfinite(seconds) and seconds > 0):
            return
        place = min(max(int(math.log(seconds / _SHORTEST) / math.log(_FACTOR)), 0), _BINS - 1)
        for group in _groups(job_type, team):
            counts = self._counts.setdefault(group, np.zeros(_BINS))
            counts *= 1.0 - 1.0 / _MEMORY
            counts[place] += 1.0
        self._seen += 1
        self._news += 1
        if self._news > _NEWS * min(self._seen, _MEMORY):
            self._news = 0
            self._likely.clear()

    def left(
        self, jobs: Sequence[Group], done_seconds: FloatArray, quantile: FloatArray | float = 0.5
    ) -> FloatArray | None:
        """How much longer jobs take that have run for so long, with this probability at most; None if few were seen.

        Each is of a type and a team. Seconds are those at its fastest.
        """
        if self._seen < _ENOUGH:
            return None
        likely = np.stack([self._of(*job) for job in jobs])
        # The part of each class that is longer than what was done already, as if lengths were even within a class.
        longer = likely * np.clip((_EDGES[1:] - done_seconds[:, None]) / np.diff(_EDGES), 0.0, 1.0)
        sums = np.cumsum(longer, axis=1)
        wanted = quantile * sums[:, -1]
        row, place = np.arange(len(jobs)), np.count_nonzero(sums < wanted[:, None], axis=1)
        begin = np.maximum(_EDGES[place], done_seconds)
        safe = np.where(longer[row, place] > 0, longer[row, place], 1.0)
        within = 1.0 - (sums[row, place] - wanted) / safe
        found = begin + within * (_EDGES[place + 1] - begin) - done_seconds
        left: FloatArray = np.where(sums[:, -1] > 0, found, done_seconds)
        return left

    def _of(self, job_type: str | None, team: str | None) -> FloatArray:
        """The probability of each class of length, for a job of a type and a team."""
        likely = self._likely.get((job_type, team))
        if likely is None:
            likely = np.zeros(_BINS)
            for group in _groups(job_type, team):
                counts = self._counts.get(group)
                if counts is not None:
                    like_wider = _LIKE_WIDER if likely.any() else 0.0
                    likely = (counts + like_wider * likely) / (counts.sum() + like_wider)
            self._likely[job_type, team] = likely
        return likely

    def resumption(self) -> Learned:
        """What was learned, to be told to another engine: by group, how many jobs were in which class of length."""
        return tuple(
            (*group, tuple((place, float(counts[place])) for place in np.flatnonzero(counts).tolist()))
            for group, counts in self._counts.items()
        )

    def resume(self, learned: Learned) -> None:
        """Go on from what was learned before."""
        self._likely.clear()
        for job_type, team, classes in learned:
            counts = self._counts[job_type, team] = np.zeros(_BINS)
            for place, count in classes:
                counts[place] = count
        self._seen = round(float(self._counts[None, None].sum())) if learned else 0


def _groups(job_type: str | None, team: str | None) -> Iterable[Group]:
    """The groups that a job is in, the widest first, each once."""
    return dict.fromkeys(((None, None), (None, team), (job_type, None), (job_type, team)))
