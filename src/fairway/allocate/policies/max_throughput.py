"""The most work per second, whoever does it (Gavel §4.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fairway.allocate.allocation import Allocation
from fairway.allocate.policies.common import allocate_by_sum
from fairway.allocate.policy import Policy
from fairway.allocate.problem import Problem


@dataclass(frozen=True, slots=True)
class MaxThroughput(Policy):
    """Maximise sum_m rate_m, in raw steps per second: jobs with short steps come first."""

    name: ClassVar[str] = "max-throughput"
    agnostic: bool = False
    space_sharing: bool = False

    def allocate(self, problem: Problem) -> Allocation:
        """Decide the shares of one problem."""
        view = problem.agnostic() if self.agnostic else problem
        return allocate_by_sum(self.name, problem, view, space_sharing=self.space_sharing)
