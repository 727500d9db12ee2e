"""What runs that share an accelerator under MPS cost each other: how long each takes beside the others, event by event.

MPS holds a run to its part of the threads, but not of the memory's bandwidth and the caches. While others have parts
p of the accelerator, a run is slower:

    seconds that a second of its profile takes  =  1 + slowdown · Σ p of the others

So `slowdown` is what a run costs beside neighbours that have all of the rest. Where two models were measured beside
each other, that counts in place of slowdown · p. Under MIG nothing is shared, and there is none. Whenever a run begins
or ends on an accelerator, what is left of the others there is worked out anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from fairway.engine.serving.messages import NONE_FAILED, TaskDone
from fairway.sim.loop import NORMAL

if TYPE_CHECKING:
    from fairway.sim.serving import World

_WORLD = -2

Cost = Callable[[str | None, str | None, float], float]

Ended = Callable[[float], float]
"""Gets when a run ended, and says for how long its stage ran."""


@dataclass(slots=True)
class _Run:
    left: float
    model: str | None
    part: float
    since: float
    pace: float
    ended: Ended

    @property
    def end(self) -> float:
        return self.since + self.left * self.pace


class Interference:
    """The runs on every worker, and how far each is.

    `cost` is by which part one takes longer beside another one, by their models and the part of the other.
    """

    def __init__(self, world: World, cost: Cost) -> None:
        self._world, self._cost = world, cost
        self._beside: dict[int, dict[int, _Run]] = {}
        self._changes: dict[int, int] = {}

    def begins(
        self, worker: int, run: int, moment: float, seconds: float, model: str | None, part: float, ended: Ended
    ) -> None:
        """From this moment on, a run has a part of a worker's accelerator, and takes so long if it is alone there."""
        self._world.at(moment, _WORLD, partial(self._join, worker, run, seconds, model, part, ended))

    def _join(self, worker: int, run: int, seconds: float, model: str | None, part: float, ended: Ended) -> None:
        beside = self._beside.setdefault(worker, {})
        beside[run] = _Run(seconds, model, part, self._world.now, 1.0, ended)
        self._pace(worker)

    def _pace(self, worker: int) -> None:
        """Something has changed on a worker: say anew how fast its runs go, and when the first of them ends."""
        beside, now = self._beside[worker], self._world.now
        self._changes[worker] = change = self._changes.get(worker, 0) + 1
        if not beside:
            return
        for run in beside.values():
            run.left = max(run.left - (now - run.since) / run.pace, 0.0)
            run.since = now
            run.pace = 1.0 + sum(
                self._cost(run.model, other.model, other.part) for other in beside.values() if other is not run
            )
        first = min(beside, key=lambda number: beside[number].end)
        self._world.at(beside[first].end, _WORLD, partial(self._end, worker, first, change), NORMAL)

    def _end(self, worker: int, run: int, change: int) -> None:
        if change != self._changes[worker]:
            return  # another one has begun or ended meanwhile
        ended = self._beside[worker].pop(run)
        seconds = ended.ended(self._world.now)
        self._pace(worker)
        self._world.tell(worker, TaskDone(run, NONE_FAILED, seconds))
