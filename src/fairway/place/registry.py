"""Schedulers by name: `name[:option,...]`, as in `compass:no-adjust` or `compass:theta=2,fifo-eviction`.

An option is a field of the scheduler's class (`fairway.options`).
"""

from __future__ import annotations

import numpy as np

from fairway.options import named
from fairway.place.plan import Plan
from fairway.place.problem import PlacementProblem
from fairway.place.scheduler import Scheduler
from fairway.place.schedulers import SCHEDULERS


def place(scheduler: str | Scheduler, problem: PlacementProblem, *, seed: int | None = None) -> Plan:
    """Plan the request of a problem with a scheduler, given as an object or by its name.

    `seed` decides between equals; it goes before the problem's own.
    """
    chosen = scheduler_of(scheduler) if isinstance(scheduler, str) else scheduler
    draws = np.random.default_rng(problem.seed if seed is None else seed)
    return chosen.plan(problem.request, problem.view, 0.0, draws)


def scheduler_of(text: str) -> Scheduler:
    """The scheduler that a name with options stands for."""
    return named("scheduler", text, SCHEDULERS)
