"""What two jobs gain by sharing a gang, and with whom a job shares best (space sharing, Gavel §3.1).

The gain of a pair on a type is the work it does there, sum over its members of (rate in the pair / rate alone): 2 if
neither slows the other down, 1 if they might as well take turns, 0 where they cannot share.
"""

from __future__ import annotations

import numpy as np

from fairway.allocate.arrays import FloatArray, IntArray
from fairway.allocate.problem import Problem

WORTHWHILE = 1.5
"""A waiting job joins a running one only if their gain is above this."""


class Sharing:
    """The gains of all pairs of a problem, to be looked up by job."""

    def __init__(self, problem: Problem) -> None:
        self._none = np.zeros(len(problem.types))
        self._start = np.zeros(len(problem) + 1, dtype=np.int64)
        pairs = problem.shareable
        if pairs is None:
            return
        alone = np.stack([problem.rates[pairs.first], problem.rates[pairs.second]], axis=2)
        gains = np.divide(pairs.rates, alone, out=np.zeros_like(alone), where=alone > 0).sum(axis=2)
        self._gains = gains.round(9)  # equals stay equals, whatever the unit of a step
        guest = np.concatenate([pairs.first, pairs.second])
        partner = np.concatenate([pairs.second, pairs.first])
        order = np.lexsort((partner, guest))
        self._partner, self._pair = partner[order], order % len(pairs)
        self._start = np.searchsorted(guest[order], np.arange(len(problem) + 1))

    def gains(self, job: int, other: int) -> FloatArray:
        """The gain of these two on each type."""
        start, end = self._start[job : job + 2].tolist()
        found = start if start == end else start + int(np.searchsorted(self._partner[start:end], other))
        if found == end or self._partner[found] != other:
            return self._none
        gains: FloatArray = self._gains[self._pair[found]]
        return gains

    def best_host(self, guest: int, alone_on: IntArray) -> int | None:
        """With whom the guest gains most, the earliest of equals; None where it is not worthwhile.

        `alone_on[i]` is the type on which job i runs alone, -1 if it does not.
        """
        start, end = self._start[guest : guest + 2].tolist()
        if start == end:
            return None
        partners, columns = self._partner[start:end], alone_on[self._partner[start:end]]
        gains = np.where(columns >= 0, self._gains[self._pair[start:end], columns], 0.0)
        best = int(gains.argmax())
        return int(partners[best]) if gains[best] > WORTHWHILE else None
