"""Fronts: of all ways to run some stages, those that nothing is both faster and cheaper than, with how each is chosen.

Time rises and cost falls along a front. Three steps build the front of any part of a graph from those of its stages:

    one after another   times add, costs add                          `in_series`
    side by side        the slower counts, costs add                  `in_parallel`
    one or another      whichever is better                           `either`

No step loses a plan that could be the cheapest within some time, so a front answers for every budget exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fairway.configure.arrays import FloatArray, IntArray
from fairway.configure.search.kernels import side_by_side, undominated

_NOT_TAKEN = -1


@dataclass(frozen=True, eq=False)
class Front:
    """Points in order of time. Point p combines point `points[i, p]` of each `parts[i]`; -1 leaves that part out.

    The front of one stage has no parts: `points[0, p]` is the number of its configuration.
    """

    seconds: FloatArray
    cost: FloatArray
    points: IntArray = field(repr=False)
    parts: tuple[Front, ...] = field(default=(), repr=False)
    stage: int = -1

    def __len__(self) -> int:
        return len(self.seconds)

    def plan(self, point: int) -> dict[int, int]:
        """The number of the configuration of each stage at a point."""
        if not self.parts:
            return {self.stage: int(self.points[0, point])} if self.stage >= 0 else {}
        plan: dict[int, int] = {}
        for part, index in zip(self.parts, self.points[:, point].tolist(), strict=True):
            if index != _NOT_TAKEN:
                plan.update(part.plan(index))
        return plan

    def point(self, number: int) -> Front:
        """One point as a front of its own."""
        return Front(
            self.seconds[number : number + 1],
            self.cost[number : number + 1],
            np.full((1, 1), number, np.int64),
            (self,),
        )


def nothing(seconds: float = 0.0) -> Front:
    """Takes some time and costs nothing: no stage at all, or waiting."""
    return Front(np.array([seconds]), np.zeros(1), np.zeros((1, 1), np.int64))


def of_stage(stage: int, seconds: FloatArray, cost: FloatArray, numbers: IntArray) -> Front:
    """The front of one stage, from the configurations with these numbers."""
    kept = undominated(cost, np.lexsort((cost, seconds)))
    return Front(seconds[kept], cost[kept], numbers[kept].reshape(1, -1), (), stage)


def in_series(first: Front, second: Front) -> Front:
    """One after the other."""
    seconds = np.add.outer(first.seconds, second.seconds).ravel()
    cost = np.add.outer(first.cost, second.cost).ravel()
    kept = undominated(cost, np.lexsort((cost, seconds)))
    points = np.stack(np.divmod(kept, max(1, len(second))))
    return Front(seconds[kept], cost[kept], points, (first, second))


def in_parallel(first: Front, second: Front) -> Front:
    """Side by side, from the same time on."""
    seconds, cost, *points = side_by_side(first.seconds, first.cost, second.seconds, second.cost)
    return Front(seconds, cost, np.stack(points), (first, second))


def either(fronts: Sequence[Front]) -> Front:
    """One of several ways."""
    if len(fronts) == 1:
        return fronts[0]
    seconds, cost = (np.concatenate([getattr(front, name) for front in fronts]) for name in ("seconds", "cost"))
    kept = undominated(cost, np.lexsort((cost, seconds)))
    begins = np.cumsum([0, *(len(front) for front in fronts)])
    of = np.searchsorted(begins, kept, side="right") - 1
    points = np.full((len(fronts), len(kept)), _NOT_TAKEN, np.int64)
    points[of, np.arange(len(kept))] = kept - begins[of]
    return Front(seconds[kept], cost[kept], points, tuple(fronts))
