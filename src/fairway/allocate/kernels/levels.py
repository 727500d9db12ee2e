"""Raise one level until the demands it implies no longer fit.

Max-min fairness, makespan and finish-time fairness differ only in how a job's demanded rate grows with the level (its
demand curve). Jobs alone are a search for prices (`market`). With pairs it is a linear program (`program`), in which a
curve that is not straight is replaced by its tangent; the tangent asks for less than a convex curve does, so that the
level can only be too high, and the tangent there is the next to try.

A curve that is not convex, as a tree of teams makes it, is approached from above: at a level that is too high, the
prices that prove it also say what the demands of every other level cost at least, and the level that they can pay for
is the next, lower bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairway.allocate.allocation import EXACT
from fairway.allocate.arrays import FloatArray
from fairway.allocate.kernels.classes import Classes
from fairway.allocate.kernels.curves import ConvexCurve, Curve, Multiple
from fairway.allocate.kernels.market import Market, Raised
from fairway.allocate.kernels.program import Program
from fairway.allocate.kernels.raising import NO_PRICE, raise_alone
from fairway.allocate.kernels.simplex import raise_and_spend
from fairway.allocate.kernels.solution import Solution
from fairway.allocate.kernels.surplus import spend, spend_by_program

_STEPS = 100

_GAP = 1e-8
"""Well below what counts as exact."""

_MUCH_LESS = 0.1
"""A program is built anew for demands that have fallen by this, so that its tolerances stay small beside them."""

_REACHED = 1.0 - 1e-8
"""A stretch of the demands by this much counts as meeting them."""


def raise_level(
    classes: Classes, curve: ConvexCurve, warm_prices: FloatArray | None = None, *, bare: bool = False
) -> Solution:
    """The highest level of a convex curve whose demands fit, with what is left spent on the most work (`surplus`).

    With `bare`, no job has more than the level demands but by chance.
    """
    highest = curve.reached(classes.fastest)
    if classes.pairs is None and isinstance(curve, Multiple):
        before = np.zeros_like(classes.capacity) if warm_prices is None else warm_prices
        found, value, bound, given, each = raise_alone(
            classes.rates, classes.counts, classes.scale_factors, classes.capacity, curve.per_level, before, _GAP, bare
        )
        if found:
            return Solution(value, bound, given, None, each)
    elif classes.pairs is None:
        market = Market(classes, warm_prices)
        raised = market.raise_along(curve, highest, gap=_GAP)
        shares: FloatArray | None = market.shares(raised)
        assert shares is not None
        if meets(classes, shares, curve.at(raised.bound)[0]):
            prices = market.prices(raised.budgets, curve, raised.bound)
            if not bare:
                gone = market.everywhere(market.scarce(raised.budgets, shares, NO_PRICE)) > 0
                shares = spend(classes, shares, curve.at(raised.level)[0], gone)
            if shares is not None:
                return Solution(raised.level, raised.bound, shares, None, prices)
    elif isinstance(curve, Multiple):
        shared = raise_and_spend(classes, curve.at(highest)[0], spends=not bare)
        if shared is not None:
            level, bound = shared.level * highest, shared.bound * highest
            return Solution(level, bound, shared.alone, shared.together, shared.prices * highest)
    return _along_tangents(classes, curve, highest, bare=bare)


@dataclass(frozen=True, slots=True)
class Affordable:
    """No level above this one fits: `budgets` prove it, None if the level is the highest there is.

    `stretched` is how far its demands can be stretched: to 1 but for rounding.
    """

    level: float
    stretched: Raised
    budgets: FloatArray | None


def highest_affordable(market: Market, curve: Curve, highest: float) -> Affordable:
    """Lower the level of any curve from `highest` until its demands fit (Dinkelbach's method)."""
    level, budgets = highest, None
    for _ in range(_STEPS):
        stretched = market.stretch(curve.at(level)[0], enough=_REACHED)
        if stretched.level >= _REACHED or stretched.budgets is None:
            break
        lower = market.affordable(curve, stretched.budgets, level)
        if not lower < level:
            break
        level, budgets = lower, stretched.budgets
    return Affordable(level, stretched, budgets)


def meets(classes: Classes, shares: FloatArray, demand: FloatArray) -> bool:
    """Whether these shares give every class the rate it demands, to what counts as exact."""
    return bool((np.einsum("ij,ij->i", classes.rates, shares) >= demand * (1 - EXACT)).all())


def _along_tangents(classes: Classes, curve: ConvexCurve, level: float, *, bare: bool) -> Solution:
    """Lower the level, each time to the optimum for the tangents of the demand curves at the last one."""
    program, typical = None, np.full(len(classes), np.inf)
    for _ in range(_STEPS):
        demand, slope = curve.at(level)
        if program is None or (demand < _MUCH_LESS * typical).any():
            program, typical = Program(classes, demand), demand
        optimum = program.maximise_level(demand - level * slope, slope)
        lower = min(optimum.value, level)
        if level - lower <= 1e-10 * abs(level):
            break
        level = lower
    assert program is not None, "there is at least one step"
    spent = None if bare else spend_by_program(program, curve.at(lower)[0])
    best = optimum if spent is None else spent
    return Solution(lower, max(lower, optimum.bound), best.alone, best.together, optimum.prices)
