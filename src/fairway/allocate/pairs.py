"""Which jobs may share their workers, and how fast both then run (space sharing).

Pairs are written out one by one, or follow from the kinds of the jobs: in a cluster of thousands of jobs of a few dozen
kinds, every two jobs that can share are millions of pairs, but a small table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fairway.allocate.arrays import BoolArray, FloatArray, IntArray
from fairway.errors import InputError
from fairway.jobs import Pair


@dataclass(frozen=True, eq=False)
class Pairs:
    """Jobs that may share a gang: `rates[k, j, 0]` is the rate of job `first[k]` beside `second[k]` on type j."""

    first: IntArray
    second: IntArray
    rates: FloatArray

    def __len__(self) -> int:
        return len(self.first)

    @property
    def together(self) -> BoolArray:
        """On which types both members of each pair make progress."""
        both: BoolArray = np.logical_and.reduce(self.rates > 0, axis=2)
        return both

    def where(self, keep: BoolArray) -> Pairs:
        """Only the pairs that are marked."""
        return Pairs(self.first[keep], self.second[keep], self.rates[keep])

    def between(self, first: IntArray, second: IntArray, jobs: int) -> FloatArray:
        """The rates of some of the pairs, named by their members, the earlier one first; there are so many jobs."""
        keys = self.first * jobs + self.second
        order = np.argsort(keys)
        found = order[np.searchsorted(keys, first * jobs + second, sorter=order)]
        rates: FloatArray = self.rates[found]
        return rates

    def by_kind(self, jobs: int) -> tuple[IntArray, FloatArray]:
        """The kind of each of so many jobs, here its own, and the rates of every two kinds by type."""
        table = np.zeros((jobs, jobs, self.rates.shape[1], 2))
        table[self.first, self.second] = self.rates
        table[self.second, self.first] = self.rates[:, :, ::-1]
        return np.arange(jobs), table


class PairsOfKinds(Pairs):
    """Every two jobs that can share, where their kinds say how fast they then run: written out only if that is asked.

    `table[k, l, j]` are the rates of a job of kind k and one of kind l on type j.
    """

    _kinds: IntArray
    _table: FloatArray

    def __init__(self, kinds: IntArray, table: FloatArray) -> None:
        self.__dict__["_kinds"], self.__dict__["_table"] = kinds, table

    @classmethod
    def of(cls, kinds: IntArray, pairs: Pairs | None, types: int) -> PairsOfKinds:
        """The same from the kind of each job and the pairs that were written out, if any fit together at all."""
        several = int(kinds.max(initial=-1)) + 1
        table = np.zeros((several, several, types, 2))
        if pairs is not None:
            first, second = kinds[pairs.first], kinds[pairs.second]
            table[first, second] = pairs.rates
            table[second, first] = pairs.rates[:, :, ::-1]
        return cls(kinds, table)

    @property
    def kinds(self) -> IntArray:
        """The kind of each job."""
        return self._kinds

    def by_kind(self, jobs: int) -> tuple[IntArray, FloatArray]:
        """The kind of each job, and the rates of every two kinds by type."""
        assert jobs == len(self._kinds)
        return self._kinds, self._table

    def between(self, first: IntArray, second: IntArray, jobs: int) -> FloatArray:
        """The rates of some of the pairs, named by their members, the earlier one first; there are so many jobs."""
        assert jobs == len(self._kinds)
        rates: FloatArray = self._table[self._kinds[first], self._kinds[second]]
        return rates

    @cached_property
    def _members(self) -> tuple[IntArray, IntArray]:
        first, second = np.triu_indices(len(self._kinds), 1)
        both = self._table.min(axis=3).max(axis=2) > 0
        fits = both[self._kinds[first], self._kinds[second]]
        return first[fits], second[fits]

    @cached_property
    def first(self) -> IntArray:
        """The earlier job of each pair."""
        return self._members[0]

    @cached_property
    def second(self) -> IntArray:
        """The later job of each pair."""
        return self._members[1]

    @cached_property
    def rates(self) -> FloatArray:
        """The rates of both, by pair and type."""
        rates: FloatArray = self._table[self._kinds[self.first], self._kinds[self.second]]
        return rates


def pairs_by_position(pairs: Iterable[Pair], index: Mapping[str, int], types: tuple[str, ...]) -> Pairs | None:
    """The pairs of a list that names their members; refuses what names no job, or two that were named before."""
    first, second, rates = [], [], []
    seen: set[tuple[int, int]] = set()
    for position, pair in enumerate(pairs):
        for name in pair.jobs:
            if name not in index:
                raise InputError(f"pairs[{position}].jobs: '{name}' is not the id of a job")
        a, b = index[pair.jobs[0]], index[pair.jobs[1]]
        if a == b:
            raise InputError(f"pairs[{position}].jobs: '{pair.jobs[0]}' cannot share with itself")
        if (min(a, b), max(a, b)) in seen:
            raise InputError(f"pairs[{position}].jobs: '{pair.jobs[0]}' and '{pair.jobs[1]}' are given twice")
        seen.add((min(a, b), max(a, b)))
        order = 1 if a < b else -1
        first.append(min(a, b))
        second.append(max(a, b))
        rates.append([pair.throughputs.get(name, (0.0, 0.0))[::order] for name in types])
    if not first:
        return None
    return Pairs(np.array(first, dtype=np.int64), np.array(second, dtype=np.int64), np.array(rates, dtype=float))
