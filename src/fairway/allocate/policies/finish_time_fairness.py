"""Finish-time fairness: no job should finish much later than on an equal share of the cluster (Themis; Gavel §4.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fairway.allocate.allocation import Allocation
from fairway.allocate.arrays import FloatArray
from fairway.allocate.kernels.classes import Classes
from fairway.allocate.kernels.levels import raise_level
from fairway.allocate.policies.common import nothing_to_do, warm_prices
from fairway.allocate.policy import Policy
from fairway.allocate.problem import Problem
from fairway.compiled import compiled


@dataclass(frozen=True, slots=True)
class FinishTimeFairness(Policy):
    """Minimise max_m rho_m, rho_m = (elapsed_m + steps_m / rate_m) / (isolated_elapsed_m + steps_m / isolated_m).

    isolated_m is the rate on 1/n of every type. As in the original, weights count only with space sharing, where rate_m
    is divided by the weight; `weighted` makes them count always. `reference` names the type whose rate stands for all
    when `agnostic`; by default that is the mean over the workers. What is left is spent on the most work, counted in
    what each job needs for that rho; with `bare`, it is left over.
    """

    name: ClassVar[str] = "finish-time-fairness"
    agnostic: bool = False
    space_sharing: bool = False
    bare: bool = False
    weighted: bool = False
    reference: str | None = None

    @property
    def efficient(self) -> bool:
        """Whether nothing is left over that a job could use."""
        return not self.bare

    @property
    def by_work(self) -> bool:
        """Whether jobs are to have its rates, whatever the pairs: a level says no more than that."""
        return self.space_sharing and not self.agnostic

    def allocate(self, problem: Problem) -> Allocation:
        """Decide the shares of one problem."""
        steps = problem.needs_steps(self.name)
        view = problem.agnostic(self.reference) if self.agnostic else problem
        work = steps * view.weights if self.weighted or self.space_sharing else steps
        with np.errstate(divide="ignore", invalid="ignore"):
            alone = view.isolated_elapsed + np.where(steps > 0, steps / view.isolated_throughputs, 0.0)
        # Jobs with nothing left to do demand nothing, whatever their past.
        alone, elapsed = np.where(steps > 0, alone, 1.0), np.where(steps > 0, view.elapsed, -np.inf)
        classes = Classes.of(view, [work, elapsed, alone], space_sharing=self.space_sharing)
        curve = _FinishTimes(classes.of_jobs(work), classes.of_jobs(elapsed), classes.of_jobs(alone))
        if not curve.work.any():
            return nothing_to_do(self.name, problem, sense="min")
        solution = raise_level(classes, curve, warm_prices(problem), bare=self.bare)
        ratio, bound = -curve.reached(solution.rates(classes)), -solution.bound
        return solution.allocation(
            self.name, problem, classes, objective=ratio, sense="min", gap=max(ratio - bound, 0.0) / bound
        )


@dataclass(frozen=True, slots=True)
class _FinishTimes:
    """The rate that keeps a job's rho at -level: work / (rho * alone - elapsed), convex and increasing in the level."""

    work: FloatArray
    elapsed: FloatArray
    alone: FloatArray

    def at(self, level: float) -> tuple[FloatArray, FloatArray]:
        demands: tuple[FloatArray, FloatArray] = _demands(self.work, self.elapsed, self.alone, level)
        return demands

    def reached(self, rates: FloatArray) -> float:
        busy = self.work > 0
        return -float(((self.elapsed[busy] + self.work[busy] / rates[busy]) / self.alone[busy]).max())


@compiled(releases_gil=True, divides_as_numpy=True)
def _demands(work: FloatArray, elapsed: FloatArray, alone: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """The rate of each job at this level, and by how much it rises with it: one pass, as a decision asks for dozens."""
    demand, rise = np.empty_like(work), np.empty_like(work)
    for i in range(len(work)):
        per_time = 1.0 / (-level * alone[i] - elapsed[i])
        demand[i] = work[i] * per_time
        rise[i] = demand[i] * alone[i] * per_time
    return demand, rise
