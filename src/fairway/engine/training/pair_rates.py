"""How fast jobs run while they share, by kinds of jobs: what the table knows, or what was estimated and measured.

Jobs of the same type and gang size are of one kind. The rates of two kinds are looked up once and kept in an array from
which the pairs of a decision are gathered; a measurement replaces them (Gavel §3.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from fairway.allocate.arrays import FloatArray, IntArray
from fairway.allocate.pairs import Pairs, PairsOfKinds

Kind = tuple[str, int]
"""A job type and a gang size."""


class Partners(Protocol):
    """Says how fast two kinds of jobs run together."""

    def pair_rates(self, job_type: str, partner: str, scale_factor: int) -> Mapping[str, tuple[float, float]]:
        """Steps per second of both while they share, by accelerator type; a type that is missing cannot be shared."""
        ...


class PairRates:
    """Rates by two kinds and accelerator type; `kind` numbers them."""

    def __init__(self, types: tuple[str, ...], partners: Partners | None) -> None:
        self._types = types
        self._partners = partners
        self._kinds: dict[Kind | None, int] = {None: 0}
        self._set(np.zeros((1, 1, len(types), 2)))

    def _set(self, rates: FloatArray) -> None:
        """Rates are never changed in place: decisions that were made keep theirs."""
        self._rates = rates
        self._both = rates.min(axis=3).max(axis=2) > 0

    @property
    def table(self) -> FloatArray:
        """The rates of every two kinds, by accelerator type and job; never changed in place."""
        return self._rates

    def kind(self, job_type: str | None, scale_factor: int) -> int:
        """The number of a kind; 0 for jobs that share with no other."""
        if self._partners is None or job_type is None:
            return 0
        key = (job_type, scale_factor)
        number = self._kinds.get(key)
        if number is None:
            number = self._kinds[key] = len(self._kinds)
            self._set(np.pad(self._rates, ((0, 1), (0, 1), (0, 0), (0, 0))))
            for other in list(self._kinds):
                if other is not None and other[1] == scale_factor:
                    self._look_up(key, other)
        return number

    def _look_up(self, a: Kind, b: Kind) -> None:
        assert self._partners is not None
        known = self._partners.pair_rates(a[0], b[0], a[1])
        rates = np.array([known.get(name, (0.0, 0.0)) for name in self._types])
        i, j = self._kinds[a], self._kinds[b]
        new = self._rates.copy()
        new[i, j] = rates
        new[j, i] = rates[:, ::-1]
        self._set(new)

    def measured(self, first: int, second: int, column: int, rates: tuple[float, ...]) -> None:
        """Two kinds were seen to run at these rates on a type, which replaces what was believed."""
        new = self._rates.copy()
        new[first, second, column] = rates
        new[second, first, column] = rates[::-1]
        self._set(new)

    def of(self, first: int, second: int) -> FloatArray:
        """The rates of two kinds: a row per accelerator type, a column per job."""
        rates: FloatArray = self._rates[first, second]
        return rates

    def between(self, first: IntArray, second: IntArray) -> FloatArray:
        """The rates of many pairs of kinds at once: pair, accelerator type, job."""
        rates: FloatArray = self._rates[first, second]
        return rates

    def pairs(self, kinds: IntArray) -> Pairs | None:
        """Every two of these jobs that can share, by their positions."""
        if self._partners is None:
            return None
        present, counts = np.unique(kinds, return_counts=True)
        alone = np.diag(counts == 1)  # a job does not share with itself
        if not (self._both[np.ix_(present, present)] & ~alone).any():
            return None
        return PairsOfKinds(kinds.copy(), self._rates)
