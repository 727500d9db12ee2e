"""The largest Nash welfare: maximise sum_m w_m log(rate_m), the product of everyone's rates.

At given prices each job chooses its rate by itself (`cheapest`), and what is left of the budget completes the
bound; the search for the prices is in `prices`. It holds for mixtures because the logarithm is concave.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairway.allocate.arrays import FloatArray
from fairway.allocate.kernels.cheapest import Splits
from fairway.allocate.kernels.classes import Classes
from fairway.allocate.kernels.prices import Answer, find_prices

_GAP = 1e-10
"""Distance of the two bounds per unit of weight at which the search ends."""


@dataclass(frozen=True, slots=True)
class Welfare:
    """The rates of one job of each class at the largest welfare, and the shares that give them.

    `value` is the sum of weighted logarithms, `bound` an upper bound of it, `prices` its dual values.
    """

    value: float
    bound: float
    rates: FloatArray
    shares: FloatArray
    prices: FloatArray


def largest_welfare(
    classes: Classes, counts: FloatArray, weights: FloatArray, start: FloatArray | None = None
) -> Welfare:
    """Maximise the welfare of `counts` jobs of each class (0 leaves a class out), each with its weight.

    `start` are prices from a similar problem.
    """
    there, open_types = counts > 0, np.flatnonzero(classes.capacity > 0)
    capacity = classes.capacity[open_types]
    own_rates = classes.rates[np.ix_(there, open_types)]
    load, worth = (counts * classes.scale_factors)[there], (counts * weights)[there]
    splits = Splits(own_rates, load)
    asked: list[FloatArray] = []

    def respond(budgets: FloatArray) -> float:
        splits.price(budgets / capacity)
        return splits.worthwhile(worth)

    def ask(budgets: FloatArray) -> Answer:
        asked.append(budgets)
        welfare, used = respond(budgets), splits.usage / capacity
        return Answer(welfare, used, welfare + float(budgets @ (1.0 - used)))

    modest = 0.5 * classes.of_jobs(classes.problem.isolated_shares)[np.ix_(there, open_types)]
    welfare = float(worth @ np.log(np.einsum("ij,ij->i", own_rates, modest)))
    prices = np.full(len(capacity), worth.sum() / capacity.sum()) if start is None else start[open_types]
    balance = find_prices(
        ask,
        Answer(welfare, load @ modest / capacity, np.inf),
        [prices * capacity],
        done=lambda value, bound: bound - value <= _GAP * worth.sum(),
    )
    mixture = np.zeros_like(own_rates)
    for number, part in balance.mixture:
        if number == 0:
            mixture += part * modest
        else:
            respond(asked[number - 1])
            splits.add_to(mixture, part)
    shares = np.zeros_like(classes.rates)
    shares[np.ix_(there, open_types)] = mixture
    reached = np.einsum("ij,ij->i", classes.rates, shares)
    final = np.zeros_like(classes.capacity)
    if balance.proof is not None:
        final[open_types] = balance.proof / capacity
    return Welfare(float(worth @ np.log(reached[there])), balance.bound, reached, shares, final)
