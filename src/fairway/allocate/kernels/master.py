"""The best mixture of answers: the master problem of a Dantzig-Wolfe decomposition with very few rows.

Each answer k is a way to run all jobs that reaches level z_k and uses the fraction u_kj of type j. Mixing answers
mixes levels and usages, so the best mixture is the linear program

    maximise sum_k theta_k z_k  subject to  sum_k theta_k u_kj <= 1 for every type j,  sum_k theta_k = 1,  theta >= 0

whose dual values are the prices at which to ask for the next answer. It has J + 1 rows and gains one column at a time,
so a primal simplex on an explicit basis solves it in less time than the call of a general solver takes, of which a
decision would need dozens.
"""

from __future__ import annotations

import numpy as np

from fairway.allocate.arrays import FloatArray, IntArray
from fairway.allocate.kernels.small_systems import inverse, solution, times
from fairway.compiled import FloatTable, compiled

_TOLERANCE = 1e-12
_PIVOT = 1e-9
"""Smaller pivots would make the basis singular."""


class Master:
    """The master problem, begun with one answer that fits (every usage at most 1)."""

    def __init__(self, usage: FloatArray, level: float) -> None:
        types = len(usage)
        self._rows = np.ones(types + 1)
        self._columns = np.zeros((4 * (types + 1) + 60, types + 1))
        self._values = np.zeros(len(self._columns))
        self._columns[:types, :types] = np.eye(types)  # the slack of each type
        self._columns[types] = np.append(usage, 1.0)
        self._values[types] = level
        self._count = types + 1
        self._basis = np.arange(types + 1)
        self._best = (level, np.zeros(types))

    def add(self, usage: FloatArray, level: float) -> None:
        """Offer one more answer."""
        if self._count == len(self._columns):
            self._columns = np.concatenate([self._columns, np.zeros_like(self._columns)])
            self._values = np.concatenate([self._values, np.zeros_like(self._values)])
        self._columns[self._count, :-1] = usage
        self._columns[self._count, -1] = 1.0
        self._values[self._count] = level
        self._count += 1

    def solve(self) -> tuple[float, FloatArray]:
        """The level of the best mixture, and what relaxing each type by its whole capacity would add to it.

        Answers that differ only by rounding can make a basis singular: then the mixture stays as it was before, and
        whoever asks sees that it no longer improves.
        """
        basis = self._basis.copy()
        try:
            dual: FloatArray = _optimise(self._columns, self._values, self._count, basis, self._rows)
        except np.linalg.LinAlgError:
            return self._best
        self._basis, self._best = basis, (dual.item(-1), dual[:-1])
        return self._best

    def mixture(self) -> list[tuple[int, float]]:
        """The answers in the best mixture, numbered in the order in which they came, and their parts."""
        types = len(self._rows) - 1
        inside = _inside(self._columns, self._basis, self._rows)
        parts = [
            (int(column) - types, float(part))
            for column, part in zip(self._basis, inside, strict=True)
            if column >= types and part > _TOLERANCE
        ]
        total = sum(part for _, part in parts)
        return [(answer, part / total) for answer, part in sorted(parts)]


@compiled(releases_gil=True)
def _inside(columns: FloatTable, basis: IntArray, rows: FloatArray) -> FloatArray:
    """The parts of the basic columns."""
    return solution(columns[basis].T.copy(), rows)


@compiled(releases_gil=True)
def _optimise(columns: FloatTable, values: FloatArray, count: int, basis: IntArray, rows: FloatArray) -> FloatArray:
    """Primal simplex from a feasible basis, which is changed in place.

    Returns the dual values of the types and, last, the value of the optimum.
    """
    size = len(rows)
    columns, values = columns[:count], values[:count]
    scale = np.abs(values).max() + 1e-300
    pivots = 0
    while True:
        inverted = inverse(columns[basis].T.copy())
        dual = times(inverted.T, values[basis])
        reduced = values - times(columns, dual)
        entering = int(np.argmax(reduced))
        if reduced[entering] <= _TOLERANCE * scale or pivots > 50 * size:
            break
        if pivots > 10 * size:  # may be cycling: the lowest index that improves cannot cycle (Bland)
            entering = int(np.argmax(reduced > _TOLERANCE * scale))
        direction = times(inverted, columns[entering])
        inside = times(inverted, rows)
        shortest = np.inf
        for row in range(size):
            if direction[row] > _PIVOT:
                shortest = min(shortest, max(inside[row], 0.0) / direction[row])
        leaving = -1
        for row in range(size):  # of the rows that block first, the one with the largest pivot is the safest
            blocks = direction[row] > _PIVOT and max(inside[row], 0.0) <= (shortest + _TOLERANCE) * direction[row]
            if blocks and (leaving < 0 or direction[row] > direction[leaving]):
                leaving = row
        if leaving < 0:
            break
        basis[leaving] = entering
        pivots += 1
    value = 0.0
    for row in range(size):
        value += dual[row] * rows[row]
    for row in range(size - 1):
        dual[row] = max(dual[row], 0.0)
    dual[-1] = value
    return dual
