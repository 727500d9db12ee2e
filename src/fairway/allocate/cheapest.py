"""The cheapest way for each job to reach a rate, when every accelerator type has a price.

A job that needs rate d may split its time over types, idling for the rest. Plot each type as a point (rate, price of
the gang), with idleness at the origin: the cheapest split for d lies on the lower convex hull of these points, on the
edge above d, and mixes the two types at its ends. Jobs meet only in the prices, so this is one independent pass over
them. The same hull tells how much rate is worth its price to a job (`worthwhile_split`).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from fairway.allocate.arrays import FloatArray, IntArray, ShortArray


@njit(cache=True, nogil=True)
def by_rate(rates: FloatArray) -> tuple[FloatArray, ShortArray]:
    """The points of each job in order of rate, idleness (rate 0, type J) first: their rates and their types."""
    jobs, width = rates.shape
    sorted_rates = np.zeros((jobs, width + 1))
    sorted_types = np.full((jobs, width + 1), width, dtype=np.int16)
    for i in range(jobs):
        for j in range(width):
            place = j + 1
            while place > 1 and sorted_rates[i, place - 1] > rates[i, j]:
                sorted_rates[i, place] = sorted_rates[i, place - 1]
                sorted_types[i, place] = sorted_types[i, place - 1]
                place -= 1
            sorted_rates[i, place] = rates[i, j]
            sorted_types[i, place] = j
    return sorted_rates, sorted_types


@njit(cache=True, nogil=True, error_model="numpy")
def cheapest_split(
    rates: FloatArray,
    types: ShortArray,
    load: FloatArray,
    price: FloatArray,
    demand: FloatArray,
    usage: FloatArray,
    low: ShortArray,
    high: ShortArray,
    weight: FloatArray,
    slope: FloatArray,
) -> float:
    """Price every job's cheapest split for its demand; returns the total cost.

    `rates` and `types` come from `by_rate`; `load` is the number of workers of a job's gang (times the jobs it stands
    for); `price` has one entry per type and a last one, 0, for idleness. Written: `usage` (workers of each type in use,
    idleness last), the edge of the hull by its two points `low` and `high` (positions in the sorted order), the
    `weight` of the upper one, and the `slope`: what a little more rate would cost.
    """
    jobs, points = rates.shape
    hull = np.empty(points, dtype=np.int64)
    usage[:] = 0.0
    total = 0.0
    for i in range(jobs):
        top = _lower_hull(rates[i], types[i], price, hull)
        if top == 0:  # nowhere to run
            low[i], high[i], weight[i], slope[i] = 0, 0, 0.0, 0.0
            continue
        edge = 1
        while edge < top and rates[i, hull[edge]] <= demand[i]:
            edge += 1
        a, b = hull[edge - 1], hull[edge]
        run = rates[i, b] - rates[i, a]
        share = min((demand[i] - rates[i, a]) / run, 1.0)
        rise = price[types[i, b]] - price[types[i, a]]
        usage[types[i, a]] += load[i] * (1.0 - share)
        usage[types[i, b]] += load[i] * share
        total += load[i] * (price[types[i, a]] + rise * share)
        low[i], high[i], weight[i], slope[i] = a, b, share, load[i] * rise / run
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def worthwhile_split(
    rates: FloatArray,
    types: ShortArray,
    load: FloatArray,
    price: FloatArray,
    worth: FloatArray,
    usage: FloatArray,
    low: ShortArray,
    high: ShortArray,
    weight: FloatArray,
    chosen: FloatArray,
) -> float:
    """Let every job choose its rate d to maximise worth * log(d) - cost; returns the sum of worth * log(d).

    Cost is convex along the hull, so the best rate is where the edge's slope meets worth / d, or a corner. `chosen` is
    written with the rates; `worth` is for all the jobs that a row stands for, as `load` is.
    """
    jobs, points = rates.shape
    hull = np.empty(points, dtype=np.int64)
    usage[:] = 0.0
    total = 0.0
    for i in range(jobs):
        top = _lower_hull(rates[i], types[i], price, hull)
        for edge in range(1, top + 1):
            a, b = hull[edge - 1], hull[edge]
            run = rates[i, b] - rates[i, a]
            rise = load[i] * (price[types[i, b]] - price[types[i, a]])
            # The rate at which one more step is worth its price on this edge: worth / d = rise / run.
            rate = rates[i, b] if rise <= 0.0 else worth[i] * run / rise
            if rate < rates[i, b]:
                break
        rate = min(max(rate, rates[i, a]), rates[i, b])
        share = (rate - rates[i, a]) / run
        usage[types[i, a]] += load[i] * (1.0 - share)
        usage[types[i, b]] += load[i] * share
        total += worth[i] * np.log(rate)
        low[i], high[i], weight[i], chosen[i] = a, b, share, rate
    return total


@njit(cache=True, nogil=True)
def best_types(
    values: FloatArray, counts: FloatArray, load: FloatArray, price: FloatArray, usage: FloatArray, chosen: ShortArray
) -> float:
    """Let every job spend all its time on the type that is worth most above its price, or idle; returns the worth.

    `values[i, j]` is what one job of row i earns on type j. `chosen` is written with the types, -1 for idleness.
    """
    usage[:] = 0.0
    total = 0.0
    for i in range(len(values)):
        best, most = -1, 0.0
        for j in range(values.shape[1]):
            surplus = counts[i] * values[i, j] - load[i] * price[j]
            if surplus > most:
                best, most = j, surplus
        chosen[i] = best
        if best >= 0:
            usage[best] += load[i]
            total += counts[i] * values[i, best]
    return total


@njit(cache=True, nogil=True, inline="always")
def _lower_hull(rates: FloatArray, types: ShortArray, price: FloatArray, hull: IntArray) -> int:
    """Write the corners of one job's hull, idleness first, as positions in its sorted order; returns the last one's."""
    top = 0
    hull[0] = 0
    for k in range(1, len(rates)):
        rate = rates[k]
        cost = price[types[k]]
        if rate <= rates[hull[top]]:
            if rate <= 0.0 or cost >= price[types[hull[top]]]:
                continue
            top -= 1
        while top >= 1:
            q, r = hull[top], hull[top - 1]
            rise, run = price[types[q]] - price[types[r]], rates[q] - rates[r]
            if rise * (rate - rates[r]) < (cost - price[types[r]]) * run:
                break
            top -= 1
        top += 1
        hull[top] = k
    return top


@njit(cache=True, nogil=True)
def add_shares(
    shares: FloatArray, part: float, types: ShortArray, low: ShortArray, high: ShortArray, weight: FloatArray
) -> None:
    """Add `part` of a split to the time that each job spends on each type."""
    idle = shares.shape[1]
    for i in range(len(low)):
        a, b = types[i, low[i]], types[i, high[i]]
        if a != idle:
            shares[i, a] += part * (1.0 - weight[i])
        if b != idle:
            shares[i, b] += part * weight[i]
