"""Isolated: what each job would have on its own 1/n of the cluster.

Decides from the counts and scale factors alone: of each type, a job gets time on N_j / n workers, at most a full unit
of time in all; n counts the jobs that can run. It is the yardstick of finish-time fairness (Gavel §4.2).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from fairway.allocate.allocation import Allocation
from fairway.allocate.kernels.scores import lowest_level
from fairway.allocate.policy import Policy
from fairway.allocate.problem import Problem


@dataclass(frozen=True, slots=True)
class Isolated(Policy):
    """Split every accelerator type equally among the jobs; the objective is the lowest level, for comparison."""

    name: ClassVar[str] = "isolated"
    agnostic: ClassVar[bool] = True

    def allocate(self, problem: Problem) -> Allocation:
        """Give each job its isolated share."""
        split = Allocation.of_jobs(self.name, problem, problem.isolated_shares, objective=0.0)
        return replace(split, objective=lowest_level(split))
