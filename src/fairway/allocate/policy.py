"""What a policy is: parameters, a name, one verb, and what engines have to know of it."""

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

    A class that inherits from it writes down only what is different; a field of the same name is an option as well.
    `check_policy` tests any class that claims to be one.
    """

    __slots__ = ()

    name: ClassVar[str]

    @property
    def agnostic(self) -> bool:
        """Whether it is blind to the differences between types, so that no move between them gains anything."""
        return False

    @property
    def space_sharing(self) -> bool:
        """Whether it may let two jobs share a worker, so that it has to know the rates of pairs."""
        return False

    @property
    def by_cost(self) -> bool:
        """Whether it goes by prices, so that a job may leave a faster type for a cheaper one."""
        return False

    @property
    def whole_jobs(self) -> bool:
        """Whether its answer is a choice of jobs, which run until it decides again, and not shares to take turns by."""
        return False

    @property
    def by_progress(self) -> bool:
        """Whether its answer depends on what jobs have done, so that it is asked again although no job came or went."""
        return False

    @property
    def by_work(self) -> bool:
        """Whether jobs that share are to make progress at the rates that it gives them, in whatever pairs they do.

        Otherwise its very pairs are served, each for the share of time that it has.
        """
        return False

    @property
    def efficient(self) -> bool:
        """Whether it leaves nothing over, as it claims and `check_policy` tests.

        No job could then have a higher effective throughput without another having a lower one, but for jobs with no
        steps left, which have no use for more. That is meant in the rates that the policy goes by: where it is
        `agnostic`, those of `Problem.agnostic(reference)`; pairs count with `space_sharing` only.
        """
        return False

    def allocate(self, problem: Problem) -> Allocation:
        """Decide the shares of one problem."""
        ...
