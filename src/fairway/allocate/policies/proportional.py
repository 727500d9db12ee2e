"""Proportional: every job gets time on all types in proportion to how many workers of each there are.

Decides from the counts alone: x_ij = N_j / sum_j' N_j' where job i can run on type j, a full unit of time for a job
that can run anywhere. The rate on these shares is the yardstick of max-min fairness (Gavel §4.1), where they need not
fit.
Here they must: where the jobs want more of a type than there is, all shares of all jobs shrink by one common factor,
min_j N_j / sum_i s_i x_ij.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fairway.allocate.allocation import Allocation
from fairway.allocate.kernels.scores import lowest_level
from fairway.allocate.policy import Policy
from fairway.allocate.problem import Problem


@dataclass(frozen=True, slots=True)
class Proportional(Policy):
    """Spread the time of every job in proportion to the counts; the objective is the lowest level, for comparison."""

    name: ClassVar[str] = "proportional"
    agnostic: ClassVar[bool] = True

    def allocate(self, problem: Problem) -> Allocation:
        """Give each job the same proportions, scaled down together until they fit."""
        spread = problem.workers / max(problem.workers.sum(), 1.0)
        shares = np.where(problem.runnable, spread, 0.0)
        wanted = problem.scale_factors @ shares
        fits = np.divide(problem.workers, wanted, out=np.ones_like(wanted), where=wanted > 0)
        shares *= fits.min(initial=1.0)
        split = Allocation.of_jobs(self.name, problem, shares, objective=0.0)
        return replace(split, objective=lowest_level(split))
