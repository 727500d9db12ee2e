"""What keeps coming: how much work of which class arrives per second, learned from the jobs seen so far.

A class is a job type with a gang size. A job counts with the seconds that it takes where it is fastest: when it
arrives, if it says how long it is, and otherwise when it ends. Old jobs are forgotten little by little, so that about
the last two thousand count. Lengths differ by a factor of hundreds, so the mean length of a class of which few jobs
were seen is drawn towards that of all.
"""

from __future__ import annotations

import math

import numpy as np

from fairway.allocate.arrays import FloatArray
from fairway.allocate.demand import Demand
from fairway.engine.training.job_table import NONE
from fairway.engine.training.lengths import LengthHistory
from fairway.engine.training.messages import ArrivalsResumed
from fairway.engine.training.pair_rates import PairRates

_MEMORY = 2000.0
"""How many jobs count, in the mean, before they are forgotten."""

_ENOUGH = 50
"""Jobs that must have been seen before anything is said."""

_LIKE_ALL = 20.0
"""The mean length of a class counts as much as that of all when so many of its jobs were seen."""

_NEWS = 0.02
"""The part of all jobs that count, by which there must be more of them before what is said changes."""


class Arrivals:
    """Numbers classes and learns what comes of each. `demand` is what is known, renewed now and then; None at first.

    `lengths` are those of the jobs that have come, by their types and teams.
    """

    def __init__(self, types: tuple[str, ...], pair_rates: PairRates) -> None:
        self._types = types
        self._pair_rates = pair_rates
        self._kinds: list[int] = []
        self._classes: dict[tuple[str, int], int] = {}
        self._rates: list[FloatArray] = []
        self._count: list[float] = []
        self._seconds: list[float] = []
        self._last: float | None = None
        self._span = 0.0
        self._seen = 0
        self._news = 0
        self.demand: Demand | None = None
        self.lengths = LengthHistory()

    def class_of(self, job_type: str | None, scale_factor: int, rates: FloatArray) -> int:
        """The number of a job's class; -1 for a job that has no type."""
        if job_type is None:
            return NONE
        number = self._classes.setdefault((job_type, scale_factor), len(self._classes))
        if number == len(self._rates):
            self._rates.append(rates.copy())
            self._kinds.append(self._pair_rates.kind(job_type, scale_factor))
            self._count.append(0.0)
            self._seconds.append(0.0)
        return number

    def learn(self, group: int, steps: float, now: float) -> None:
        """A job of this class and length has come, or has ended."""
        if group == NONE or not math.isfinite(steps):
            return
        fastest = float(self._rates[group].max())
        if fastest <= 0:
            return
        keep = 1.0 - 1.0 / _MEMORY
        self._count = [value * keep for value in self._count]
        self._seconds = [value * keep for value in self._seconds]
        self._span = self._span * keep + (0.0 if self._last is None else now - self._last)
        self._last = now
        self._count[group] += 1.0
        self._seconds[group] += steps / fastest
        self._seen += 1
        self._news += 1
        if self._seen >= _ENOUGH and self._span > 0 and self._news >= max(_NEWS * min(self._seen, _MEMORY), 5.0):
            self._news = 0
            self.demand = self._demand()

    def _demand(self) -> Demand:
        rates, count, seconds = np.array(self._rates), np.array(self._count), np.array(self._seconds)
        mean = seconds.sum() / count.sum()
        length = (seconds + _LIKE_ALL * mean) / (count + _LIKE_ALL)
        length *= seconds.sum() / (count * length).sum()
        scale = np.array([size for _, size in self._classes], dtype=float)
        kinds = np.array(self._kinds)
        pairs = self._pair_rates.between(kinds[:, None], kinds[None, :]) if kinds.any() else None
        return Demand(rates, scale, count * length * rates.max(axis=1) / self._span, pairs)

    def resumption(self) -> ArrivalsResumed:
        """The event by which another engine goes on from what was learned."""
        rows = zip(self._classes, self._rates, self._count, self._seconds, strict=True)
        return ArrivalsResumed(
            self._types,
            tuple((*key, tuple(rates.tolist()), count, seconds) for key, rates, count, seconds in rows),
            self._span,
            self._seen,
            self.lengths.resumption(),
        )

    def resume(self, event: ArrivalsResumed, now: float) -> None:
        """Go on from what was learned before, of rates if it was about the same accelerator types."""
        self.lengths.resume(event.lengths)
        if event.types != self._types:
            return
        for job_type, size, rates, count, seconds in event.classes:
            number = self.class_of(job_type, size, np.array(rates))
            self._count[number], self._seconds[number] = count, seconds
        self._span, self._seen, self._last = event.span_seconds, event.seen, now
        if self._seen >= _ENOUGH and self._span > 0:
            self.demand = self._demand()
