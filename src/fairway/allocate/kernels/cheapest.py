"""The cheapest way for each job to reach a rate, when every accelerator type has a price.

A job that needs rate d may split its time over types, idling for the rest. Plot each type as a point (rate, price of
the gang), with idleness at the origin: the cheapest split for d lies on the lower convex hull of these points, on the
edge above d, and mixes the two types at its ends. Jobs meet only in the prices, so this is one independent pass over
them. The same hull tells how much rate is worth its price to a job.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fairway.allocate.arrays import FloatArray, ShortArray
from fairway.compiled import FloatTable, ShortTable, compiled, compiled_within


class SplitsState(NamedTuple):
    """The points of all jobs in order of rate, what they load, and the splits at the prices that were set last."""

    rates: FloatTable
    types: ShortTable
    hull: ShortTable
    corners: ShortArray
    load: FloatArray
    price: FloatArray
    usage: FloatArray
    edge: ShortArray
    part: FloatArray
    slope: FloatArray


class Splits:
    """The jobs' splits at given prices: set the prices, then ask.

    `rates` has a row per job; `load` is how many workers its gang has, times the jobs that the row stands for. After a
    question, `usage` holds the workers in use of each type, and `slope` what a little more rate would cost each job.
    Compiled searches ask the `state` itself.
    """

    def __init__(self, rates: FloatArray, load: FloatArray) -> None:
        self.state = SplitsState(*_begin(rates, load))
        self._priced = False  # whether the hulls are those of these prices

    @property
    def usage(self) -> FloatArray:
        """Workers of each type in use by the splits that were asked for last."""
        return self.state.usage[:-1]

    @property
    def slope(self) -> FloatArray:
        """What a little more rate would cost each job, after `cheapest`."""
        return self.state.slope

    @property
    def fastest(self) -> FloatArray:
        """The highest rate of each job."""
        return self.state.rates[:, -1]

    def price(self, prices: FloatArray) -> None:
        """Set the price of a worker of each type."""
        self.state.price[:-1] = prices
        self._priced = False

    def cheapest(self, demand: FloatArray, rising: FloatArray) -> tuple[float, float]:
        """Let every job reach its demanded rate as cheaply as possible.

        Returns the total cost, and by how much it rises when the demands rise like this.
        """
        cost, rise = cheapest_at(self.state, self._priced, demand, rising)
        self._priced = True
        return cost, rise

    def most(self, least: FloatArray, worth: FloatArray) -> float:
        """Let every job choose its rate d, at least this, to maximise worth * d - cost; returns the sum of worth * d.

        `worth`, like the load, is for all the jobs that a row stands for.
        """
        return most_at(self.state, least, worth)

    def worthwhile(self, worth: FloatArray) -> float:
        """Let every job choose its rate d to maximise worth * log(d) - cost; returns the sum of worth * log(d).

        `worth`, like the load, is for all the jobs that a row stands for.
        """
        return _worthwhile(self.state, worth)

    def add_to(self, shares: FloatArray, weight: float) -> None:
        """Add a part of the splits that were asked for last to the time that each job spends on each type."""
        add_part(self.state, shares, weight)


@compiled(releases_gil=True)
def _begin(
    rates: FloatTable, load: FloatArray
) -> tuple[
    FloatTable, ShortTable, ShortTable, ShortArray, FloatArray, FloatArray, FloatArray, ShortArray, FloatArray,
    FloatArray,
]:  # fmt: skip
    """The points of each job in order of rate, idleness (rate 0, type J, price 0) first; no prices are set yet."""
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
    return (
        sorted_rates, sorted_types, np.zeros((jobs, width + 1), dtype=np.int16), np.zeros(jobs, dtype=np.int16),
        load.copy(), np.zeros(width + 1), np.zeros(width + 1), np.zeros(jobs, dtype=np.int16), np.zeros(jobs),
        np.zeros(jobs),
    )  # fmt: skip


@compiled_within(releases_gil=True)
def begin_splits(rates: FloatTable, load: FloatArray) -> SplitsState:
    """The state of the splits of these jobs, before any prices."""
    sorted_rates, types, hull, corners, loads, price, usage, edge, part, slope = _begin(rates, load)
    return SplitsState(sorted_rates, types, hull, corners, loads, price, usage, edge, part, slope)


@compiled_within(releases_gil=True, inline=True)
def _lower_hull(
    rates: FloatTable,
    types: ShortTable,
    price: FloatArray,
    i: int,
    hull: ShortTable,
    rate: FloatArray,
    cost: FloatArray,
) -> int:
    """Write the corners of a job's hull, idleness first: their positions in its sorted order, their rates and costs.

    Returns the number of the last corner.
    """
    top = 0
    hull[i, 0], rate[0], cost[0] = 0, 0.0, 0.0
    for k in range(1, rates.shape[1]):
        r, c = rates[i, k], price[types[i, k]]
        if r <= rate[top]:
            if r <= 0.0 or c >= cost[top]:
                continue
            top -= 1
        while top >= 1 and (cost[top] - cost[top - 1]) * (r - rate[top - 1]) >= (c - cost[top - 1]) * (
            rate[top] - rate[top - 1]
        ):
            top -= 1
        top += 1
        hull[i, top], rate[top], cost[top] = k, r, c
    return top


@compiled(releases_gil=True, divides_as_numpy=True)
def cheapest_at(splits: SplitsState, priced: bool, demand: FloatArray, rising: FloatArray) -> tuple[float, float]:
    """Find the edge of each hull above the demand, and the part of its upper end in the split."""
    rates, types, hull, corners, load = splits.rates, splits.types, splits.hull, splits.corners, splits.load
    price, usage, edge, part, slope = splits.price, splits.usage, splits.edge, splits.part, splits.slope
    usage[:] = 0.0
    total, total_rise = 0.0, 0.0
    rate, cost = np.empty(rates.shape[1]), np.empty(rates.shape[1])
    for i in range(len(demand)):
        if not priced:
            corners[i] = _lower_hull(rates, types, price, i, hull, rate, cost)
        if corners[i] == 0:  # nowhere to run
            edge[i], part[i], slope[i] = 0, 0.0, 0.0
            continue
        e = 1
        while e < corners[i] and rates[i, hull[i, e]] <= demand[i]:
            e += 1
        a, b = hull[i, e - 1], hull[i, e]
        low, high = types[i, a], types[i, b]
        per_rate = 1.0 / (rates[i, b] - rates[i, a])
        upper = min((demand[i] - rates[i, a]) * per_rate, 1.0)
        rise = price[high] - price[low]
        usage[low] += load[i] * (1.0 - upper)
        usage[high] += load[i] * upper
        total += load[i] * (price[low] + rise * upper)
        edge[i], part[i], slope[i] = e, upper, load[i] * rise * per_rate
        total_rise += slope[i] * rising[i]
    return total, total_rise


@compiled(releases_gil=True, divides_as_numpy=True)
def most_at(splits: SplitsState, least: FloatArray, worth: FloatArray) -> float:
    """From the least rate on, a job goes on along its hull for as long as more rate is worth more than it costs."""
    rates, types, hull, load = splits.rates, splits.types, splits.hull, splits.load
    price, usage, edge, part = splits.price, splits.usage, splits.edge, splits.part
    usage[:] = 0.0
    total = 0.0
    rate, cost = np.empty(rates.shape[1]), np.empty(rates.shape[1])
    for i in range(len(worth)):
        last = _lower_hull(rates, types, price, i, hull, rate, cost)
        if last == 0:  # nowhere to run
            edge[i], part[i] = 0, 0.0
            continue
        e = 1
        while e < last and rate[e] <= least[i]:
            e += 1
        upper = min((least[i] - rate[e - 1]) / (rate[e] - rate[e - 1]), 1.0)
        # Each edge costs more per rate than the one before, so the first that is not worth it is the end.
        k = e
        while k <= last and load[i] * (cost[k] - cost[k - 1]) < worth[i] * (rate[k] - rate[k - 1]):
            e, upper, k = k, 1.0, k + 1
        edge[i], part[i] = e, upper
        usage[types[i, hull[i, e - 1]]] += load[i] * (1.0 - upper)
        usage[types[i, hull[i, e]]] += load[i] * upper
        total += worth[i] * (rate[e - 1] + (rate[e] - rate[e - 1]) * upper)
    return total


@compiled(releases_gil=True, divides_as_numpy=True)
def _worthwhile(splits: SplitsState, worth: FloatArray) -> float:
    """Cost is convex along the hull, so the best rate is where an edge's slope meets worth / d, or a corner."""
    rates, types, hull, load = splits.rates, splits.types, splits.hull, splits.load
    price, usage, edge, part = splits.price, splits.usage, splits.edge, splits.part
    usage[:] = 0.0
    total = 0.0
    rate, cost = np.empty(rates.shape[1]), np.empty(rates.shape[1])
    for i in range(len(worth)):
        e, last = 1, _lower_hull(rates, types, price, i, hull, rate, cost)
        while True:
            # One more step is worth its price on this edge up to the rate d with worth / d = rise / run.
            run, rise = rate[e] - rate[e - 1], load[i] * (cost[e] - cost[e - 1])
            chosen = rate[e] if rise <= 0.0 else worth[i] * run / rise
            if not chosen >= rate[e] or e >= last:
                break
            e += 1
        chosen = min(max(chosen, rate[e - 1]), rate[e])
        edge[i], part[i] = e, (chosen - rate[e - 1]) / run
        usage[types[i, hull[i, e - 1]]] += load[i] * (1.0 - part[i])
        usage[types[i, hull[i, e]]] += load[i] * part[i]
        total += worth[i] * np.log(chosen)
    return total


@compiled(releases_gil=True)
def add_part(splits: SplitsState, shares: FloatTable, weight: float) -> None:
    """Add `weight` times each split to the shares; idleness has no column there."""
    types, hull, edge, part = splits.types, splits.hull, splits.edge, splits.part
    idle = shares.shape[1]
    for i in range(len(edge)):
        if edge[i] == 0:
            continue
        low, high = types[i, hull[i, edge[i] - 1]], types[i, hull[i, edge[i]]]
        if low != idle:
            shares[i, low] += weight * (1.0 - part[i])
        shares[i, high] += weight * part[i]


@compiled(releases_gil=True)
def best_types(
    values: FloatTable, counts: FloatArray, load: FloatArray, price: FloatArray, usage: FloatArray, chosen: ShortArray
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
