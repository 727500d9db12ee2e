"""The reduction that comes first: identical jobs become one class, and the answer is expanded again.

Jobs are identical when a policy cannot tell them apart: equal rates, equal scale factor, equal demand, and equal rates
beside any other job. The objectives are convex or monotone and treat equals alike, so an allocation that gives all
members of a class the same is among the best, and solving for classes changes nothing but the size. Classes come in an
order that depends on their features only, which makes every decision independent of the order and the names of jobs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from fairway.allocate.arrays import BoolArray, FloatArray, IntArray, row_maxima
from fairway.allocate.pairs import Pairs, PairsOfKinds
from fairway.allocate.problem import Problem
from fairway.compiled import BoolTable, FloatBlock, FloatBlocks, FloatTable, HashArray, compiled, compiled_within

Bits = TypeVar("Bits", np.uint64, HashArray)


@dataclass(frozen=True, eq=False)
class Classes:
    """C classes of identical jobs competing for the same workers.

    `member[i]` is the class of job i, -1 if it can run nowhere; `example[c]` one job of class c; `counts[c]` how many
    there are. `rates` and `scale_factors` are those of one job. In `pairs`, positions are classes.
    """

    problem: Problem
    member: IntArray
    example: IntArray
    counts: FloatArray
    rates: FloatArray
    scale_factors: FloatArray
    capacity: FloatArray
    pairs: Pairs | None

    @classmethod
    def of(
        cls, problem: Problem, features: Sequence[FloatArray], *, space_sharing: bool, merge: bool = True
    ) -> Classes:
        """Group the jobs that agree in their rates, scale factors, pairs and the given features (one value per job)."""
        jobs = np.flatnonzero(problem.can_run)
        if space_sharing and merge and isinstance(problem.pairs, PairsOfKinds):
            return cls._of_kinds(problem, features, jobs, problem.pairs)
        pairs = problem.shareable if space_sharing else None
        table = np.column_stack([problem.rates, problem.scale_factors, *features])[jobs]
        if pairs is None:
            group, example = _group(table, merge)
        else:
            group, example = _group_with_pairs(table, merge, jobs, pairs, len(problem))
        member = np.full(len(problem), -1, dtype=np.int64)
        member[jobs] = group
        return cls(
            problem=problem,
            member=member,
            example=jobs[example],
            counts=np.bincount(group, minlength=len(example)).astype(float),
            rates=problem.rates[jobs[example]],
            scale_factors=problem.scale_factors[jobs[example]],
            capacity=problem.workers,
            pairs=None if pairs is None else _class_pairs(pairs, member),
        )

    @classmethod
    def _of_kinds(
        cls, problem: Problem, features: Sequence[FloatArray], jobs: IntArray, pairs: PairsOfKinds
    ) -> Classes:
        """The same where the kind of a job says with whom it shares: no two jobs need be looked at."""
        kinds, table = pairs.by_kind(len(problem))
        rows = np.column_stack([problem.rates, problem.scale_factors, *features, kinds])[jobs]
        group, example = _group(rows, True)
        member = np.full(len(problem), -1, dtype=np.int64)
        member[jobs] = group
        counts = np.bincount(group, minlength=len(example))
        sizes, kind = problem.scale_factors[jobs[example]], kinds[jobs[example]]
        shared = Pairs(*_pairs_of(kind, sizes, counts, problem.runnable[jobs[example]], table))
        return cls(
            problem=problem,
            member=member,
            example=jobs[example],
            counts=counts.astype(float),
            rates=problem.rates[jobs[example]],
            scale_factors=sizes,
            capacity=problem.workers,
            pairs=shared if len(shared) else None,
        )

    def __len__(self) -> int:
        return len(self.example)

    @cached_property
    def fastest(self) -> FloatArray:
        """The highest rate that a job of each class can have, alone or beside another."""
        fastest = row_maxima(self.rates)
        if self.pairs is not None:
            np.maximum.at(fastest, self.pairs.first, self.pairs.rates[:, :, 0].max(axis=1))
            np.maximum.at(fastest, self.pairs.second, self.pairs.rates[:, :, 1].max(axis=1))
        return fastest

    def within(self, time: FloatArray, types: BoolArray) -> Classes:
        """The same jobs, each with only a part of its time, on some of the types.

        A job with half of its time is one that makes half the rate on half the workers all of the time.
        """
        return replace(
            self,
            rates=np.where(types, self.rates, 0.0) * time[:, None],
            scale_factors=self.scale_factors * time,
            capacity=np.where(types, self.capacity, 0.0),
        )

    def of_jobs(self, values: FloatArray) -> FloatArray:
        """The value of one job of each class."""
        return values[self.example]

    def expand(self, alone: FloatArray) -> FloatArray:
        """Shares of every job in the problem, from those of one job of each class."""
        shares = alone[self.member]
        shares[self.member < 0] = 0.0
        return shares

    def expand_pairs(self, together: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
        """Rows of job pairs from the total time of each pair of classes, so that every member gets the same.

        Between two classes, walking along both at once spreads the time over at most |A| + |B| - 1 pairs; within one
        class, a ring gives every member two partners.
        """
        assert self.pairs is not None
        used = np.flatnonzero(together.any(axis=1))
        if not len(used):
            nothing = np.zeros(0, dtype=np.int64)
            return nothing, nothing, np.zeros((0, len(self.capacity)))
        members = np.argsort(self.member, kind="stable")[np.count_nonzero(self.member < 0) :]
        ends = np.cumsum(self.counts.astype(np.int64))
        return _in_order(*_spread(members, ends, self.pairs.first[used], self.pairs.second[used], together[used]))


@compiled(releases_gil=True)
def _pairs_of(
    kind: IntArray, sizes: FloatArray, counts: IntArray, runs: BoolTable, table: FloatBlocks
) -> tuple[IntArray, IntArray, FloatBlock]:
    """The classes of each pair that can share, and their rates; a job does not share with itself."""
    classes, types = runs.shape
    most = classes * (classes + 1) // 2
    first, second, rates = np.empty(most, np.int64), np.empty(most, np.int64), np.zeros((most, types, 2))
    count = 0
    for a in range(classes):
        for b in range(a, classes):
            if sizes[a] != sizes[b] or (a == b and counts[a] < 2):
                continue
            some = False
            for w in range(types):
                one, other = table[kind[a], kind[b], w, 0], table[kind[a], kind[b], w, 1]
                if one > 0.0 and other > 0.0 and runs[a, w] and runs[b, w]:
                    rates[count, w, 0], rates[count, w, 1] = one, other
                    some = True
            if some:
                first[count], second[count] = a, b
                count += 1
    return first[:count].copy(), second[:count].copy(), rates[:count].copy()


@compiled_within()
def _mix(bits: Bits) -> Bits:
    """The finaliser of splitmix64: every bit of the input reaches every bit of the output."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31)) ^ np.uint64(0x9E3779B97F4A7C15)


@compiled(releases_gil=True)
def _hashes(table: FloatTable) -> HashArray:
    """One number per row; equal rows agree."""
    rows, columns = table.shape
    hashes = np.empty(rows, dtype=np.uint64)
    for row in range(rows):
        total = np.uint64(0)
        for column in range(columns):
            bits = np.float64(table[row, column] + 0.0).view(np.uint64)  # + 0.0 turns -0.0 into 0.0
            total += _mix(bits) * (_mix(np.uint64(column + 1)) | np.uint64(1))
        hashes[row] = _mix(total)
    return hashes


@compiled(releases_gil=True)
def _group(table: FloatTable, merge: bool) -> tuple[IntArray, IntArray]:
    """The class of each row, and a row of each class: rows that are alike share one."""
    rows, columns = table.shape
    hashes = _hashes(table)
    order = np.argsort(hashes)
    group, example = np.empty(rows, dtype=np.int64), np.empty(rows, dtype=np.int64)
    classes = 0
    for position in range(rows):
        row = order[position]
        alike = merge and position > 0 and hashes[row] == hashes[order[position - 1]]
        if alike:
            first = example[classes - 1]
            for column in range(columns):
                alike = alike and table[row, column] == table[first, column]
        if not alike:
            example[classes] = row
            classes += 1
        group[row] = classes - 1
    return group, example[:classes].copy()


def _group_with_pairs(
    table: FloatArray, merge: bool, jobs: IntArray, pairs: Pairs, total: int
) -> tuple[IntArray, IntArray]:
    """The same for jobs that share: they are alike only if they also are beside every other job."""
    hashes = _refine(_hashes(table), jobs, pairs, total)
    order = np.argsort(hashes)
    fresh = np.ones(len(order), dtype=bool)
    np.not_equal(hashes[order[1:]], hashes[order[:-1]], out=fresh[1:])
    if not merge or not (fresh.all() or _merges(fresh, order, table, jobs, pairs, total)):
        fresh[:] = True
    group = np.empty_like(order)
    group[order] = np.cumsum(fresh) - 1
    return group, order[fresh]


def _merges(
    fresh: BoolArray, order: IntArray, table: FloatArray, jobs: IntArray, pairs: Pairs | None, total: int
) -> bool:
    """Whether jobs of equal hash really are alike (`fresh` marks the first of each in this order)."""
    group = np.empty_like(order)
    group[order] = np.cumsum(fresh) - 1
    if not np.array_equal(table, table[order[fresh][group]]):
        return False
    return pairs is None or _interchangeable(group, jobs, pairs, total)


def _refine(hashes: HashArray, jobs: IntArray, pairs: Pairs, total: int) -> HashArray:
    """Mix into each job's hash what it is beside whom, whatever the order of its pairs."""
    everyone = np.zeros(total, dtype=np.uint64)
    everyone[jobs] = hashes
    one, two = (_hashes(np.ascontiguousarray(pairs.rates[:, :, side])) for side in (0, 1))
    refined = everyone.copy()
    np.add.at(refined, pairs.first, _mix(_mix(everyone[pairs.second] ^ one) ^ two))
    np.add.at(refined, pairs.second, _mix(_mix(everyone[pairs.first] ^ two) ^ one))
    mixed: HashArray = _mix(refined)
    return mixed[jobs]


def _interchangeable(group: IntArray, jobs: IntArray, pairs: Pairs, total: int) -> bool:
    """Whether any member of a class can stand for any other: all their pairs are there, at the same rates."""
    member = np.full(total, -1, dtype=np.int64)
    member[jobs] = group
    counts = np.bincount(group)
    a, b, rates = _ordered(pairs, member)
    keys, found, inverse, seen = np.unique(
        a * len(counts) + b, return_index=True, return_inverse=True, return_counts=True
    )
    one, two = keys // len(counts), keys % len(counts)
    expected = np.where(one == two, counts[one] * (counts[one] - 1) // 2, counts[one] * counts[two])
    mirrored = (one[inverse] != two[inverse]) | (rates[:, :, 0] == rates[:, :, 1]).all(axis=1)
    return bool((seen == expected).all() and mirrored.all() and np.array_equal(rates, rates[found[inverse]]))


def _ordered(pairs: Pairs, member: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
    """The classes of each pair, lower one first, with its rates in the same order."""
    a, b = member[pairs.first], member[pairs.second]
    rates = np.where((a > b)[:, None, None], pairs.rates[:, :, ::-1], pairs.rates)
    return np.minimum(a, b), np.maximum(a, b), rates


def _class_pairs(pairs: Pairs, member: IntArray) -> Pairs:
    a, b, rates = _ordered(pairs, member)
    classes = int(member.max()) + 1
    _, found = np.unique(a * classes + b, return_index=True)
    return Pairs(a[found], b[found], rates[found])


@compiled(releases_gil=True)
def _spread(
    members: IntArray, ends: IntArray, one: IntArray, other: IntArray, together: FloatTable
) -> tuple[IntArray, IntArray, FloatTable]:
    """The time of each pair of classes as rows of job pairs; `members` are sorted by class, which `ends` there."""
    count, most = 0, 0
    for position in range(len(one)):
        a, b = one[position], other[position]
        most += ends[a] - (ends[a - 1] if a else 0) + ends[b] - (ends[b - 1] if b else 0)
    first, second = np.empty(most, np.int64), np.empty(most, np.int64)
    shares = np.empty((most, together.shape[1]))
    for position in range(len(one)):
        a, b = one[position], other[position]
        left = members[(ends[a - 1] if a else 0) : ends[a]]
        right = members[(ends[b - 1] if b else 0) : ends[b]]
        if a == b:  # a ring of neighbours, in which every job has the same; of two jobs, one pair
            size = len(left)
            for job in range(1 if size == 2 else size):
                first[count], second[count] = left[job], left[(job + 1) % size]
                shares[count] = together[position] * (1.0 if size == 2 else 1.0 / size)
                count += 1
            continue
        # The north-west corner rule, in units of one job of `left` beside one of `right`.
        whole, at = len(left) * len(right), 0
        while at < whole:
            i, j = at // len(right), at // len(left)
            end = min((i + 1) * len(right), (j + 1) * len(left))
            first[count], second[count] = left[i], right[j]
            shares[count] = together[position] * ((end - at) / whole)
            count, at = count + 1, end
    return first[:count].copy(), second[:count].copy(), shares[:count].copy()


def _in_order(first: IntArray, second: IntArray, shares: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Lower job first in every pair, pairs sorted, those that stand there twice added up."""
    low, high = np.minimum(first, second), np.maximum(first, second)
    size = int(high.max()) + 1
    keys, inverse = np.unique(low * size + high, return_inverse=True)
    total = np.zeros((len(keys), shares.shape[1]))
    np.add.at(total, inverse, shares)
    return keys // size, keys % size, total
