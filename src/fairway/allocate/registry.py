"""Policies by name: `name[:option,...]`, as in `max-min-fairness:agnostic` or `makespan:agnostic,reference=v100`.

An option is a field of the policy's class (`fairway.options`); a class of any module has `module:Class` for a name, and
installed packages may offer others (`fairway.parts`).
"""

from __future__ import annotations

from fairway.allocate.allocation import Allocation
from fairway.allocate.policies import POLICIES
from fairway.allocate.policy import Policy
from fairway.allocate.problem import Problem
from fairway.parts import Parts

POLICY_PARTS: Parts[Policy] = Parts("policy", "fairway.policies", Policy, POLICIES)


def allocate(policy: str | Policy, problem: Problem) -> Allocation:
    """Decide a problem with a policy, given as an object or by its name."""
    return policy_of(policy).allocate(problem)


def policy_of(given: str | Policy) -> Policy:
    """The policy that a name with options stands for; an object is refused if it is no policy."""
    return POLICY_PARTS.of(given)
