"""Where the market clears, guessed from the last answers: the secant method in a few dimensions.

With many jobs, the use of each type is a nearly smooth function of the prices, although each job jumps from one type to
another. Near the balance, it is as good as linear: as many answers as there are unknowns determine one linear map from
prices to uses, and the prices at which that map uses everything, and no more, are the next to ask for. This comes close
to the balance in a few steps, up to where the jumps of single jobs are felt; from there on the master's prices
(`master`), which are exact in the end, are the better guess.
"""

from __future__ import annotations

import numpy as np

from fairway.allocate.arrays import FloatArray
from fairway.allocate.kernels.small_systems import solution
from fairway.compiled import FloatTable, compiled

_BETTER = 0.7
"""A step is a success if it leaves at most this part of the least imbalance before."""

_FAILURES = 3
"""So many steps without success, and the guesses end."""

_FARTHEST = 2.0
"""No price changes by more than this factor in a step."""


class Secant:
    """The answers of one search, and a guess from them; `relative` if only the relation of prices matters."""

    def __init__(self, types: int, *, relative: bool) -> None:
        self._needed = types if relative else types + 1
        self._relative = relative
        self._budgets, self._excess = np.zeros((16, types)), np.zeros((16, types))
        self._imbalance = np.zeros(16)
        self._count, self._failures = 0, 0 if types > 1 else _FAILURES

    def add(self, budgets: FloatArray, usage: FloatArray) -> None:
        """Take down an answer: the fraction of each type that is used at these budgets."""
        if self._failures >= _FAILURES:
            return
        place = self._count
        if place == len(self._imbalance):  # as good as always, the guesses have ended before
            self._failures = _FAILURES
            return
        self._budgets[place], self._excess[place] = budgets, usage - 1.0
        self._imbalance[place] = np.abs(budgets * self._excess[place]).sum()
        self._count += 1
        if place >= self._needed and not self._imbalance[place] <= _BETTER * self._imbalance[:place].min():
            self._failures += 1

    def guess(self) -> FloatArray | None:
        """Prices at which everything should be in use; None if there is no good guess."""
        if self._failures >= _FAILURES or self._count < self._needed:
            return None
        try:
            guess: FloatArray = _clearing(
                self._budgets[: self._count], self._excess[: self._count], self._imbalance[: self._count], self._needed
            )
        except np.linalg.LinAlgError:
            return None
        if not (guess > 0).all() or not np.isfinite(guess).all():
            return None
        return guess / guess.sum() if self._relative else guess


@compiled(releases_gil=True)
def _clearing(budgets: FloatTable, excess: FloatTable, imbalance: FloatArray, needed: int) -> FloatArray:
    """The combination of the budgets, of the best answers and the last, whose combined excess is 0."""
    order = np.argsort(imbalance)
    chosen = order[:needed].copy()
    last = len(imbalance) - 1
    if not (chosen == last).any():
        chosen[-1] = last
    matrix = np.ones((needed, needed))
    for row in range(needed - 1):
        for column in range(needed):
            matrix[row, column] = excess[chosen[column], row]
    target = np.zeros(needed)
    target[-1] = 1.0
    parts = solution(matrix, target)
    best = budgets[chosen[0]]
    guess = np.zeros(budgets.shape[1])
    for column in range(needed):
        guess += parts[column] * budgets[chosen[column]]
    for j in range(len(guess)):
        guess[j] = min(max(guess[j], best[j] / _FARTHEST), best[j] * _FARTHEST)
    return guess
