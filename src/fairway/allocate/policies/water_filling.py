"""Water filling: max-min fairness to the last job (Gavel §4.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fairway.allocate.allocation import Allocation
from fairway.allocate.kernels.classes import Classes
from fairway.allocate.kernels.filling import fill
from fairway.allocate.kernels.teams import Teams, team_features
from fairway.allocate.policies.common import nothing_to_do, warm_prices
from fairway.allocate.policy import Policy
from fairway.allocate.problem import Problem


@dataclass(frozen=True, slots=True)
class WaterFilling(Policy):
    """Maximise the lowest level, then the second lowest, and so on; levels as in max-min fairness.

    The objective is the lowest level; what max-min fairness leaves unused goes to the jobs that can still rise.
    """

    name: ClassVar[str] = "water-filling"
    flat: ClassVar[bool] = True
    efficient: ClassVar[bool] = True
    agnostic: bool = False
    space_sharing: bool = False

    @property
    def by_work(self) -> bool:
        """Whether jobs are to have its rates, whatever the pairs: a level says no more than that."""
        return self.space_sharing and not self.agnostic

    def allocate(self, problem: Problem) -> Allocation:
        """Decide the shares of one problem."""
        view = problem.agnostic() if self.agnostic else problem
        features = [view.proportional_throughputs, *([view.weights] if self.flat else team_features(view))]
        classes = Classes.of(view, features, space_sharing=self.space_sharing)
        if not len(classes):
            return nothing_to_do(self.name, problem)
        solution, _ = fill(classes, Teams(classes, flat=self.flat), warm_prices(problem))
        return solution.allocation(self.name, problem, classes, objective=solution.value)
