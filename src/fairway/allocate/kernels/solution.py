"""What a solver found, by classes of identical jobs, and how it becomes an allocation of the jobs themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from fairway.allocate.allocation import Allocation
from fairway.allocate.arrays import FloatArray
from fairway.allocate.kernels.classes import Classes
from fairway.allocate.problem import Problem


@dataclass(frozen=True, slots=True)
class Solution:
    """Who runs where at the best value found: `value` was reached, `bound` is proven to be the most.

    `alone` holds the shares of one job of each class, `together` the total time of each pair of classes, `prices` what
    one more worker of each type would add to the value (None where that cannot be said).
    """

    value: float
    bound: float
    alone: FloatArray
    together: FloatArray | None
    prices: FloatArray | None

    @property
    def gap(self) -> float:
        """How far the value can be from the optimum, relative to it."""
        return max(self.bound - self.value, 0.0) / max(abs(self.bound), 1e-300)

    def rates(self, classes: Classes) -> FloatArray:
        """The effective rate of one job of each class."""
        rates: FloatArray = np.einsum("ij,ij->i", classes.rates, self.alone)
        if self.together is not None and classes.pairs is not None:
            for side, member in enumerate((classes.pairs.first, classes.pairs.second)):
                earned = np.einsum("ij,ij->i", classes.pairs.rates[:, :, side], self.together)
                np.add.at(rates, member, earned / classes.counts[member])
        return rates

    def allocation(
        self,
        policy: str,
        problem: Problem,
        classes: Classes,
        *,
        objective: float,
        sense: Literal["max", "min"] = "max",
        gap: float | None = None,
        per_value: float = 1.0,
        details: Mapping[str, Any] | None = None,
    ) -> Allocation:
        """Expand the classes to the jobs of the problem: a row for every job, then the pairs.

        `per_value` is what a unit of the value is in the objective, where the two are not the same.
        """
        shares = classes.expand(self.alone)
        first, second = np.arange(len(problem)), np.full(len(problem), -1)
        if self.together is not None:
            a, b, together = classes.expand_pairs(self.together)
            first, second = np.concatenate([first, a]), np.concatenate([second, b])
            shares = np.concatenate([shares, together])
        return Allocation(
            policy=policy,
            problem=problem,
            first=first,
            second=second,
            shares=shares,
            objective=objective,
            sense=sense,
            gap=self.gap if gap is None else gap,
            prices=None if self.prices is None else self.prices * per_value,
            details=details or {},
        )
