"""The highest level where jobs may share, and then the most work, by one simplex in compiled code.

    maximise z, then sum_k value_k x_k
    subject to   sum of scale_k x_k on type j <= N_j,   time of class c in all columns <= members_c,
                 rates of class c in all columns >= z demand_c,   x, z >= 0

A column is a class alone, or a pair of classes, on one type. To let no job run is a feasible start, so that there is
no first phase. Once z is the highest, only columns whose reduced cost for it is 0 may enter: z stays what it is along
them, which makes the second objective follow the first exactly. The basis has a row for each type and two for each
class; its inverse is kept whole, which for some dozens of classes is many times as fast as the call of a general
solver. For more, or where rounding leads astray (the answer is checked by its dual values), there is `program`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fairway.allocate.arrays import BoolArray, FloatArray, IntArray
from fairway.allocate.kernels.classes import Classes
from fairway.allocate.kernels.surplus import MOST
from fairway.allocate.pairs import Pairs
from fairway.compiled import FloatTable, compiled, compiled_within

MOST_ROWS = 72
"""Rows up to which it pays to keep the inverse of the basis whole."""

_TOLERANCE = 1e-10
_PIVOT = 1e-9
_AFRESH = 60
"""Steps after which the inverse is worked out anew."""

_STUCK = 40
"""Steps without progress after which the first column that could improve enters: that comes to an end (Bland)."""

_FEASIBLE = 1e-8

_USED = 1e-9
"""Smaller shares are none."""


class Raised(NamedTuple):
    """The highest level and a bound that is proven; the time of classes alone and of pairs; prices of the types."""

    level: float
    bound: float
    alone: FloatArray
    together: FloatArray
    prices: FloatArray


def raise_and_spend(classes: Classes, demand: FloatArray, *, spends: bool) -> Raised | None:
    """The highest multiple of the demands, and then, if it `spends` what is left, the most work in levels (`surplus`).

    None if there are too many classes, or rounding leads astray.
    """
    pairs, size, types = classes.pairs, len(classes), len(classes.capacity)
    assert pairs is not None
    if types + 2 * size > MOST_ROWS:
        return None
    a, a_type = np.nonzero(classes.rates)
    # By turns, two that do no more together would take no more of anything.
    pair, pair_type = np.nonzero(pairs.together & _gains(classes, pairs))
    first, second, together = pairs.first[pair], pairs.second[pair], pairs.rates[pair, pair_type]
    unit = np.where(demand > 0, demand, classes.fastest)
    # Each column of the matrix: workers, time of the first class, its rate, time of the second, its rate.
    column_first = np.concatenate([a, first])
    column_second = np.concatenate([np.full(len(a), -1), second])
    column_type = np.concatenate([a_type, pair_type])
    rate_first = np.concatenate([classes.rates[a, a_type], together[:, 0]])
    rate_second = np.concatenate([np.zeros(len(a)), together[:, 1]])
    ok, x, dual = _solve(
        column_first, column_second, column_type, classes.scale_factors[column_first], rate_first / unit[column_first],
        rate_second / unit[column_second], spends, classes.fastest / (MOST * unit), classes.capacity, classes.counts,
        classes.counts * demand / unit, _used_before(classes, column_first, column_second, column_type),
    )  # fmt: skip
    if not ok:
        return None
    alone, shared = np.zeros_like(classes.rates), np.zeros((len(pairs), types))
    alone[a, a_type] = x[: len(a)] / classes.counts[a]
    shared[pair, pair_type] = x[len(a) : len(column_first)]
    level = float(x[-1])
    bound = float(dual[:types] @ classes.capacity + dual[types : types + size] @ classes.counts)
    if not abs(bound - level) <= _FEASIBLE * max(abs(level), 1e-300):
        return None
    return Raised(level, max(level, bound), alone, shared, dual[:types])


def _gains(classes: Classes, pairs: Pairs) -> BoolArray:
    """Where two jobs make more together than by turns."""
    kept = np.zeros(pairs.together.shape)
    for side, member in enumerate((pairs.first, pairs.second)):
        alone = classes.rates[member]
        kept += np.divide(pairs.rates[:, :, side], alone, out=np.zeros_like(alone), where=alone > 0)
    return kept > 1.0


def _used_before(classes: Classes, first: IntArray, second: IntArray, column_type: IntArray) -> BoolArray:
    """The columns that the decision before used, for the classes that its jobs are of now; all if there is none."""
    problem, previous = classes.problem, classes.problem.previous
    if previous is None or previous.types != problem.types:
        return np.ones(len(first), dtype=bool)
    size, types = len(classes) + 1, len(problem.types)
    place = {job: position for position, job in enumerate(problem.ids)}
    now = np.array([place.get(job, -1) for job in previous.ids], dtype=np.int64)
    member = np.where(now >= 0, classes.member[now], -1)
    row, used_type = np.nonzero(previous.shares > _USED)
    one, other = previous.first[row], previous.second[row]
    one, other = member[one], np.where(other >= 0, member[other], size)  # for none, a class that there is not
    here = (one >= 0) & (other >= 0)
    one, other, used_type = one[here], other[here], used_type[here]
    used = np.zeros((size, size + 1, types), dtype=bool)
    used[np.minimum(one, other), np.maximum(one, other), used_type] = True
    found: BoolArray = used[first, np.where(second >= 0, second, size), column_type]
    return found


@compiled(releases_gil=True)
def _solve(
    first: IntArray, second: IntArray, column_type: IntArray, scale: FloatArray, rate_first: FloatArray,
    rate_second: FloatArray, spends: bool, least: FloatArray, capacity: FloatArray, members: FloatArray,
    rising: FloatArray, promising: BoolArray,
) -> tuple[bool, FloatArray, FloatArray]:  # fmt: skip
    """Whether it was solved, the columns (the level last), and the dual values of the level.

    Columns that are `promising` are looked at first, and the others when none of these improves: most of them never
    enter, and to look at them all takes longer than a step.
    """
    near, few = promising.copy(), True
    types, size, columns = len(capacity), len(members), len(first)
    rows = types + 2 * size
    level, total = columns, columns + 1 + rows
    limits = np.zeros(rows)
    limits[:types], limits[types : types + size] = capacity, members
    basis = np.arange(columns + 1, total)
    inside = np.full(total, -1)
    inside[basis] = np.arange(rows)
    inverse: FloatTable = np.eye(rows)
    have = limits.copy()
    allowed = np.ones(total, np.bool_)
    cost, reduced = np.zeros(total), np.zeros(total)
    cost[level] = 1.0
    entries, direction = np.zeros(rows), np.zeros(rows)
    proof = np.zeros(rows)
    spending = False
    since, stuck = 0, 0
    for _ in range(60 * rows):
        if since >= _AFRESH:
            inverse = _basis_matrix(
                basis, first, second, column_type, scale, rate_first, rate_second, rising, types, size
            )
            if not _invert(inverse):
                return False, np.zeros(0), proof
            _times(inverse, limits, have)
            since = 0
        dual = np.zeros(rows)
        for row in range(rows):
            worth = cost[basis[row]]
            if worth != 0.0:
                for k in range(rows):
                    dual[k] += worth * inverse[row, k]
        entering, best = -1, 0.0
        for k in range(total):
            if inside[k] >= 0:
                reduced[k] = 0.0
                continue
            if few and k < columns and not near[k]:
                continue
            gain = cost[k]
            if k < columns:
                c, d, j = first[k], second[k], column_type[k]
                gain -= dual[j] * scale[k] + dual[types + c] - dual[types + size + c] * rate_first[k]
                if d >= 0:
                    gain -= dual[types + d] - dual[types + size + d] * rate_second[k]
            elif k == level:
                for c in range(size):
                    gain -= dual[types + size + c] * rising[c]
            else:
                gain -= dual[k - columns - 1]
            reduced[k] = gain
            if gain > best + _TOLERANCE and allowed[k] and (entering < 0 or stuck <= _STUCK):
                entering, best = k, gain
        if entering < 0 and few:
            few = False
            continue
        if not few:
            for k in range(columns):
                near[k] = near[k] or (allowed[k] and reduced[k] > 0.5 * best > 0.0)
            few = entering >= 0
        if entering < 0:
            if spending:
                break
            proof[:] = dual
            if not spends:
                break
            for k in range(total):
                allowed[k] = reduced[k] > -_TOLERANCE * 10.0
            cost[level] = 0.0
            reached = have[inside[level]] if inside[level] >= 0 else 0.0
            for k in range(columns):
                c, d = first[k], second[k]
                cost[k] = _worth(rising[c], members[c], reached, least[c]) * rate_first[k]
                if d >= 0:
                    cost[k] += _worth(rising[d], members[d], reached, least[d]) * rate_second[k]
            cost /= max(cost.max(), 1e-300)
            spending, stuck, few = True, 0, True
            continue
        entries[:] = 0.0
        _fill(entries, entering, first, second, column_type, scale, rate_first, rate_second, rising, types, size)
        direction[:] = 0.0
        for k in range(rows):
            if entries[k] != 0.0:
                for row in range(rows):
                    direction[row] += inverse[row, k] * entries[k]
        shortest = np.inf
        for row in range(rows):
            if direction[row] > _PIVOT:
                shortest = min(shortest, (max(have[row], 0.0) + 1e-12) / direction[row])
        leaving = -1
        for row in range(rows):  # of the rows that block first, the one with the largest pivot is the safest
            if direction[row] > _PIVOT and max(have[row], 0.0) <= shortest * direction[row]:
                if stuck > _STUCK:
                    if leaving < 0 or basis[row] < basis[leaving]:
                        leaving = row
                elif leaving < 0 or direction[row] > direction[leaving]:
                    leaving = row
        if leaving < 0:
            return False, np.zeros(0), proof
        step = max(have[leaving], 0.0) / direction[leaving]
        stuck = 0 if step > 1e-11 else stuck + 1
        for row in range(rows):
            have[row] -= step * direction[row]
        have[leaving] = step
        pivot = direction[leaving]
        for k in range(rows):
            inverse[leaving, k] /= pivot
        for row in range(rows):
            factor = direction[row]
            if row != leaving and factor != 0.0:
                for k in range(rows):
                    inverse[row, k] -= factor * inverse[leaving, k]
        inside[basis[leaving]] = -1
        basis[leaving], inside[entering] = entering, leaving
        since += 1
    else:
        return False, np.zeros(0), proof
    inverse = _basis_matrix(basis, first, second, column_type, scale, rate_first, rate_second, rising, types, size)
    if not _invert(inverse):
        return False, np.zeros(0), proof
    _times(inverse, limits, have)
    if have.min() < -_FEASIBLE * max(1.0, limits.max()):
        return False, np.zeros(0), proof
    answer = np.zeros(columns + 1)
    for row in range(rows):
        if basis[row] <= level:
            answer[basis[row]] = max(have[row], 0.0)
    return True, answer, np.maximum(proof, 0.0)


@compiled_within(releases_gil=True)
def _worth(rising: float, members: float, level: float, least: float) -> float:
    """What a unit of rate counts: one over what the level asks for, nothing where it asks for nothing."""
    return 1.0 / max(rising / members * level, least, 1e-300) if rising > 0.0 else 0.0


@compiled_within(releases_gil=True)
def _basis_matrix(
    basis: IntArray, first: IntArray, second: IntArray, column_type: IntArray, scale: FloatArray,
    rate_first: FloatArray, rate_second: FloatArray, rising: FloatArray, types: int, size: int,
) -> FloatTable:  # fmt: skip
    rows = len(basis)
    matrix = np.zeros((rows, rows))
    for row in range(rows):
        _fill(matrix[row], basis[row], first, second, column_type, scale, rate_first, rate_second, rising, types, size)
    return matrix.T.copy()


@compiled_within(releases_gil=True)
def _fill(
    entries: FloatArray, k: int, first: IntArray, second: IntArray, column_type: IntArray, scale: FloatArray,
    rate_first: FloatArray, rate_second: FloatArray, rising: FloatArray, types: int, size: int,
) -> None:  # fmt: skip
    """Write the entries of a column, in rows whose limits are upper ones; those of its slack, beyond the level."""
    columns = len(first)
    if k < columns:
        entries[column_type[k]] += scale[k]
        entries[types + first[k]] += 1.0
        entries[types + size + first[k]] -= rate_first[k]
        if second[k] >= 0:
            entries[types + second[k]] += 1.0
            entries[types + size + second[k]] -= rate_second[k]
    elif k == columns:
        for c in range(size):
            entries[types + size + c] += rising[c]
    else:
        entries[k - columns - 1] = 1.0


@compiled_within(releases_gil=True)
def _times(matrix: FloatTable, vector: FloatArray, result: FloatArray) -> None:
    for row in range(len(vector)):
        total = 0.0
        for k in range(len(vector)):
            total += matrix[row, k] * vector[k]
        result[row] = total


@compiled_within(releases_gil=True)
def _invert(matrix: FloatTable) -> bool:
    """Turn a matrix into its inverse, in place (Gauss and Jordan, largest pivots first); False if it has none."""
    size = len(matrix)
    taken = np.empty(size, np.int64)
    for column in range(size):
        best = column
        for row in range(column + 1, size):
            if abs(matrix[row, column]) > abs(matrix[best, column]):
                best = row
        taken[column] = best
        if abs(matrix[best, column]) < 1e-13:
            return False
        if best != column:
            for k in range(size):
                matrix[best, k], matrix[column, k] = matrix[column, k], matrix[best, k]
        pivot = 1.0 / matrix[column, column]
        matrix[column, column] = 1.0
        for k in range(size):
            matrix[column, k] *= pivot
        for row in range(size):
            factor = matrix[row, column]
            if row != column and factor != 0.0:
                matrix[row, column] = 0.0
                for k in range(size):
                    matrix[row, k] -= factor * matrix[column, k]
    for column in range(size - 1, -1, -1):  # rows that changed places are columns that do
        other = taken[column]
        if other != column:
            for k in range(size):
                matrix[k, column], matrix[k, other] = matrix[k, other], matrix[k, column]
    return True
