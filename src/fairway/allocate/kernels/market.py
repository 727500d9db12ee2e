"""The highest level that workers can carry when jobs run alone: the kernel of the fair policies.

    maximise z   subject to   sum_j T_ij x_ij >= d_i(z),   sum_j x_ij <= 1,   sum_i s_i x_ij <= N_j,   x >= 0

for a convex demand curve d(z) (`curves`). At given prices, every job's cheapest way to reach a rate is known in closed
form (`cheapest`), and the z at which all of them together just exhaust the budget sum_j p_j N_j is an upper bound: at a
higher one, the jobs would have to pay more than everything there is costs. The search for the prices that prove the
lowest bound is in `prices`; its mixtures hold because the curve is convex.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fairway.allocate.allocation import EXACT
from fairway.allocate.arrays import FloatArray, IntArray
from fairway.allocate.kernels.cheapest import Splits, SplitsState, cheapest_at
from fairway.allocate.kernels.classes import Classes
from fairway.allocate.kernels.curves import ConvexCurve, Curve, Multiple
from fairway.allocate.kernels.master import mixture
from fairway.allocate.kernels.prices import (
    ROUNDS_PER_TYPE,
    Answer,
    Balance,
    begin_search,
    find_prices,
    learn,
    master_of,
)
from fairway.compiled import FloatTable, compiled, compiled_within

GAP = 1e-9
"""Relative distance of the two bounds at which the search ends."""

_CLEAR = 0.1
"""A level is out of reach when the bounds are this much closer to each other than to it ..."""

_FAR = 1e-4
"""... and at least so far away: nearer by, the exact prices are worth finding."""

_NEAR = 1e-4
"""Newton steps below this, relative to the level, are not worth another look at the jobs."""

_STEPS = 100
_ROUNDING = 1e-14


@dataclass(frozen=True, slots=True)
class Raised:
    """The workers can carry `level`, and no more than `bound`.

    `budgets` prove the bound: the part of a budget of 1 that all workers of each open type cost together, such that the
    demands of a higher level cost more than that. They are None when the bound was known beforehand. `mixture` are the
    numbers of the answers that reach the level, and their parts.
    """

    level: float
    bound: float
    budgets: FloatArray | None
    mixture: list[tuple[int, float]]


class Market:
    """The jobs of a problem and the workers they compete for; keeps its last prices as a start for the next search."""

    def __init__(self, classes: Classes, warm_prices: FloatArray | None = None) -> None:
        self.classes = classes
        self._open = np.flatnonzero(classes.capacity > 0)
        self._capacity = classes.capacity[self._open]
        rates = classes.rates.take(self._open, axis=1)
        self._load = classes.counts * classes.scale_factors
        self._splits = Splits(rates, self._load)
        # Half of the equal split fits with room to spare, so that the search starts from a sound basis.
        self._modest = 0.5 * classes.of_jobs(classes.problem.isolated_shares).take(self._open, axis=1)
        self._modest_rates = np.einsum("ij,ij->i", rates, self._modest)
        self._asks = np.zeros((len(classes), 1), dtype=bool)
        self._curve: Curve = Multiple(np.zeros(len(classes)))
        self._asked: list[tuple[FloatArray, float]] = []
        if warm_prices is not None and warm_prices[self._open].any():
            worth = warm_prices[self._open] * self._capacity
        else:  # a first guess at the prices: what each type contributes to everyone's rates in an equal split
            part = np.divide(1.0, self._modest_rates, out=np.zeros(len(classes)), where=self._modest_rates > 0)
            worth = np.einsum("i,ij->j", part * classes.counts, rates * self._modest)
        self._starts = [worth / max(float(worth.sum()), 1e-300)]

    @property
    def slope(self) -> FloatArray:
        """What a little more rate would cost each job, after `cost` or `prices`."""
        return self._splits.slope

    def cost(self, budgets: FloatArray, demand: FloatArray) -> float:
        """What these demands cost at least when a budget of 1 is spread like this over the types; sets `slope`."""
        self._splits.price(budgets / self._capacity)
        return self._splits.cheapest(demand, demand)[0]

    def stretch(self, demand: FloatArray, *, enough: float | None = None) -> Raised:
        """The largest multiple of the demands that the workers can carry.

        With `enough`, the search also ends when that multiple is reached or when it is clear that it cannot be.
        """
        curve = Multiple(demand)
        return self.raise_along(curve, curve.reached(self._splits.fastest), enough=enough)

    def raise_along(
        self, curve: ConvexCurve, highest: float, *, gap: float = GAP, enough: float | None = None
    ) -> Raised:
        """The highest level of the curve that the workers can carry, at most `highest`."""
        self._curve, self._asked = curve, []
        if isinstance(curve, Multiple):
            return self._raise_multiple(curve, highest, gap, math.inf if enough is None else enough)
        self._asks = (curve.at(highest)[0] > 0)[:, None]
        used = np.einsum("i,ij->j", self._load, self._modest * self._asks) / self._capacity
        lowest = highest

        def ask(budgets: FloatArray) -> Answer:
            nonlocal lowest
            level, proven = self._near_affordable(curve, budgets, lowest)
            lowest = min(lowest, proven)
            self._asked.append((budgets, level))
            return Answer(level, self._splits.usage / self._capacity, proven)

        def done(level: float, bound: float) -> bool:
            if bound - level <= gap * abs(bound):
                return True
            return enough is not None and (level >= enough or bound - level < _CLEAR * (enough - bound - _FAR))

        modest = Answer(curve.reached(self._modest_rates), used, highest)
        return self._raised(find_prices(ask, modest, self._starts, done=done, relative=True))

    def _raise_multiple(self, curve: Multiple, highest: float, gap: float, enough: float) -> Raised:
        """The same for a curve that is straight: the commonest, and compiled."""
        self._asks = (curve.per_level * highest > 0)[:, None]
        used = np.einsum("i,ij->j", self._load, self._modest * self._asks) / self._capacity
        value, bound, proven, proof, numbers, parts, asked, levels = search_multiple(
            self._splits.state, curve.per_level, self._capacity, np.array(self._starts), highest,
            curve.reached(self._modest_rates), used, gap, enough,
        )  # fmt: skip
        self._asked = list(zip(asked, levels.tolist(), strict=True))
        mixed = list(zip(numbers.tolist(), parts.tolist(), strict=True))
        return self._raised(Balance(min(value, bound), bound, proof if proven else None, mixed))

    def _raised(self, balance: Balance) -> Raised:
        useful = [self._asked[number - 1][0] for number, _ in balance.mixture if number]
        self._starts = (useful if balance.proof is None else [balance.proof, *useful]) or self._starts
        return Raised(balance.value, balance.bound, balance.proof, balance.mixture)

    def _near_affordable(self, curve: ConvexCurve, budgets: FloatArray, level: float) -> tuple[float, float]:
        """A level near the highest that a budget of 1 pays for, and a bound of that one.

        The cost of a convex curve is convex in the level, so Newton's method from above never steps below the root:
        each step is a bound. Where rounding is larger than what is looked for (costs that do not rise with the level,
        or are no numbers), the last bound is the answer. The splits are left as they are at the level that is returned.
        """
        self._splits.price(budgets / self._capacity)
        for _ in range(_STEPS):
            cost, rise = self._splits.cheapest(*curve.at(level))
            if not cost > 1.0:
                return level, level
            step = (cost - 1.0) / rise if rise > 0 else 0.0
            if not step > _NEAR * abs(level):
                return level, (level - step if step > 0 else level)
            level -= step
        self._splits.cheapest(*curve.at(level))  # numbers so far apart have no nearer answer
        return level, level

    def affordable(self, curve: Curve, budgets: FloatArray, level: float) -> float:
        """The highest level, at most this one, that a budget of 1 pays for; of any curve that does not fall.

        Newton's method, kept in a bracket.
        """
        self._splits.price(budgets / self._capacity)
        high, low, step = level, None, 0.0
        cost, rise = self._splits.cheapest(*curve.at(level))
        if cost <= 1.0:
            return level
        for _ in range(_STEPS):
            if cost > 1.0:
                high = level
            else:
                low = level
            last, level = level, level - (cost - 1.0) / rise if rise > 0 else high
            if low is None and not level < high:  # a flat part of the curve: look further down, faster each time
                step = 2.0 * step or abs(high) * 1e-3 + 1e-300
                level = high - step
            elif low is not None and not low < level < high:
                level = 0.5 * (low + high)
            cost, rise = self._splits.cheapest(*curve.at(level))
            if abs(cost - 1.0) <= _ROUNDING or abs(level - last) <= 1e-15 * abs(last):
                break
        return level

    def prices(self, budgets: FloatArray | None, curve: Curve, level: float) -> FloatArray:
        """What one more worker of each type adds to the level that these budgets just pay for; sets `slope`."""
        prices = np.zeros_like(self.classes.capacity)
        if budgets is not None:
            self._splits.price(budgets / self._capacity)
            _, rise = self._splits.cheapest(*curve.at(level))
            if rise > 0:
                prices[self._open] = budgets / self._capacity / rise
        return prices

    def shares(self, raised: Raised) -> FloatArray:
        """The time that one job of each class spends on each type in the mixture that the last search found."""
        shares = np.zeros((len(self.classes), len(self._open)))
        for number, part in raised.mixture:
            if number == 0:
                shares += part * self._modest * self._asks
            else:
                budgets, level = self._asked[number - 1]
                self.cost(budgets, self._curve.at(level)[0])
                self._splits.add_to(shares, part)
        everywhere = np.zeros((len(self.classes), len(self.classes.capacity)))
        everywhere[:, self._open] = shares
        return everywhere

    def scarce(self, budgets: FloatArray | None, shares: FloatArray, least: float) -> FloatArray | None:
        """The budgets, above the least, of the types that these shares use up; 0 for the others."""
        if budgets is None:
            return None
        used = self._load @ shares[:, self._open]
        return np.where((used >= self._capacity * (1 - EXACT)) & (budgets > least), budgets, 0.0)

    def everywhere(self, budgets: FloatArray | None) -> FloatArray:
        """Budgets of all types, 0 for those without workers (and if there are none)."""
        everywhere = np.zeros_like(self.classes.capacity)
        if budgets is not None:
            everywhere[self._open] = budgets
        return everywhere


@compiled(releases_gil=True, divides_as_numpy=True)
def search_multiple(
    splits: SplitsState,
    per_level: FloatArray,
    capacity: FloatArray,
    starts: FloatTable,
    highest: float,
    modest: float,
    used: FloatArray,
    gap: float,
    enough: float,
) -> tuple[float, float, bool, FloatArray, IntArray, FloatArray, FloatTable, FloatArray]:
    """The search for the prices that prove the highest multiple.

    The value, the bound, whether it is proven and by which budgets, the mixture, what was asked, and the levels.
    """
    types, lowest = len(capacity), highest
    search = begin_search(used, modest, highest, True)
    asked, levels = np.empty((ROUNDS_PER_TYPE * types, types)), np.empty(ROUNDS_PER_TYPE * types)
    count = 0
    while count < len(asked):
        asked[count] = starts[count] if count < len(starts) else search.following
        splits.price[:types] = asked[count] / capacity
        level, proven = _near_affordable(splits, per_level, lowest)
        lowest, levels[count] = min(lowest, proven), level
        count += 1
        same = learn(search, asked[count - 1], level, splits.usage[:types] / capacity, proven)
        value, bound = search.bounds[0], search.bounds[1]
        if bound - value <= gap * abs(bound) or (same and count >= len(starts)):
            break
        if enough < np.inf and (value >= enough or bound - value < _CLEAR * (enough - bound - _FAR)):
            break
    numbers, parts = mixture(master_of(search))
    return (
        search.bounds[0], search.bounds[1], search.proven[0] > 0, search.proof.copy(), numbers, parts,
        asked[:count].copy(), levels[:count].copy(),
    )  # fmt: skip


@compiled_within(releases_gil=True, divides_as_numpy=True)
def _near_affordable(splits: SplitsState, per_level: FloatArray, level: float) -> tuple[float, float]:
    """`Market._near_affordable` for a multiple."""
    for step_number in range(_STEPS):
        cost, rise = cheapest_at(splits, step_number > 0, per_level * level, per_level)
        if not cost > 1.0:
            return level, level
        step = (cost - 1.0) / rise if rise > 0 else 0.0
        if not step > _NEAR * abs(level):
            return level, (level - step if step > 0 else level)
        level -= step
    cheapest_at(splits, True, per_level * level, per_level)  # numbers so far apart have no nearer answer
    return level, level
