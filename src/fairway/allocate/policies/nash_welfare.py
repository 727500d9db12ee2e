"""Nash welfare with discounts: a fair policy under which it does not pay to lie about one's rates.

The partial allocation mechanism of Cole, Gkatzelis and Goel (EC 2013), which the original offers as its strategy-proof
variant of max-min fairness: everyone's share at the largest product of rates is cut by what its presence costs others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fairway.allocate.allocation import Allocation
from fairway.allocate.arrays import FloatArray
from fairway.allocate.kernels.classes import Classes
from fairway.allocate.kernels.welfare import Welfare, largest_welfare
from fairway.allocate.policies.common import nothing_to_do
from fairway.allocate.policy import Policy
from fairway.allocate.problem import Problem


@dataclass(frozen=True, slots=True)
class NashWelfare(Policy):
    """Maximise the geometric mean of all levels, s_m * rate_m / proportional_m; then multiply job i's time by

        discount_i = (product over the other jobs k of (rate_k / rate_k without i) ^ w_k) ^ (1 / w_i).

    The objective is the weighted geometric mean before the discounts, which are in `details["discounts"]`. Weights are
    exponents (in the original's form they cancel out). `undiscounted` leaves the discounts out. Pairs cannot share: a
    job's presence would change what others can share with, and the discounts would no longer keep anyone honest.
    """

    name: ClassVar[str] = "nash-welfare"
    agnostic: bool = False
    undiscounted: bool = False

    def allocate(self, problem: Problem) -> Allocation:
        """Decide the shares of one problem."""
        view = problem.agnostic() if self.agnostic else problem
        classes = Classes.of(view, [view.weights], space_sharing=False)
        if not len(classes):
            return nothing_to_do(self.name, problem)
        weights = classes.of_jobs(view.weights)
        best = largest_welfare(classes, classes.counts, weights)
        total = float(classes.counts @ weights)
        unit = classes.of_jobs(view.proportional_throughputs) / classes.scale_factors
        welfare = float((classes.counts * weights) @ np.log(best.rates / unit)) / total
        discounts = np.ones(len(classes)) if self.undiscounted else _discounts(classes, weights, best)
        names = zip(problem.ids, classes.member.tolist(), strict=True)
        return Allocation.of_jobs(
            self.name,
            problem,
            classes.expand(best.shares * discounts[:, None]),
            objective=float(np.exp(welfare)),
            gap=float(np.expm1(max(best.bound - best.value, 0.0) / total)),
            prices=best.prices * float(np.exp(welfare)) / total if self.undiscounted else None,
            details={"discounts": {name: float(discounts[member]) for name, member in names if member >= 0}},
        )


def _discounts(classes: Classes, weights: FloatArray, best: Welfare) -> FloatArray:
    """What is left to one job of each class after paying for what its presence takes from the others."""
    discounts = np.ones(len(classes))
    for position in range(len(classes)):
        others = classes.counts.copy()
        others[position] -= 1
        if not others.any():
            continue
        without = largest_welfare(classes, others, weights, best.prices)
        there = others > 0
        lost = (others * weights)[there] @ np.log(best.rates[there] / without.rates[there])
        discounts[position] = min(float(np.exp(lost / weights[position])), 1.0)
    return discounts
