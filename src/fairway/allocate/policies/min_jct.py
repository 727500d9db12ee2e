"""min-jct: the shortest mean completion time that is still fair.

Decides from the prices of the accelerators at the work that keeps coming (`kernels.fluid`). A step of a job costs the
others kappa seconds of completion time if it waits; so running job m on type j is worth T_mj kappa_m per second, times
(kappa_m r_m)^-0.1 for its r_m remaining steps, by which jobs that are soon done come first among equals. The jobs that
run, and which of them share, are the assignment of whole gangs with the highest sum of values (`kernels.assignment`). A
job that is behind what an equal share would have given it goes first until it has caught up. Where there are teams, it
is the share that its team gives it of what the tree of teams gives the team (`kernels.teams`): teams divide the cluster
as under `hierarchical`, and whom a team's jobs are preferred to otherwise is a matter of prices.

It is in no paper. Least attained service lets long jobs keep short ones waiting; shortest job first puts a job on a
type that gains little from it, and starves long ones. What counts is what a job's work costs the cluster.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

import numpy as np

from fairway.allocate.allocation import PRICED_IN_TIME, Allocation
from fairway.allocate.arrays import BoolArray, FloatArray, IntArray
from fairway.allocate.demand import Demand
from fairway.allocate.kernels.assignment import choose_jobs
from fairway.allocate.kernels.classes import Classes
from fairway.allocate.kernels.fluid import FluidPrices, fluid_prices
from fairway.allocate.kernels.teams import Teams, team_features
from fairway.allocate.policy import Policy
from fairway.allocate.problem import Problem

_FIRST = 1e3
"""How many times as much the steps of a job count that is behind."""

_SHORT = 60.0
"""Seconds of work below which it makes no difference how little a job has left, or has done."""

_STAY = 1e-3
_TURN = 1800.0


@dataclass(frozen=True, slots=True)
class MinJct(Policy):
    """Maximise sum_m w_m T_m kappa_m (kappa_m r_m)^-exponent over the jobs that run, those behind `floor` first."""

    name: ClassVar[str] = "min-jct"
    whole_jobs: ClassVar[bool] = True
    by_progress: ClassVar[bool] = True
    space_sharing: bool = False
    floor: float = 0.9
    exponent: float = 0.1
    edge: float = 0.9

    def allocate(self, problem: Problem) -> Allocation:
        """Choose the jobs that run."""
        prices = (
            None
            if problem.demand is None
            else _prices(problem.demand, tuple(problem.workers), self.space_sharing, self.edge)
        )
        kappa = self._steps(problem, prices)
        value = problem.weights * kappa * self._haste(problem, kappa)
        value[self._behind(problem)] *= _FIRST
        value[~problem.can_run] = 0.0
        kind, table = self._pairs(problem)
        on, beside = problem.running
        stay = 1.0 + max(_STAY, problem.restart_seconds / _TURN)
        sizes, workers = problem.in_whole_numbers()
        to, mate, worth = choose_jobs(
            value, problem.rates, sizes, kind, table, workers, on, beside, stay,
        )  # fmt: skip
        return self._allocation(problem, to, mate, worth, prices, kappa)

    def _steps(self, problem: Problem, prices: FluidPrices | None) -> FloatArray:
        """Kappa of each job: its class's, at the job's own rates, or what the prices of the types make it."""
        fastest = np.where(problem.can_run, problem.fastest, 1.0)
        if prices is None:
            return 1.0 / fastest
        cost = 1.0 + problem.scale_factors[:, None] * prices.workers
        kappa = np.divide(cost, problem.rates, out=np.full_like(problem.rates, np.inf), where=problem.rates > 0).min(
            axis=1, initial=np.inf
        )
        kappa = np.where(np.isfinite(kappa), kappa, 0.0)
        demand, member = problem.demand, problem.classes
        if demand is not None and member is not None:
            known = np.flatnonzero((member >= 0) & (member < len(demand.work)))  # a class may be too new to be priced
            group = member[known]
            of_class = prices.steps[group] * demand.rates.max(axis=1)[group] / fastest[known]
            kappa[known] = np.where(np.isfinite(of_class), of_class, kappa[known])
        return kappa

    def _haste(self, problem: Problem, kappa: FloatArray) -> FloatArray:
        unknown = ~(problem.steps_left > 0)  # it did not say, or has done more by now than it said
        likely = problem.steps_done if problem.likely is None else problem.likely
        likely = np.where(np.isnan(likely), problem.steps_done, likely)
        steps = np.where(unknown, likely, problem.steps_left)
        haste: FloatArray = np.maximum(kappa * steps, _SHORT) ** -self.exponent
        return haste

    def _behind(self, problem: Problem) -> BoolArray:
        """Jobs behind the floor, and those that on an equal share would miss a deadline that they can still keep."""
        behind: BoolArray = problem.isolated_elapsed < self.floor * due_shares(problem) * problem.elapsed
        asks = problem.can_run & ~np.isnan(problem.slo_seconds) & ~np.isnan(problem.steps_left)
        left, ahead = problem.steps_left[asks], problem.slo_seconds[asks]
        late, hopeless = left > ahead * problem.isolated_throughputs[asks], left > ahead * problem.fastest[asks]
        behind[asks] |= late & ~hopeless
        return behind

    def _pairs(self, problem: Problem) -> tuple[IntArray, FloatArray]:
        if not self.space_sharing or problem.pairs is None:
            return np.zeros(len(problem), np.int64), np.zeros((0, 0, len(problem.types), 2))
        return problem.pairs.by_kind(len(problem))

    def _allocation(
        self,
        problem: Problem,
        to: IntArray,
        mate: IntArray,
        worth: float,
        prices: FluidPrices | None,
        kappa: FloatArray,
    ) -> Allocation:
        jobs = np.arange(len(problem))
        host = np.flatnonzero(mate > jobs)
        first = np.concatenate([jobs, host])
        second = np.concatenate([np.full(len(jobs), -1), mate[host]])
        columns = np.concatenate([np.where(mate >= 0, -1, to), to[host]])
        shares = (columns[:, None] == np.arange(len(problem.types))).astype(float)
        details = {} if prices is None else {"load": prices.load, PRICED_IN_TIME: kappa.tolist()}
        return Allocation(
            self.name, problem, first, second, shares, worth, "max",
            prices=None if prices is None else prices.workers, details=details,
        )  # fmt: skip


def due_shares(problem: Problem) -> FloatArray:
    """What each job is due of the cluster, in equal shares at its mean rate: one for all where there are no teams.

    A job can use s workers at most, so that a team with few jobs leaves the rest of its part to the others.
    """
    if not (problem.team[problem.can_run] >= 0).any():
        return np.ones(len(problem))
    classes = Classes.of(problem, team_features(problem), space_sharing=False)
    sizes, workers, jobs = problem.scale_factors, problem.workers.sum(), np.count_nonzero(problem.can_run)
    part = classes.expand(Teams(classes, flat=False).divided(1.0, classes.of_jobs(sizes / workers)))
    shares: FloatArray = part / sizes * np.maximum(jobs * sizes, workers)
    return shares


@lru_cache(maxsize=8)
def _prices(demand: Demand, workers: tuple[float, ...], sharing: bool, edge: float) -> FluidPrices | None:
    """The prices, worked out once for as long as what comes and the workers stay the same."""
    return fluid_prices(demand if sharing else replace(demand, pairs=None), np.array(workers), at_least=edge)
