"""What several policies need besides a solver."""

from __future__ import annotations

from typing import Literal

import numpy as np

from fairway.allocate.allocation import Allocation
from fairway.allocate.arrays import FloatArray
from fairway.allocate.kernels.classes import Classes
from fairway.allocate.kernels.sums import Sums
from fairway.allocate.problem import Problem


def nothing_to_do(policy: str, problem: Problem, sense: Literal["max", "min"] = "max") -> Allocation:
    """The answer where no job can run or none has anything left to do: no time for anyone, objective 0."""
    none = np.zeros_like(problem.workers)
    return Allocation.of_jobs(
        policy, problem, np.zeros((len(problem), len(none))), objective=0.0, sense=sense, gap=0.0, prices=none
    )


def warm_prices(problem: Problem) -> FloatArray | None:
    """The prices of the previous decision, where the search for the new ones starts."""
    previous = problem.previous
    return previous.prices if previous is not None and previous.types == problem.types else None


def allocate_by_sum(
    policy: str,
    problem: Problem,
    view: Problem,
    *,
    space_sharing: bool,
    per_step: FloatArray | None = None,
    dollars: FloatArray | None = None,
    ratio: bool = False,
) -> Allocation:
    """Maximise the sum of all rates of the problem as the policy views it, with nothing that must be kept."""
    features = [] if per_step is None else [per_step]
    classes = Classes.of(view, features, space_sharing=space_sharing)
    if not len(classes):
        return nothing_to_do(policy, problem)
    worth = None if per_step is None else classes.of_jobs(per_step)
    solution = Sums(classes, per_step=worth, dollars_per_hour=dollars, ratio=ratio).maximise()
    assert solution is not None, "doing nothing keeps every minimum of 0"
    return solution.allocation(policy, problem, classes, objective=solution.value)
