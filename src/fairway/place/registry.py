"""Placers by name: `name[:option,...]`, as in `compass:no-adjust` or `compass:theta=2,fifo-eviction`.

An option is a field of the placer's class (`fairway.options`).
"""

from __future__ import annotations

import numpy as np

from fairway.options import named
from fairway.place.placer import BatchPlacer, Placer
from fairway.place.placers import BATCH_PLACERS, PLACERS
from fairway.place.plan import Plan
from fairway.place.problem import PlacementProblem


def place(scheduler: str | Placer, problem: PlacementProblem, *, seed: int | None = None) -> Plan:
    """Plan the request of a problem with a scheduler, given as an object or by its name.

    `seed` decides between equals; it goes before the problem's own.
    """
    chosen = placer_of(scheduler) if isinstance(scheduler, str) else scheduler
    draws = np.random.default_rng(problem.seed if seed is None else seed)
    return chosen.plan(problem.request, problem.view, 0.0, draws)


def placer_of(text: str) -> Placer:
    """The placer that a name with options stands for: one that can place requests ahead."""
    return named("scheduler", text, PLACERS)


def batch_placer_of(text: str) -> BatchPlacer:
    """The placer that a name with options stands for."""
    return named("placer", text, BATCH_PLACERS)
