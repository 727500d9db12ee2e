"""Placers by name: `name[:option,...]`, as in `compass:no-adjust` or `compass:theta=2,fifo-eviction`.

An option is a field of the placer's class (`fairway.options`); a class of any module has `module:Class` for a name, and
installed packages may offer others (`fairway.parts`).
"""

from __future__ import annotations

import numpy as np

from fairway.parts import Parts
from fairway.place.placer import BatchPlacer, Placer
from fairway.place.placers import BATCH_PLACERS, PLACERS
from fairway.place.plan import Plan
from fairway.place.problem import PlacementProblem

PLACER_PARTS: Parts[Placer] = Parts("scheduler", "fairway.placers", Placer, PLACERS)
BATCH_PLACER_PARTS: Parts[BatchPlacer] = Parts("placer", "fairway.placers", BatchPlacer, BATCH_PLACERS)


def place(scheduler: str | Placer, problem: PlacementProblem, *, seed: int | None = None) -> Plan:
    """Plan the request of a problem with a scheduler, given as an object or by its name.

    `seed` decides between equals; it goes before the problem's own.
    """
    chosen = placer_of(scheduler)
    draws = np.random.default_rng(problem.seed if seed is None else seed)
    return chosen.plan(problem.request, problem.view, 0.0, draws)


def placer_of(given: str | Placer) -> Placer:
    """The placer that a name with options stands for: one that can place requests ahead."""
    return PLACER_PARTS.of(given)


def batch_placer_of(given: str | BatchPlacer) -> BatchPlacer:
    """The placer that a name with options stands for."""
    return BATCH_PLACER_PARTS.of(given)
