"""Where the market clears, guessed from the last answers: the secant method in a few dimensions.

With many jobs, the use of each type is a nearly smooth function of the prices, although each job jumps from one type to
another. Near the balance, it is as good as linear: as many answers as there are unknowns determine one linear map from
prices to uses, and the prices at which that map uses everything, and no more, are the next to ask for. This comes close
to the balance in a few steps, up to where the jumps of single jobs are felt; from there on the master's prices
(`master`), which are exact in the end, are the better guess.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fairway.allocate.arrays import FloatArray, IntArray
from fairway.allocate.kernels.small_systems import eliminate
from fairway.compiled import FloatTable, compiled_within

_BETTER = 0.7
"""A step is a success if it leaves at most this part of the least imbalance before."""

_FAILURES = 3
"""So many steps without success, and the guesses end."""

_FARTHEST = 2.0
"""No price changes by more than this factor in a step."""

_MOST = 16
"""As good as always, the guesses have ended before so many answers."""


class Secant(NamedTuple):
    """The answers of one search.

    `numbers` are how many answers there are, how many guesses have failed, how many answers a guess needs, and whether
    only the relation of prices matters.
    """

    budgets: FloatTable
    excess: FloatTable
    imbalance: FloatArray
    numbers: IntArray


@compiled_within(releases_gil=True)
def begin_guessing(types: int, relative: bool) -> Secant:
    """No answers yet; `relative` if only the relation of prices matters."""
    numbers = np.zeros(4, np.int64)
    numbers[1] = 0 if types > 1 else _FAILURES
    numbers[2] = types if relative else types + 1
    numbers[3] = relative
    return Secant(np.zeros((_MOST, types)), np.zeros((_MOST, types)), np.zeros(_MOST), numbers)


@compiled_within(releases_gil=True)
def take_down(secant: Secant, budgets: FloatArray, usage: FloatArray) -> None:
    """An answer: the fraction of each type that is used at these budgets."""
    place, numbers = secant.numbers[0], secant.numbers
    if numbers[1] >= _FAILURES:
        return
    if place == _MOST:
        numbers[1] = _FAILURES
        return
    off, least = 0.0, np.inf
    for j in range(len(budgets)):
        secant.budgets[place, j], secant.excess[place, j] = budgets[j], usage[j] - 1.0
        off += abs(budgets[j] * secant.excess[place, j])
    for before in range(place):
        least = min(least, secant.imbalance[before])
    secant.imbalance[place] = off
    numbers[0] = place + 1
    if place >= numbers[2] and not off <= _BETTER * least:
        numbers[1] += 1


@compiled_within(releases_gil=True)
def guess(secant: Secant, prices: FloatArray) -> bool:
    """Write the prices at which everything should be in use; False if there is no good guess."""
    count, needed = secant.numbers[0], secant.numbers[2]
    if secant.numbers[1] >= _FAILURES or count < needed:
        return False
    if not _clearing(secant.budgets[:count], secant.excess[:count], secant.imbalance[:count], needed, prices):
        return False
    total = 0.0
    for j in range(len(prices)):
        if not (prices[j] > 0 and np.isfinite(prices[j])):
            return False
        total += prices[j]
    if secant.numbers[3]:
        for j in range(len(prices)):
            prices[j] /= total
    return True


@compiled_within(releases_gil=True)
def _clearing(budgets: FloatTable, excess: FloatTable, imbalance: FloatArray, needed: int, guess: FloatArray) -> bool:
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
    parts = np.zeros((needed, 1))
    parts[-1, 0] = 1.0
    if not eliminate(matrix, parts):
        return False
    best = budgets[chosen[0]]
    guess[:] = 0.0
    for column in range(needed):
        guess += parts[column, 0] * budgets[chosen[column]]
    for j in range(len(guess)):
        guess[j] = min(max(guess[j], best[j] / _FARTHEST), best[j] * _FARTHEST)
    return True
