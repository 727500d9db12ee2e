"""The most work for the money (Gavel §4.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fairway.allocate.allocation import Allocation
from fairway.allocate.policies.common import allocate_by_sum
from fairway.allocate.policy import Policy
from fairway.allocate.problem import Problem


@dataclass(frozen=True, slots=True)
class MinCost(Policy):
    """Maximise sum_mj (T_mj / c_j) X_mj, steps per dollar, where c_j is the price of a worker of type j.

    With `ratio`, the paper's form instead: maximise sum_m rate_m / sum_mj s_m c_j X_mj, total throughput over total
    cost; as nothing has to be reached, that one runs only what is best for its money. Where nothing has a price, every
    type costs 1.
    """

    name: ClassVar[str] = "min-cost"
    by_cost: ClassVar[bool] = True
    agnostic: bool = False
    space_sharing: bool = False
    ratio: bool = False

    def allocate(self, problem: Problem) -> Allocation:
        """Decide the shares of one problem."""
        view = problem.agnostic() if self.agnostic else problem
        return allocate_by_sum(
            self.name, problem, view, space_sharing=self.space_sharing, dollars=view.dollars_or_one, ratio=self.ratio
        )
