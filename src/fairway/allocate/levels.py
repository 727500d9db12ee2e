"""Raise one level until the demands it implies no longer fit: the kernel of the fair policies.

Max-min fairness, makespan and finish-time fairness differ only in how a job's demanded rate grows with the level (its
demand curve). A curve that is a multiple of the level is one stretch (jobs alone) or one linear program (pairs). Any
other curve is approached from above: at a level that is too high, the prices that prove it also say, for every level,
what its demands cost at least; the level that they can pay for is the next, lower bound. With pairs, the curve is
replaced by its tangent, which asks for less than a convex curve does and therefore is a bound as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fairway.allocate.allocation import EXACT
from fairway.allocate.arrays import FloatArray
from fairway.allocate.classes import Classes
from fairway.allocate.program import Program
from fairway.allocate.solution import Solution
from fairway.allocate.stretch import Market, Stretched

_STEPS = 100

_MUCH_LESS = 0.1
"""A program is built anew for demands that have fallen by this, so that its tolerances stay small beside them."""

_REACHED = 1.0 - 1e-8
"""A stretch of the demands by this much counts as meeting them."""


class Curve(Protocol):
    """How the rate that each job demands grows with the level."""

    def demand(self, level: float) -> FloatArray:
        """The rate that one job of each class must have at this level."""
        ...

    def slope(self, level: float) -> FloatArray:
        """By how much that rises with the level."""
        ...


def raise_level(classes: Classes, per_level: FloatArray, warm_prices: FloatArray | None = None) -> Solution:
    """The highest level at which every job can have `level * per_level` as its rate."""
    if classes.pairs is None:
        market = Market(classes, warm_prices)
        stretched = market.stretch(per_level)
        shares = market.shares(stretched)
        if meets(classes, shares, stretched.bound * per_level):
            prices = market.prices(stretched.budgets, stretched.factor * per_level, per_level)
            return Solution(stretched.factor, stretched.bound, shares, None, prices)
    optimum = Program(classes, per_level).maximise_level(np.zeros(len(classes)), per_level)
    return Solution(optimum.value, optimum.bound, optimum.alone, optimum.together, optimum.prices)


def raise_along(classes: Classes, curve: Curve, highest: float, warm_prices: FloatArray | None = None) -> Solution:
    """The highest level of an increasing, convex curve whose demands fit, at most `highest`.

    The level of the solution is a bound: its rates are the demands of that level but for rounding.
    """
    if classes.pairs is not None:
        return _along_tangents(classes, curve, highest)
    market = Market(classes, warm_prices)
    affordable = highest_affordable(market, curve, highest)
    level = affordable.level
    shares = market.shares(affordable.stretched)
    if not meets(classes, shares, curve.demand(level)):
        return _along_tangents(classes, curve, level)
    prices = market.prices(affordable.budgets, curve.demand(level), curve.slope(level))
    return Solution(level, level, shares, None, prices)


@dataclass(frozen=True, slots=True)
class Affordable:
    """No level above this one fits: `budgets` prove it, None if the level is the highest there is.

    `stretched` is how far its demands can be stretched: to 1 but for rounding.
    """

    level: float
    stretched: Stretched
    budgets: FloatArray | None


def highest_affordable(market: Market, curve: Curve, highest: float) -> Affordable:
    """Lower the level from `highest` until its demands fit (Dinkelbach's method, each step a stretch)."""
    level, budgets = highest, None
    for _ in range(_STEPS):
        stretched = market.stretch(curve.demand(level), enough=_REACHED)
        if stretched.factor >= _REACHED:
            break
        if stretched.budgets is None:
            break
        lower = _paid_level(market, curve, level, stretched.budgets)
        if not lower < level:
            break
        level, budgets = lower, stretched.budgets
    return Affordable(level, stretched, budgets)


def meets(classes: Classes, shares: FloatArray, demand: FloatArray) -> bool:
    """Whether these shares give every class the rate it demands, to what counts as exact."""
    return bool((np.einsum("ij,ij->i", classes.rates, shares) >= demand * (1 - EXACT)).all())


def _paid_level(market: Market, curve: Curve, level: float, budgets: FloatArray) -> float:
    """The level at which demands cost the whole budget, below one that costs more: Newton, kept in its bracket."""
    too_high, low_enough, step = level, None, 0.0
    for _ in range(_STEPS):
        cost = market.cost(budgets, curve.demand(level))
        if abs(cost - 1.0) <= 1e-14:
            return level
        rise = float(market.slope @ curve.slope(level))
        if cost > 1.0:
            too_high = level
        else:
            low_enough = level
        previous, level = level, level - (cost - 1.0) / rise if rise > 0 else np.nan
        if low_enough is None:
            if not level < too_high:  # a flat stretch of the curve: look further down, faster each time
                step = 2.0 * step or abs(too_high) * 1e-3 + 1e-12
                level = too_high - step
        elif not low_enough < level < too_high:
            level = 0.5 * (low_enough + too_high)
            if not low_enough < level < too_high:
                return low_enough
        if abs(level - previous) <= 1e-15 * abs(previous):
            return level
    return level if low_enough is None else low_enough


def _along_tangents(classes: Classes, curve: Curve, level: float) -> Solution:
    """Lower the level, each time to the optimum for the tangents of the demand curves at the last one."""
    typical = np.full(len(classes), np.inf)
    for _ in range(_STEPS):
        demand, slope = curve.demand(level), curve.slope(level)
        if (demand < _MUCH_LESS * typical).any():
            program, typical = Program(classes, demand), demand
        optimum = program.maximise_level(demand - level * slope, slope)
        lower = min(optimum.value, level)
        if level - lower <= 1e-10 * abs(level):
            break
        level = lower
    return Solution(lower, max(lower, optimum.bound), optimum.alone, optimum.together, optimum.prices)
