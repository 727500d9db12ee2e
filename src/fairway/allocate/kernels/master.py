"""The best mixture of answers: the master problem of a Dantzig-Wolfe decomposition with very few rows.

Each answer k is a way to run all jobs that reaches level z_k and uses the fraction u_kj of type j. Mixing answers
mixes levels and usages, so the best mixture is the linear program

    maximise sum_k theta_k z_k  subject to  sum_k theta_k u_kj <= 1 for every type j,  sum_k theta_k = 1,  theta >= 0

whose dual values are the prices at which to ask for the next answer. It has J + 1 rows and gains one column at a time,
so a primal simplex on an explicit basis solves it in less time than the call of a general solver takes, of which a
search makes dozens.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fairway.allocate.arrays import FloatArray, IntArray
from fairway.allocate.kernels.small_systems import eliminate, times
from fairway.compiled import FloatTable, compiled, compiled_within

_TOLERANCE = 1e-12
_PIVOT = 1e-9
"""Smaller pivots would make the basis singular."""


class Master(NamedTuple):
    """The master problem: a column for the slack of each type, then one for each answer, `column_count` in all.

    A column is the use of each type and a 1; `best` are the dual values of the types and, last, the level reached.
    """

    columns: FloatTable
    values: FloatArray
    basis: IntArray
    best: FloatArray
    column_count: IntArray


@compiled_within(releases_gil=True)
def begin(usage: FloatArray, level: float, most: int) -> Master:
    """The problem with one answer that fits (every usage at most 1) and room for so many more."""
    types = len(usage)
    columns, values = np.zeros((types + 1 + most, types + 1)), np.zeros(types + 1 + most)
    for j in range(types):
        columns[j, j] = 1.0
        columns[types, j] = usage[j]
    columns[types, types] = 1.0
    values[types] = level
    best = np.zeros(types + 1)
    best[types] = level
    return Master(columns, values, np.arange(types + 1), best, np.full(1, types + 1))


@compiled_within(releases_gil=True)
def offer(master: Master, usage: FloatArray, level: float) -> None:
    """One more answer, and the best mixture with it.

    Answers that differ only by rounding can make a basis singular: then the mixture stays as it was before, and
    whoever asks sees that it no longer improves.
    """
    types, count = len(usage), master.column_count[0]
    master.columns[count, :types] = usage
    master.columns[count, types] = 1.0
    master.values[count] = level
    master.column_count[0] = count + 1
    basis = master.basis.copy()
    dual = np.empty(types + 1)
    if _optimise(master.columns[: count + 1], master.values[: count + 1], basis, dual):
        master.basis[:] = basis
        master.best[:] = dual


@compiled(releases_gil=True)
def mixture(master: Master) -> tuple[IntArray, FloatArray]:
    """The answers in the best mixture, numbered in the order in which they came, and their parts."""
    size = len(master.basis)
    inside = np.ones((size, 1))
    numbers, parts = np.empty(size, np.int64), np.empty(size)
    count, total = 0, 0.0
    if not eliminate(master.columns[master.basis].T.copy(), inside):
        raise np.linalg.LinAlgError("Matrix is singular to machine precision.")
    for row in np.argsort(master.basis):
        if master.basis[row] >= size - 1 and inside[row, 0] > _TOLERANCE:
            numbers[count], parts[count] = master.basis[row] - size + 1, inside[row, 0]
            total += inside[row, 0]
            count += 1
    return numbers[:count].copy(), parts[:count] / total


@compiled_within(releases_gil=True)
def _optimise(columns: FloatTable, values: FloatArray, basis: IntArray, dual: FloatArray) -> bool:
    """Primal simplex from a feasible basis, which is changed in place; False if it becomes singular.

    Writes the dual values of the types and, last, the value of the optimum.
    """
    size = len(basis)
    rows = np.ones(size)
    scale = np.abs(values).max() + 1e-300
    pivots = 0
    while True:
        inverted = np.eye(size)
        if not eliminate(columns[basis].T.copy(), inverted):
            return False
        dual[:] = times(inverted.T, values[basis])
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
    return True
