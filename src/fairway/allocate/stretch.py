"""How far a vector of demands can be stretched: the largest z such that every job can have z times its rate.

This is the kernel of the policies that raise a common level (max-min fairness, makespan, finish-time fairness, water
filling) when jobs run alone:

    maximise z   subject to   sum_j T_ij x_ij >= z d_i,   sum_j x_ij <= 1,   sum_i s_i x_ij <= N_j,   x >= 0

At given prices, every job's cheapest way to reach a rate is known in closed form (`cheapest`), and the z at which all
of them together just exhaust the budget sum_j p_j N_j is an upper bound: with a larger z, the jobs would have to pay
more than everything there is costs. The search for the prices that prove the lowest bound is in `prices`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairway.allocate.arrays import BoolArray, FloatArray
from fairway.allocate.cheapest import add_shares, by_rate, cheapest_split
from fairway.allocate.classes import Classes
from fairway.allocate.prices import Answer, find_prices

GAP = 1e-9
"""Relative distance of the two bounds at which the search ends."""

_CLEAR = 0.1
"""A factor is out of reach when the bounds are this much closer to each other than to it ..."""

_FAR = 1e-4
"""... and at least so far away: nearer by, the exact prices are worth finding."""

_STEP = 1e-15
"""Newton steps below this, relative to the level, are noise."""


@dataclass(frozen=True, slots=True)
class Stretched:
    """The demands can be stretched by `factor`, and by no more than `bound`.

    `budgets` prove the bound: the part of a budget of 1 that all workers of each open type cost together, such that a
    longer stretch costs more than that. They are None when the bound is what some job can reach alone.
    """

    factor: float
    bound: float
    budgets: FloatArray | None
    mixture: list[tuple[int, float]]


class Market:
    """The jobs of a problem and the workers they compete for; keeps its last prices as a start for the next demands."""

    def __init__(self, classes: Classes, warm_prices: FloatArray | None = None) -> None:
        self.classes = classes
        self._open = np.flatnonzero(classes.capacity > 0)
        self._capacity = classes.capacity[self._open]
        rates = classes.rates[:, self._open]
        self._rates, self._types = by_rate(rates)
        self._fastest = self._rates[:, -1].copy()
        self._load = classes.counts * classes.scale_factors
        # Half of the equal split fits with room to spare, so that the search starts from a sound basis.
        self._modest = 0.5 * classes.of_jobs(classes.problem.isolated_shares)[:, self._open]
        self._modest_rates = np.einsum("ij,ij->i", rates, self._modest)
        size, types = rates.shape
        self._usage, self._price = np.zeros(types + 1), np.zeros(types + 1)
        self._low, self._high = np.zeros(size, dtype=np.int16), np.zeros(size, dtype=np.int16)
        self._weight, self.slope = np.zeros(size), np.zeros(size)
        self._demand = np.zeros(size)
        self._asked: list[tuple[FloatArray, float]] = []
        self._starts = [np.full(types, 1.0 / types)]
        if warm_prices is not None and (total := float(warm_prices @ classes.capacity)) > 0:
            self._starts.insert(0, warm_prices[self._open] * self._capacity / total)

    def cost(self, budgets: FloatArray, demand: FloatArray) -> float:
        """What these demands cost at least when a budget of 1 is spread like this over the types; sets `slope`."""
        self._price[:-1] = budgets / self._capacity
        total: float = cheapest_split(
            self._rates, self._types, self._load, self._price, demand,
            self._usage, self._low, self._high, self._weight, self.slope,
        )  # fmt: skip
        return total

    def stretch(self, demand: FloatArray, *, enough: float | None = None) -> Stretched:
        """The largest multiple of the demands that fits.

        With `enough`, the search also ends when that factor is reached or when it is clear that it cannot be.
        """
        asks = demand > 0
        limit = float((self._fastest[asks] / demand[asks]).min())
        modest = Answer(
            value=float((self._modest_rates[asks] / demand[asks]).min()),
            usage=self._load @ (self._modest * asks[:, None]) / self._capacity,
            proven=limit,
        )
        self._demand, self._asked = demand, []
        lowest = limit

        def ask(budgets: FloatArray) -> Answer:
            nonlocal lowest
            lowest = min(lowest, level := self._affordable(budgets, demand, lowest))
            self._asked.append((budgets, level))
            return Answer(level, self._usage[:-1] / self._capacity, level)

        def done(factor: float, bound: float) -> bool:
            if bound - factor <= GAP * bound:
                return True
            return enough is not None and (factor >= enough or bound - factor < _CLEAR * (enough - bound - _FAR))

        balance = find_prices(ask, modest, self._starts, done=done, relative=True)
        useful = [self._asked[number - 1][0] for number, _ in balance.mixture if number]
        self._starts = useful if balance.proof is None else [balance.proof, *useful]
        return Stretched(balance.value, balance.bound, balance.proof, balance.mixture)

    def prices(self, budgets: FloatArray | None, demand: FloatArray, rise: FloatArray) -> FloatArray:
        """What one more worker of each type adds to the level, where `budgets` just pay for a demand with this rise."""
        prices = np.zeros_like(self.classes.capacity)
        if budgets is not None:
            self.cost(budgets, demand)
            paid = float(self.slope @ rise)
            if paid > 0:
                prices[self._open] = budgets / self._capacity / paid
        return prices

    def _affordable(self, budgets: FloatArray, demand: FloatArray, level: float) -> float:
        """The largest level, at most this one, that the budget pays for (cost is convex in it: Newton from above)."""
        cost = self.cost(budgets, demand * level)
        while cost > 1.0:
            step = (cost - 1.0) / float(self.slope @ demand)
            level -= step
            cost = self.cost(budgets, demand * level)
            if step <= _STEP * level:
                break
        return level

    def shares(self, stretched: Stretched) -> FloatArray:
        """The time that one job of each class spends on each type in the mixture that this (last) stretch found."""
        shares = np.zeros((len(self.classes), len(self._open)))
        for number, part in stretched.mixture:
            if number == 0:
                shares += part * self._modest * (self._demand > 0)[:, None]
            else:
                budgets, level = self._asked[number - 1]
                self.cost(budgets, self._demand * level)
                add_shares(shares, part, self._types, self._low, self._high, self._weight)
        everywhere = np.zeros((len(self.classes), len(self.classes.capacity)))
        everywhere[:, self._open] = shares
        return everywhere

    def everywhere(self, budgets: FloatArray | None) -> FloatArray:
        """Budgets of all types, 0 for those without workers (and if there are none)."""
        everywhere = np.zeros_like(self.classes.capacity)
        if budgets is not None:
            everywhere[self._open] = budgets
        return everywhere

    def open(self, values: BoolArray) -> BoolArray:
        """The entries of the types that have workers, as in budgets."""
        return values[self._open]
