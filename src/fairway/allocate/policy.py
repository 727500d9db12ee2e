"""What a policy is: parameters, a name and one verb."""

from __future__ import annotations

from typing import ClassVar, Protocol, runtime_checkable

from fairway.allocate.allocation import Allocation
from fairway.allocate.problem import Problem
from fairway.errors import FairwayError


class UndecidedError(FairwayError):
    """A policy has not decided, although the problem may be sound: an engine goes by the last decision meanwhile."""


@runtime_checkable
class Policy(Protocol):
    """Decides one problem, from nothing but the problem: no clock, no I/O, no memory, no chance but its seed.

    `check_policy` tests any class that claims to be one. A policy whose answer is a choice of the jobs that run, and
    not shares of time among which jobs take turns, says so by an attribute `whole_jobs` that is true.
    """

    name: ClassVar[str]

    def allocate(self, problem: Problem) -> Allocation:
        """Decide the shares of one problem."""
        ...


def chooses_whole_jobs(policy: Policy) -> bool:
    """Whether the answer of a policy is to run as it is until the policy decides again: no job takes turns."""
    return bool(getattr(policy, "whole_jobs", False))


@runtime_checkable
class Efficient(Policy, Protocol):
    """A policy that may claim to leave nothing over; `check_policy` tests the claim.

    Where `efficient` is true, no job could have a higher effective throughput without another having a lower one, but
    for jobs with no steps left, which have no use for more. That is meant in the rates that the policy goes by: with
    an option `agnostic`, those of `Problem.agnostic(reference)`; pairs count with an option `space_sharing` only.
    """

    @property
    def efficient(self) -> bool:
        """Whether the policy claims it, with the options that it has."""
        ...
