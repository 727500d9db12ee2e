"""Water filling: raise everyone's level together; who can rise no further stays, the others go on (Gavel §4.3).

The result is lexicographically max-min: no job can have more without taking from one that has no more than it. The
original finds the jobs that are stuck by a mixed-integer program after each rise. Linear duality answers the same
question: a job is stuck when raising it would cost something at the prices that prove that the level cannot rise.

With jobs alone this takes at most one rise per accelerator type. When prices prove a level, the types with a price are
exhausted for good by the jobs that are stuck; the others live on free types from then on, and until a free type runs
out each of them stops exactly at its own cap, its full time on the fastest free type. Pairs have no such caps: there,
each rise is a linear program, and its dual values name the jobs that are stuck.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fairway.allocate.allocation import EXACT
from fairway.allocate.arrays import BoolArray, FloatArray, row_maxima
from fairway.allocate.kernels.classes import Classes
from fairway.allocate.kernels.curves import Multiple
from fairway.allocate.kernels.levels import Affordable, highest_affordable, meets
from fairway.allocate.kernels.market import Market
from fairway.allocate.kernels.program import Program, SolverError
from fairway.allocate.kernels.solution import Solution
from fairway.allocate.kernels.teams import Filling, Teams

_ROUNDING = 1e-8
"""Slacks, prices and rises below this, relative to the whole, are rounding."""

_STUCK = 1e-7
"""Relative to the largest, a smaller worth is noise of the solver."""


def fill(classes: Classes, teams: Teams, warm_prices: FloatArray | None = None) -> tuple[Solution, FloatArray]:
    """The lexicographic max-min solution, and the amount of service that each class ends up with."""
    unit = classes.of_jobs(classes.problem.proportional_throughputs) / classes.scale_factors
    if classes.pairs is None:
        filled = _fill_by_prices(classes, teams, unit, warm_prices)
        if filled is not None:
            return filled
    return _fill_by_programs(Program(classes, unit), teams, unit)


@dataclass(frozen=True, slots=True)
class _TeamCurve:
    """The rate that each job demands at a level of the tree: its amount times the rate of one unit of service.

    Of a job that is frozen, only what is left for the free types to do.
    """

    filling: Filling
    unit: FloatArray
    frozen: BoolArray
    left: FloatArray

    def at(self, level: float) -> tuple[FloatArray, FloatArray]:
        step = 1e-7 * level
        demand = self._demand(level)
        return demand, (demand - self._demand(level - step)) / step

    def _demand(self, level: float) -> FloatArray:
        return np.where(self.frozen, self.left, self.filling.amounts(level) * self.unit)


def _fill_by_prices(
    classes: Classes, teams: Teams, unit: FloatArray, warm_prices: FloatArray | None = None
) -> tuple[Solution, FloatArray] | None:
    """Rise by rise; None if rounding leads astray (demands that are not met, a rise that uses up no type).

    After a rise, the types that it exhausted leave the problem, together with the time that anyone spends there. A job
    that is stuck stays with the time and the rate that it has on free types, as it may have a choice among them.
    """
    size = len(classes)
    exhausted, frozen = classes.capacity <= 0, np.zeros(size, dtype=bool)
    caps, left, time = classes.fastest / unit, np.zeros(size), np.ones(size)
    settled = np.zeros_like(classes.rates)
    first: tuple[float, FloatArray] | None = None
    for _ in range(len(exhausted) + 1):  # each rise exhausts at least one more type
        reduced = classes if first is None else classes.within(time, ~exhausted)
        market = Market(reduced, warm_prices)
        filling = teams.up_to(caps)
        curve = _TeamCurve(filling, unit, frozen, left)
        affordable = None
        if teams.flat and first is None:
            affordable = _while_nobody_is_capped(market, teams, caps, unit)
        if affordable is None:
            affordable = highest_affordable(market, curve, teams.full_level(caps))
        amounts, shares = filling.amounts(affordable.level), market.shares(affordable.stretched)
        if not meets(reduced, shares, curve.at(affordable.level)[0]):
            return None
        proof = market.scarce(affordable.budgets, shares, _ROUNDING)
        prices = market.prices(proof, curve, affordable.level)
        first = first or (affordable.level, prices)
        shares = settled + shares * time[:, None]
        gone = market.everywhere(proof) > 0
        if proof is None or (exhausted | gone).all():  # everyone is at its cap, or no type is left
            break
        free = row_maxima(np.where(exhausted | gone, 0.0, classes.rates)) / unit
        frozen |= (market.slope > 0) | (shares[:, gone].sum(axis=1) > EXACT)
        higher = np.where(frozen, amounts, np.clip(free, amounts, caps))
        if not (higher > amounts * (1 + _ROUNDING)).any():
            break
        if not gone.any():
            return None
        exhausted |= gone
        caps, settled = higher, np.where(exhausted, shares, 0.0)
        time = np.where(frozen, np.maximum(1.0 - settled.sum(axis=1), 0.0), 1.0)
        # No job holds on to a free type for the sake of what is only rounding of its level.
        left = np.maximum(np.einsum("ij,ij->i", classes.rates, shares - settled) - _ROUNDING * amounts * unit, 0.0)
        warm_prices = None
    assert first is not None
    assert affordable is not None, "there is at least one rise"
    value, factor = teams.root_level(amounts), min(affordable.stretched.level, 1.0)
    return Solution(value * factor, value, shares, None, _prices_of(value, *first)), amounts


def _while_nobody_is_capped(market: Market, teams: Teams, caps: FloatArray, unit: FloatArray) -> Affordable | None:
    """The level at which workers run out, if that comes before any job has all it can have; None otherwise.

    Until then, demands are multiples of the level, and one search is enough.
    """
    curve = Multiple(teams.weights * unit)
    raised = market.raise_along(curve, float((caps / teams.weights).min()), gap=_ROUNDING)
    if raised.budgets is None:
        return None
    return Affordable(raised.bound, replace(raised, level=raised.level / raised.bound), raised.budgets)


def _fill_by_programs(program: Program, teams: Teams, unit: FloatArray) -> tuple[Solution, FloatArray]:
    """Rise by rise, each a linear program; where the solver is at its end before the last, the solution says so."""
    # No job has a cap until it is stuck: a bound that is out of reach stands for that.
    caps = np.full_like(unit, 1e9 * float((program.classes.fastest / unit).max()))
    level, amounts = 0.0, np.zeros_like(unit)
    first: tuple[float, FloatArray] | None = None
    for _ in range(len(unit) + 1):  # each rise leaves at least one more class stuck
        step = level or 1.0
        rising = (teams.amounts(level + step, caps) - amounts) / step
        if not (rising > 0).any():
            break
        # What has been reached is kept but for rounding: a program without any room can be beyond a solver.
        try:
            optimum = program.maximise_level(amounts * unit * (1 - _ROUNDING), rising * unit)
        except SolverError:
            if first is None:
                raise
            missed = max(teams.root_level(program.classes.fastest / unit) - teams.root_level(amounts), 0.0)
            break
        missed = optimum.bound - optimum.value
        level += max(optimum.value, 0.0)
        first = first or (level, optimum.prices)
        amounts = teams.amounts(level, caps)
        worth = optimum.worth * rising * unit
        stuck = (worth >= _STUCK * worth.max()) & (rising > 0)
        if not stuck.any():
            break
        caps = np.where(stuck, amounts, caps)
    assert first is not None, "at the start, everyone who can run anywhere can rise"
    value = teams.root_level(amounts)
    return Solution(value, value + missed, optimum.alone, optimum.together, _prices_of(value, *first)), amounts


def _prices_of(value: float, first_level: float, first_prices: FloatArray) -> FloatArray | None:
    """What more workers would add to the lowest amount per weight at the top of the tree.

    Where that one stopped at the first rise, the prices that prove it; nothing where it stopped before, at its own cap.
    Where it went on, several rises have a part in it, and there is no one price.
    """
    if value > first_level * (1 + _ROUNDING):
        return None
    return first_prices if value >= first_level * (1 - _ROUNDING) else np.zeros_like(first_prices)
