"""Fairway schedules machine learning on mixed accelerators.

This is the public Python API; everything else may change without notice. A name is imported when it is first used, so
that `fairway --help` need not wait for the numerical libraries.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairway.allocate.allocation import Allocation, Binding
    from fairway.allocate.check import PolicyError, check_policy
    from fairway.allocate.policies import POLICIES
    from fairway.allocate.policy import Policy
    from fairway.allocate.problem import Pairs, Problem
    from fairway.allocate.problem_file import parse_problem
    from fairway.allocate.registry import allocate, policy_of
    from fairway.cluster import Cluster
    from fairway.errors import FairwayError, InputError
    from fairway.jobs import Entity, Job, Pair

__all__ = [
    "POLICIES",
    "Allocation",
    "Binding",
    "Cluster",
    "Entity",
    "FairwayError",
    "InputError",
    "Job",
    "Pair",
    "Pairs",
    "Policy",
    "PolicyError",
    "Problem",
    "allocate",
    "check_policy",
    "parse_problem",
    "policy_of",
]

_HOME = {
    "POLICIES": "fairway.allocate.policies",
    "Allocation": "fairway.allocate.allocation",
    "Binding": "fairway.allocate.allocation",
    "Cluster": "fairway.cluster",
    "Entity": "fairway.jobs",
    "FairwayError": "fairway.errors",
    "InputError": "fairway.errors",
    "Job": "fairway.jobs",
    "Pair": "fairway.jobs",
    "Pairs": "fairway.allocate.problem",
    "Policy": "fairway.allocate.policy",
    "PolicyError": "fairway.allocate.check",
    "Problem": "fairway.allocate.problem",
    "check_policy": "fairway.allocate.check",
    "parse_problem": "fairway.allocate.problem_file",
    "policy_of": "fairway.allocate.registry",
}

if not TYPE_CHECKING:  # a type checker that saw this would believe in any name

    def __getattr__(name: str) -> object:
        if name == "allocate":
            return import_module("fairway.allocate")  # the package itself, which can be called
        if name not in _HOME:
            raise AttributeError(f"module 'fairway' has no attribute '{name}'")
        value = globals()[name] = getattr(import_module(_HOME[name]), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
