"""Maximise a sum over all jobs: one linear program, with rates that must be kept where there are any.

Three sums are of use: of the rates themselves, of the steps per dollar (each rate divided by the price of the type it
is reached on), and the ratio of the first to what all workers in use cost.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from fairway.allocate.allocation import EXACT
from fairway.allocate.arrays import FloatArray
from fairway.allocate.kernels.cheapest import best_types
from fairway.allocate.kernels.classes import Classes
from fairway.allocate.kernels.prices import Answer, find_prices
from fairway.allocate.kernels.program import Program
from fairway.allocate.kernels.solution import Solution

_STEPS = 60
_GAP = 1e-9


class Sums:
    """The sum of a set of classes; other minimum rates are solved from the last basis.

    `per_step` is what a step of each class is worth (1 if None). With `dollars_per_hour`, worth is per dollar; with
    `ratio`, it is the whole sum that is divided by the whole cost.
    """

    def __init__(
        self,
        classes: Classes,
        *,
        per_step: FloatArray | None = None,
        dollars_per_hour: FloatArray | None = None,
        ratio: bool = False,
    ) -> None:
        self._classes = classes
        self._cost = None
        per_type = np.ones(len(classes.capacity))
        if dollars_per_hour is not None and ratio:
            self._cost = self._everywhere(classes.scale_factors[:, None] * dollars_per_hour)
        elif dollars_per_hour is not None:
            per_type = 1.0 / dollars_per_hour
        worth = np.ones(len(classes)) if per_step is None else per_step
        self._value: _Values = (classes.rates * worth[:, None] * per_type, None)
        if classes.pairs is not None:
            members = np.stack([classes.pairs.first, classes.pairs.second], axis=1)
            earned = np.einsum("kjm,km->kj", classes.pairs.rates, worth[members])
            self._value = (self._value[0], earned * per_type)

    @cached_property
    def _program(self) -> Program:
        return Program(self._classes)

    def maximise(self, minimum: FloatArray | None = None) -> Solution | None:
        """The best with one job of each class at least at its minimum rate; None if these cannot all be had."""
        if self._cost is None:
            return self._solve(self._value, minimum)
        return self._maximise_ratio(self._cost, minimum)

    def _maximise_ratio(self, cost: _Values, minimum: FloatArray | None) -> Solution | None:
        """Dinkelbach's method: value - q * cost is linear, and its optimum is 0 exactly when q is the best ratio."""
        solution, ratio = self._solve(self._value, minimum), 0.0
        for _ in range(_STEPS):
            if solution is None or (spent := self._total(solution, cost)) <= 0:
                break
            best, previous, ratio = solution, ratio, self._total(solution, self._value) / spent
            if ratio - previous <= 1e-12 * ratio:
                break
            alone = self._value[0] - ratio * cost[0]
            together = None if self._value[1] is None or cost[1] is None else self._value[1] - ratio * cost[1]
            solution = self._solve((alone, together), minimum)
        if ratio == 0.0:
            return solution
        return Solution(ratio, ratio, best.alone, best.together, np.zeros_like(best.prices))

    def _everywhere(self, values: FloatArray) -> _Values:
        """The same for a pair as for its first member (both have the same gang)."""
        return values, None if self._classes.pairs is None else values[self._classes.pairs.first]

    def _solve(self, value: _Values, minimum: FloatArray | None) -> Solution | None:
        if minimum is None and value[1] is None:
            solution = _by_prices(self._classes, value[0])
            if solution.gap <= EXACT:
                return solution
        optimum = self._program.maximise_sum(*value, minimum)
        if optimum is None:
            return None
        return Solution(optimum.value, optimum.bound, optimum.alone, optimum.together, optimum.prices)

    def _total(self, solution: Solution, value: _Values) -> float:
        total = float((self._classes.counts[:, None] * solution.alone * value[0]).sum())
        if solution.together is not None and value[1] is not None:
            total += float((solution.together * value[1]).sum())
        return total


def _by_prices(classes: Classes, values: FloatArray) -> Solution:
    """The same without pairs and minimum rates: at given prices, each job takes the type that earns most above them."""
    open_types = np.flatnonzero(classes.capacity > 0)
    capacity, worth = classes.capacity[open_types], np.ascontiguousarray(values[:, open_types])
    load = classes.counts * classes.scale_factors
    usage, chosen = np.zeros(len(capacity)), np.zeros(len(classes), dtype=np.int16)
    asked: list[FloatArray] = []

    def respond(budgets: FloatArray) -> float:
        total: float = best_types(worth, classes.counts, load, budgets / capacity, usage, chosen)
        return total

    def ask(budgets: FloatArray) -> Answer:
        asked.append(budgets)
        value, used = respond(budgets), usage / capacity
        return Answer(value, used, value + float(budgets @ (1.0 - used)))

    start = np.full(len(capacity), (classes.counts @ worth).max(initial=0.0) / len(capacity))
    nothing = Answer(0.0, np.zeros(len(capacity)), np.inf)
    balance = find_prices(ask, nothing, [start], done=lambda value, bound: bound - value <= _GAP * abs(bound))
    alone = np.zeros_like(classes.rates)
    for number, part in balance.mixture:
        if number:
            respond(asked[number - 1])
            busy = np.flatnonzero(chosen >= 0)
            alone[busy, open_types[chosen[busy]]] += part
    prices = np.zeros_like(classes.capacity)
    if balance.proof is not None:
        prices[open_types] = balance.proof / capacity
    return Solution(balance.value, balance.bound, alone, None, prices)


_Values = tuple[FloatArray, FloatArray | None]
"""What a unit of time is worth: of each class alone and of each pair, by type."""
