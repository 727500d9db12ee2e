"""The decision of the commonest policies in one compiled loop: a multiple of demands, for jobs that run alone.

What `market` finds for any demand curve (the highest level, the prices that prove it, who then runs where) and
`surplus` does with what is left is found here for a curve that is straight, in the same steps, without a call for each:
an engine asks hundreds of times a minute, about a hundred jobs, and the calls would take longer than what they compute.
"""

from __future__ import annotations

import numpy as np

from fairway.allocate.allocation import EXACT
from fairway.allocate.arrays import FloatArray
from fairway.allocate.kernels.cheapest import add_part, begin_splits, cheapest_at
from fairway.allocate.kernels.market import search_multiple
from fairway.allocate.kernels.surplus import spend_what_is_left
from fairway.compiled import FloatTable, compiled

NO_PRICE = 1e-6
"""Smaller parts of the budget can be owed to the gap at which the search ends."""


@compiled(releases_gil=True, divides_as_numpy=True)
def raise_alone(
    all_rates: FloatTable,
    counts: FloatArray,
    scale: FloatArray,
    all_capacity: FloatArray,
    per_level: FloatArray,
    warm_prices: FloatArray,
    gap: float,
    bare: bool,
) -> tuple[bool, float, float, FloatTable, FloatArray]:
    """Whether the level was found and, unless `bare`, what is left was spent; level, bound, shares and prices.

    Rows are classes of so many jobs each; `warm_prices` are those of the decision before, 0 if there is none.
    """
    jobs, types = all_rates.shape
    shares, prices = np.zeros((jobs, types)), np.zeros(types)
    open_types = np.flatnonzero(all_capacity > 0.0)
    width = len(open_types)
    capacity, rates, load = np.empty(width), np.empty((jobs, width)), counts * scale
    every, present = 0.0, 0.0
    for j in range(types):
        every += all_capacity[j]
    for i in range(jobs):
        present += counts[i]
    for place in range(width):
        capacity[place] = all_capacity[open_types[place]]
        for i in range(jobs):
            rates[i, place] = all_rates[i, open_types[place]]
    # Half of the equal split fits with room to spare, so that the search starts from a sound basis.
    modest, modest_rate = np.zeros((jobs, width)), np.zeros(jobs)
    used, guess = np.zeros(width), np.zeros(width)
    highest, reached = np.inf, np.inf
    for i in range(jobs):
        fastest = 0.0
        for j in range(width):
            if rates[i, j] > 0.0:
                modest[i, j] = 0.5 * capacity[j] / max(present * scale[i], 1.0, every)
                modest_rate[i] += rates[i, j] * modest[i, j]
                fastest = max(fastest, rates[i, j])
        if per_level[i] > 0.0:
            highest = min(highest, fastest / per_level[i])
            reached = min(reached, modest_rate[i] / per_level[i])
            for j in range(width):
                used[j] += load[i] * modest[i, j] / capacity[j]
        if modest_rate[i] > 0.0:
            for j in range(width):
                guess[j] += counts[i] / modest_rate[i] * rates[i, j] * modest[i, j]
    if width == 0 or highest == np.inf:
        return False, 0.0, 0.0, shares, prices
    warm = False
    for j in range(width):
        warm = warm or warm_prices[open_types[j]] != 0.0
    total = 0.0
    for j in range(width):
        if warm:  # otherwise a first guess: what each type contributes to all rates in an equal split
            guess[j] = warm_prices[open_types[j]] * capacity[j]
        total += guess[j]
    starts = np.empty((1, width))
    starts[0] = guess / max(total, 1e-300)
    splits = begin_splits(rates, load)
    value, bound, proven, proof, numbers, parts, asked, levels = search_multiple(
        splits, per_level, capacity, starts, highest, reached, used, gap, np.inf
    )
    value = min(value, bound)
    found = np.zeros((jobs, width))
    for place in range(len(numbers)):
        number, part = numbers[place], parts[place]
        if number == 0:
            for i in range(jobs):
                if per_level[i] > 0.0:
                    for j in range(width):
                        found[i, j] += part * modest[i, j]
        else:
            splits.price[:width] = asked[number - 1] / capacity
            cheapest_at(splits, False, per_level * levels[number - 1], per_level)
            add_part(splits, found, part)
    taken = np.zeros(width)
    for i in range(jobs):
        rate = 0.0
        for j in range(width):
            rate += rates[i, j] * found[i, j]
            taken[j] += load[i] * found[i, j]
        if not rate >= per_level[i] * bound * (1.0 - EXACT):
            return False, value, bound, shares, prices
    gone = np.zeros(types, np.bool_)
    if proven:
        splits.price[:width] = proof / capacity
        rise = cheapest_at(splits, False, per_level * bound, per_level)[1]
        for j in range(width):
            if rise > 0.0:
                prices[open_types[j]] = proof[j] / capacity[j] / rise
            gone[open_types[j]] = taken[j] >= capacity[j] * (1.0 - EXACT) and proof[j] > NO_PRICE
    for i in range(jobs):
        for j in range(width):
            shares[i, open_types[j]] = found[i, j]
    if bare:
        return True, value, bound, shares, prices
    ok, spent = spend_what_is_left(all_rates, counts, scale, all_capacity, shares, per_level * value, gone)
    return ok, value, bound, spent, prices
