"""What a policy decides: the share of time that each job, alone or in a pair, runs on each accelerator type.

An `Allocation` also carries what is needed to explain it: the objective with the proven gap to its optimum, the shadow
price of each accelerator type and, on request, what holds each job back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from fairway.allocate.arrays import FloatArray, IntArray

if TYPE_CHECKING:
    from fairway.allocate.problem import Problem

EXACT = 1e-6
"""The relative gap up to which an allocation counts as optimal."""

PRICED_IN_TIME = "step_seconds"
"""In `details`, where prices are hours of other jobs' time for an hour: what a step of each job costs, in seconds."""

_NEGLIGIBLE = 1e-9
"""Shares below this, relative to a job's time, are noise of floating-point arithmetic."""

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Binding(NamedTuple):
    """What keeps a job from running faster.

    `time`: it already runs all the time at the highest rate it can have. `capacity`: it would run faster on
    `accelerator`, whose workers are all taken. `objective`: workers that could speed it up are free, but the policy's
    goal does not ask for more. `unrunnable`: no accelerator type of this cluster can run it.
    """

    kind: Literal["time", "capacity", "objective", "unrunnable"]
    accelerator: str | None = None


@dataclass(frozen=True, eq=False)
class Allocation:
    """Shares of time by row (a job or a pair of jobs) and accelerator type.

    Row r runs job `first[r]`, together with job `second[r]` unless that is -1, for the fraction `shares[r, j]` of the
    time on a gang of type j. `gap` bounds how far `objective` can be from the true optimum, relative to it (None for
    policies that follow a rule instead of optimising). `prices[j]` is what one more worker of type j would add to the
    objective (positive is better, whatever the sense), None where the policy has no prices. `details` holds what only
    one policy has to tell.
    """

    policy: str
    problem: Problem
    first: IntArray
    second: IntArray
    shares: FloatArray
    objective: float
    sense: Literal["max", "min"]
    gap: float | None = None
    prices: FloatArray | None = None
    details: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)

    def __post_init__(self) -> None:
        # Without this, each decision would keep all earlier ones alive.
        if self.problem.previous is not None:
            object.__setattr__(self, "problem", self.problem.without_previous())

    @classmethod
    def of_jobs(
        cls,
        policy: str,
        problem: Problem,
        shares: FloatArray,
        *,
        objective: float,
        sense: Literal["max", "min"] = "max",
        gap: float | None = None,
        prices: FloatArray | None = None,
        details: Mapping[str, Any] = _NOTHING,
    ) -> Allocation:
        """An allocation in which every job runs alone: one row of shares per job."""
        jobs = np.arange(len(problem))
        return cls(policy, problem, jobs, np.full_like(jobs, -1), shares, objective, sense, gap, prices, details)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the jobs, in order of arrival."""
        return self.problem.ids

    @property
    def types(self) -> tuple[str, ...]:
        """The accelerator types."""
        return self.problem.types

    @property
    def optimal(self) -> bool:
        """Whether the objective is proven to be within 1e-6 of the optimum."""
        return self.gap is not None and self.gap <= EXACT

    @cached_property
    def job_shares(self) -> FloatArray:
        """The fraction of the time that each job runs on each type, alone or in a pair."""
        total = np.zeros((len(self.ids), len(self.types)))
        np.add.at(total, self.first, self.shares)
        paired = self.second >= 0
        np.add.at(total, self.second[paired], self.shares[paired])
        return total

    @cached_property
    def throughputs(self) -> FloatArray:
        """The effective rate of each job: its rates, alone and in pairs, weighted by the time it gets at each."""
        alone = self.second < 0
        rates = np.zeros(len(self.ids))
        first = self.first[alone]
        np.add.at(rates, first, np.einsum("ij,ij->i", self.problem.rates[first], self.shares[alone]))
        if not alone.all():
            self._add_paired_rates(rates)
        return rates

    def _add_paired_rates(self, rates: FloatArray) -> None:
        pairs = self.problem.pairs
        assert pairs is not None, "an allocation can pair jobs only where the problem has pairs"
        paired = self.second >= 0
        first, second, shares = self.first[paired], self.second[paired], self.shares[paired]
        together = pairs.between(first, second, len(self.ids))
        np.add.at(rates, first, np.einsum("ij,ij->i", together[:, :, 0], shares))
        np.add.at(rates, second, np.einsum("ij,ij->i", together[:, :, 1], shares))

    @cached_property
    def used(self) -> FloatArray:
        """Workers of each type that are busy on average."""
        busy: FloatArray = self.problem.scale_factors[self.first] @ self.shares
        return busy

    @cached_property
    def bindings(self) -> tuple[Binding, ...]:
        """What keeps each job from running faster, in order of arrival."""
        problem = self.problem
        if not self.types:
            return (Binding("unrunnable"),) * len(self.ids)
        full = self.used >= problem.workers * (1 - EXACT)
        at_best = self.throughputs >= problem.fastest * (1 - EXACT)
        # A job gains from a type that is faster than what it has per unit of time, and from any while it is idle.
        busy = self.job_shares.sum(axis=1)
        pace = np.where(busy >= 1 - EXACT, self.throughputs, 0.0)
        gains = problem.rates > pace[:, None] * (1 + EXACT)
        free = (gains & ~full).any(axis=1)
        wanted = np.where(gains & full, problem.rates, 0.0).argmax(axis=1)
        kinds = np.select([~problem.can_run, at_best, free], ["unrunnable", "time", "objective"], "capacity")
        return tuple(
            Binding("capacity", self.types[column]) if kind == "capacity" else Binding(kind)
            for kind, column in zip(kinds.tolist(), wanted.tolist(), strict=True)
        )

    def to_dict(self) -> dict[str, Any]:
        """The result in the form that `fairway allocate` prints, less what is nothing beside a job's other shares."""
        rows = []
        counts = self.shares > _NEGLIGIBLE * self.job_shares.sum(axis=1)[self.first][:, None]
        for row in np.flatnonzero(counts.any(axis=1)).tolist():
            first, second = int(self.first[row]), int(self.second[row])
            jobs = [self.ids[first]] if second < 0 else [self.ids[first], self.ids[second]]
            given = {self.types[column]: float(self.shares[row, column]) for column in np.flatnonzero(counts[row])}
            rows.append({"jobs": jobs, "shares": given})
        return {"policy": self.policy, "objective": self.objective, "sense": self.sense, "allocation": rows}
