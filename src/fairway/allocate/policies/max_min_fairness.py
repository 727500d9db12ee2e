"""Max-min fairness, which is least attained service when all accelerators are alike (Gavel §4.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fairway.allocate.allocation import Allocation
from fairway.allocate.kernels.classes import Classes
from fairway.allocate.kernels.curves import Multiple
from fairway.allocate.kernels.levels import raise_level
from fairway.allocate.policies.common import nothing_to_do, warm_prices
from fairway.allocate.policy import Policy
from fairway.allocate.problem import Problem


@dataclass(frozen=True, slots=True)
class MaxMinFairness(Policy):
    """Maximise the lowest level of any job, where level_m = s_m * rate_m / (w_m * proportional_m).

    rate_m is the effective throughput, w_m the weight (a job of weight 5 gets five times the normalised throughput) and
    s_m the scale factor: a job on one worker gets s times the time of a gang of s. What is left at that level is spent
    on the highest mean level; with `bare`, it is left over.
    """

    name: ClassVar[str] = "max-min-fairness"
    agnostic: bool = False
    space_sharing: bool = False
    bare: bool = False

    @property
    def efficient(self) -> bool:
        """Whether nothing is left over that a job could use."""
        return not self.bare

    @property
    def by_work(self) -> bool:
        """Whether jobs are to have its rates, whatever the pairs: a level says no more than that."""
        return self.space_sharing and not self.agnostic

    def allocate(self, problem: Problem) -> Allocation:
        """Decide the shares of one problem."""
        view = problem.agnostic() if self.agnostic else problem
        per_level = view.weights * view.proportional_throughputs / view.scale_factors
        classes = Classes.of(view, [per_level], space_sharing=self.space_sharing)
        if not len(classes):
            return nothing_to_do(self.name, problem)
        solution = raise_level(classes, Multiple(classes.of_jobs(per_level)), warm_prices(problem), bare=self.bare)
        return solution.allocation(self.name, problem, classes, objective=solution.value)
