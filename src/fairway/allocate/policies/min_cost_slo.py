"""The most work for the money, with every deadline kept (Gavel §4.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fairway.allocate.allocation import Allocation
from fairway.allocate.arrays import BoolArray, FloatArray
from fairway.allocate.kernels.classes import Classes
from fairway.allocate.kernels.solution import Solution
from fairway.allocate.kernels.sums import Sums
from fairway.allocate.policies.common import nothing_to_do
from fairway.allocate.policy import Policy
from fairway.allocate.problem import Problem


@dataclass(frozen=True, slots=True)
class MinCostSlo(Policy):
    """Maximise steps per dollar as `min-cost` does, subject to rate_m >= steps_m / slo_m for every job with a deadline.

    A deadline that has passed (slo_seconds <= 0) asks for nothing. If the others cannot all be kept, all of them are
    dropped, as in the original; with `best_effort`, they are tried in order of deadline and only those that do not fit
    beside the earlier ones are dropped. `details["slos"]` says which were kept, dropped and missed.
    """

    name: ClassVar[str] = "min-cost-slo"
    by_cost: ClassVar[bool] = True
    agnostic: bool = False
    space_sharing: bool = False
    ratio: bool = False
    best_effort: bool = False

    def allocate(self, problem: Problem) -> Allocation:
        """Decide the shares of one problem."""
        view = problem.agnostic() if self.agnostic else problem
        has_deadline = ~np.isnan(problem.slo_seconds)
        missed = has_deadline & (problem.slo_seconds <= 0)
        asks = has_deadline & ~missed & problem.can_run
        if asks.any():
            problem.needs_steps(self.name)
        needed = np.zeros(len(problem))
        needed[asks] = problem.steps_left[asks] / problem.slo_seconds[asks]
        deadline = np.where(asks, problem.slo_seconds, np.inf)
        classes = Classes.of(view, [needed, deadline], space_sharing=self.space_sharing)
        if not len(classes):
            return nothing_to_do(self.name, problem)
        sums = Sums(classes, dollars_per_hour=view.dollars_or_one, ratio=self.ratio)
        solution, kept = self._keep(sums, classes.of_jobs(needed), classes.of_jobs(deadline))
        is_kept = np.zeros(len(problem), dtype=bool)
        is_kept[problem.can_run] = kept[classes.member[problem.can_run]]
        missed |= has_deadline & ~problem.can_run
        slos = {
            "kept": _names(problem, asks & is_kept),
            "dropped": _names(problem, asks & ~is_kept),
            "missed": _names(problem, missed),
        }
        return solution.allocation(self.name, problem, classes, objective=solution.value, details={"slos": slos})

    def _keep(self, sums: Sums, needed: FloatArray, deadline: FloatArray) -> tuple[Solution, BoolArray]:
        """The best solution with as many deadlines as the options ask for, and which classes have theirs kept."""
        everyone = np.isfinite(deadline)
        solution = sums.maximise(needed)
        if solution is not None:
            return solution, everyone
        kept = np.zeros(len(needed), dtype=bool)
        if self.best_effort:
            for position in np.argsort(deadline, kind="stable")[: np.count_nonzero(everyone)]:
                kept[position] = True
                if sums.maximise(np.where(kept, needed, 0.0)) is None:
                    kept[position] = False
        solution = sums.maximise(np.where(kept, needed, 0.0))
        assert solution is not None, "what was kept so far has been solved before"
        return solution, kept


def _names(problem: Problem, which: BoolArray) -> list[str]:
    return [problem.ids[position] for position in np.flatnonzero(which)]
