"""A policy that never comes to an end, or fails, with certain jobs beside others: those of certain weights."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import ClassVar

from fairway.allocate.allocation import Allocation
from fairway.allocate.policies.max_min_fairness import MaxMinFairness
from fairway.allocate.policy import Policy
from fairway.allocate.problem import Problem

ENDLESS, FAILING, CRASHING, ENDLESS_ALONE = 13.0, 17.0, 19.0, 23.0


@dataclass(frozen=True, slots=True)
class EndlessPolicy(Policy):
    """Max-min fairness, until it meets one of these weights."""

    name: ClassVar[str] = "endless"

    def allocate(self, problem: Problem) -> Allocation:
        weights = set(problem.weights.tolist())
        beside = len(problem) > 1
        while (ENDLESS in weights and beside) or ENDLESS_ALONE in weights:
            pass
        if FAILING in weights and beside:
            raise ZeroDivisionError("on purpose")
        if CRASHING in weights and beside:
            os._exit(11)
        return MaxMinFairness().allocate(problem)
