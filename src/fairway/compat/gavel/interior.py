"""The optimising policies as the original implementation answers them: the same optimum, an answer from its middle.

The objectives are those of the policies themselves (Gavel §4); what differs is which of the best allocations is taken
(`interior`), and how some of them are looked for: the makespan by a search that stops within 5 %, whatever is possible
then. What the original's heterogeneity-agnostic variants see is different too: a rate of 1 everywhere, or the rate on
one reference type, even where a job cannot run.

The shares of max-min fairness also have the one rounding error of the original's solver that its rounds can see
(`_first_apart`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random
from typing import ClassVar

import numpy as np

from fairway.allocate.allocation import Allocation
from fairway.allocate.arrays import FloatArray
from fairway.allocate.kernels.interior.alone import highest_level, highest_sum, middle
from fairway.allocate.kernels.interior.pairs import highest_level_with_pairs
from fairway.allocate.pairs import Pairs
from fairway.allocate.policies.common import nothing_to_do
from fairway.allocate.policies.finish_time_fairness import FinishTimeFairness
from fairway.allocate.policies.makespan import Makespan
from fairway.allocate.policies.water_filling import WaterFilling
from fairway.allocate.policy import Policy
from fairway.allocate.problem import Problem
from fairway.errors import InputError

ROUNDING = 2e-11
"""The part by which the original's solver typically misses a share of the first job."""


@dataclass(frozen=True, slots=True)
class InteriorMaxMinFairness(Policy):
    """Maximise the lowest level, s_m * rate_m / (w_m * proportional_m); all rates are 1 when `agnostic`."""

    name: ClassVar[str] = "max-min-fairness"
    agnostic: bool = False
    space_sharing: bool = False

    def allocate(self, problem: Problem) -> Allocation:
        """Decide the shares of one problem."""
        rates = np.ones_like(problem.throughputs) if self.agnostic else problem.throughputs
        per_level = problem.weights * _proportional(problem, rates) / problem.scale_factors
        if self.space_sharing and problem.pairs is not None and len(problem):
            return _highest_level_with_pairs(self.name, problem, rates, per_level)
        return _first_apart(_highest_level(self.name, problem, rates, per_level))


@dataclass(frozen=True, slots=True)
class InteriorWaterFilling(Policy):
    """The levels of water filling, from the middle of all allocations that reach them."""

    name: ClassVar[str] = "water-filling"
    agnostic: bool = False

    def allocate(self, problem: Problem) -> Allocation:
        """Decide the shares of one problem."""
        rates = np.ones_like(problem.throughputs) if self.agnostic else problem.throughputs
        exact = WaterFilling().allocate(replace(problem, throughputs=rates, pairs=None))
        reached = _highest_level(self.name, problem, rates, exact.throughputs)
        return replace(reached, objective=exact.objective, prices=exact.prices)


@dataclass(frozen=True, slots=True)
class InteriorMaxThroughput(Policy):
    """Maximise sum_m rate_m."""

    name: ClassVar[str] = "max-throughput"

    def allocate(self, problem: Problem) -> Allocation:
        """Decide the shares of one problem."""
        if not (len(problem) and problem.workers.any()):
            return nothing_to_do(self.name, problem)
        open_types = problem.workers > 0
        shares = np.zeros_like(problem.throughputs)
        gains = np.ascontiguousarray(problem.throughputs[:, open_types])
        shares[:, open_types] = highest_sum(gains, problem.scale_factors, problem.workers[open_types])
        total = float((problem.throughputs * shares).sum())
        return Allocation.of_jobs(self.name, problem, shares, objective=total)


@dataclass(frozen=True, slots=True)
class InteriorMakespan(Policy):
    """Any shares with which all jobs are done within a time that is at most 5 % above the least."""

    name: ClassVar[str] = "makespan"
    agnostic: bool = False
    reference: str = "v100"

    def allocate(self, problem: Problem) -> Allocation:
        """Decide the shares of one problem."""
        steps = problem.needs_steps(self.name)
        rates = _reference_rates(problem, self.reference) if self.agnostic else problem.throughputs
        exact = Makespan(bare=True).allocate(replace(problem, throughputs=rates, pairs=None))
        if not exact.objective > 0:
            return nothing_to_do(self.name, problem, sense="min")
        seconds = last_feasible(exact.objective)
        jobs, types = rates.any(axis=1), problem.workers > 0
        found = middle(
            np.ascontiguousarray(rates[np.ix_(jobs, types)]),
            steps[jobs] / seconds,
            problem.scale_factors[jobs],
            problem.workers[types],
        )
        if found is None:  # next to nothing between what is possible and what is asked for
            return exact
        shares = np.zeros_like(rates)
        shares[np.ix_(jobs, types)] = found
        return Allocation.of_jobs(self.name, problem, shares, objective=seconds, sense="min", prices=exact.prices)


def last_feasible(least: float) -> float:
    """The last time that the original's bisection finds to be possible, if `least` is the least one."""
    low, high, limit = 100.0, 1e6, 1e6
    found = None
    while found is None:
        while 1.05 * low < high:
            middle_of_both = (low + high) / 2.0
            if middle_of_both >= least:
                high = found = middle_of_both
            else:
                low = middle_of_both
        low, high, limit = limit, 10.0 * limit, 10.0 * limit
    return found


@dataclass(slots=True)
class InteriorFinishTimeFairness(Policy):
    """Minimise max_m rho_m = (elapsed_m + steps_m / rate_m) / (isolated_elapsed_m + steps_m / isolated_m).

    As in the original, isolated_elapsed is counted here from the first decision about a job on: the steps done since
    the last decision, at the isolated rate of then. An object is therefore good for one run.
    """

    name: ClassVar[str] = "finish-time-fairness"
    agnostic: bool = False
    reference: str = "v100"
    _counted: dict[str, tuple[float, float, float]] = field(default_factory=dict, init=False, repr=False)

    def allocate(self, problem: Problem) -> Allocation:
        """Decide the shares of one problem."""
        steps = problem.needs_steps(self.name)
        rates = _reference_rates(problem, self.reference) if self.agnostic else problem.throughputs
        isolated = _isolated(problem, rates)
        isolated_elapsed = self._count(problem, steps, isolated)
        view = replace(problem, throughputs=rates, isolated_elapsed=isolated_elapsed, pairs=None)
        exact = FinishTimeFairness(bare=True).allocate(view)
        if not exact.objective > 0:
            return nothing_to_do(self.name, problem, sense="min")
        busy = (steps > 0) & (isolated > 0)
        alone = isolated_elapsed[busy] + steps[busy] / isolated[busy]
        demand = np.zeros(len(problem))
        demand[busy] = steps[busy] / (exact.objective * alone - problem.elapsed[busy])
        reached = _highest_level(self.name, problem, rates, demand)
        return replace(reached, objective=exact.objective, sense="min", prices=exact.prices)

    def _count(self, problem: Problem, steps: FloatArray, isolated: FloatArray) -> FloatArray:
        elapsed = problem.isolated_elapsed.copy()  # where a job is new
        counted = {}
        for i, (name, left, rate) in enumerate(zip(problem.ids, steps.tolist(), isolated.tolist(), strict=True)):
            before = self._counted.get(name)
            if before is not None:
                seconds, steps_before, rate_before = before
                elapsed[i] = seconds + (steps_before - left) / rate_before if rate_before > 0 else seconds
            counted[name] = (float(elapsed[i]), left, rate)
        self._counted = counted
        return elapsed


def _highest_level(policy: str, problem: Problem, rates: FloatArray, per_level: FloatArray) -> Allocation:
    """The interior shares at the highest level; jobs that demand nothing or can run nowhere get none."""
    asks = per_level > 0
    if not (asks.any() and problem.workers.any()):
        return nothing_to_do(policy, problem)
    if asks.all() and problem.workers.all():
        shares, level = highest_level(rates, per_level, problem.scale_factors, problem.workers)
    else:
        types = problem.workers > 0
        found, level = highest_level(
            np.ascontiguousarray(rates[np.ix_(asks, types)]),
            per_level[asks],
            problem.scale_factors[asks],
            problem.workers[types],
        )
        shares = np.zeros_like(rates)
        shares[np.ix_(asks, types)] = found
    return Allocation.of_jobs(policy, problem, shares, objective=level)


def _first_apart(answer: Allocation) -> Allocation:
    """The same shares, but for errors in those of the first job: a bit more on one type, a bit less on another.

    Equal jobs have shares that are equal to the last bit, here as in the answers of the original's solver; only there,
    the first one does not. Its rounds let equals go by what they have missed, but for a bit more or less they put one
    before or behind all of them. The first job is the one that has been there longest, under a heavy load a large gang
    that has waited for months, and how much longer it waits hangs on that. The signs of the errors follow no rule that
    we could see, so that they are drawn.
    """
    problem = answer.problem
    if not len(problem):
        return answer
    draws = Random(f"{problem.seed} {len(problem)} {problem.ids[0]} {problem.ids[-1]}")
    errors = np.array([draws.gauss(0.0, 1.0) for _ in problem.types])
    shares = answer.shares.copy()
    shares[0] = np.minimum(shares[0] * (1.0 + ROUNDING * (errors - errors.mean())), 1.0)
    return replace(answer, shares=shares)


def _highest_level_with_pairs(policy: str, problem: Problem, rates: FloatArray, per_level: FloatArray) -> Allocation:
    pairs, types = problem.pairs, problem.workers > 0
    assert pairs is not None
    pairs = pairs.where(problem.scale_factors[pairs.first] == problem.scale_factors[pairs.second])
    open_pairs = Pairs(pairs.first, pairs.second, pairs.rates[:, types])
    found, level = highest_level_with_pairs(
        rates[:, types], per_level, problem.scale_factors, problem.workers[types], open_pairs
    )
    shares = np.zeros((len(found), len(types)))
    shares[:, types] = found
    jobs = np.arange(len(problem))
    first, second = np.concatenate([jobs, pairs.first]), np.concatenate([np.full_like(jobs, -1), pairs.second])
    return Allocation(policy, problem, first, second, shares, objective=level, sense="max")


def _proportional(problem: Problem, rates: FloatArray) -> FloatArray:
    """Rate on a full unit of time spread over the types like their counts; gangs need not fit, as in the original."""
    spread: FloatArray = rates @ (problem.workers / max(problem.workers.sum(), 1.0))
    return spread


def _isolated(problem: Problem, rates: FloatArray) -> FloatArray:
    """Rate on an equal share, N_j / n / s_i of each type and at most a full unit of time in all."""
    jobs = np.count_nonzero(rates.any(axis=1))
    asked = np.maximum(jobs * problem.scale_factors, max(problem.workers.sum(), 1.0))
    alone: FloatArray = (rates @ problem.workers) / asked
    return alone


def _reference_rates(problem: Problem, reference: str) -> FloatArray:
    """The rate on the reference type, for all types."""
    if reference not in problem.types:
        raise InputError(f"reference={reference}: no such accelerator type; known: {', '.join(problem.types)}")
    column = problem.throughputs[:, problem.types.index(reference)]
    return np.repeat(column[:, None], len(problem.types), axis=1)
