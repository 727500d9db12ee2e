"""Policies by name: `name[:option,...]`, as in `max-min-fairness:agnostic` or `makespan:agnostic,reference=v100`.

An option is a field of the policy's class (`fairway.options`).
"""

from __future__ import annotations

from fairway.allocate.allocation import Allocation
from fairway.allocate.policies import POLICIES
from fairway.allocate.policy import Policy
from fairway.allocate.problem import Problem
from fairway.options import named


def allocate(policy: str | Policy, problem: Problem) -> Allocation:
    """Decide a problem with a policy, given as an object or by its name."""
    return (policy_of(policy) if isinstance(policy, str) else policy).allocate(problem)


def policy_of(text: str) -> Policy:
    """The policy that a name with options stands for."""
    return named("policy", text, POLICIES)
