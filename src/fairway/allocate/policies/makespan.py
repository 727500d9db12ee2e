"""The least time until all jobs are done (Gavel §4.2)."""

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
class Makespan(Policy):
    """Minimise max_m steps_m / rate_m: raise 1/T, of which every job demands its steps left as a rate.

    `reference` names the type whose rate stands for all when `agnostic`; by default that is the mean over the workers.
    What is left is spent on the highest sum of rate_m / steps_m; with `bare`, it is left over.
    """

    name: ClassVar[str] = "makespan"
    agnostic: bool = False
    space_sharing: bool = False
    bare: bool = False
    reference: str | None = None

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
        steps = problem.needs_steps(self.name)
        view = problem.agnostic(self.reference) if self.agnostic else problem
        classes = Classes.of(view, [steps], space_sharing=self.space_sharing)
        if not classes.of_jobs(steps).any():
            return nothing_to_do(self.name, problem, sense="min")
        solution = raise_level(classes, Multiple(classes.of_jobs(steps)), warm_prices(problem), bare=self.bare)
        seconds = 1.0 / solution.value
        return solution.allocation(self.name, problem, classes, objective=seconds, sense="min", per_value=seconds**2)
