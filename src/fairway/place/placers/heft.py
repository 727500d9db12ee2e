"""HEFT, the baseline: the same search as Compass, for workers that it believes idle, with every model at hand.

By decreasing upward rank, each task goes where it would finish first (Topcuoglu et al. 2002, without insertion into
gaps). It knows run times and transfers, but neither loads nor memories, and its plan stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fairway.place.adjust import adjusted_worker, first_to_end
from fairway.place.batch import Batch, Room
from fairway.place.memory import MemoryPolicy
from fairway.place.placer import COMPAT_RULES, WorkerRules
from fairway.place.plan import Draws, Plan, Request
from fairway.place.planner import plan_request
from fairway.place.state import View


@dataclass(frozen=True, slots=True)
class Heft:
    """Plan each task where it would finish first if all workers were idle and held every model.

    With `load_aware`, it starts from the loads, as Compass does.
    """

    name: ClassVar[str] = "heft"
    load_aware: bool = False
    prefetch: bool = False
    no_batching: bool = False
    compat: bool = False

    @property
    def rules(self) -> WorkerRules:
        """Memory as under Compass, but models come when they are needed unless `prefetch` says otherwise."""
        if self.compat:
            return COMPAT_RULES
        return WorkerRules(MemoryPolicy.looking_ahead(prefetches=self.prefetch), batches=not self.no_batching)

    def plan(self, request: Request, view: View, now: float, draws: Draws) -> Plan:
        """Each task, by decreasing rank, where it would finish first."""
        draw = 0.0 if self.compat else draws.random()
        return plan_request(
            request, view, now, draw, counts_load=self.load_aware, counts_cache=False, compat=self.compat
        )

    def next_worker(
        self,
        request: Request,
        stage: int,
        planned: int,
        view: View,
        now: float,
        draws: Draws,
        *,
        gathered: bool = False,
    ) -> int:
        """The planned worker, as long as it is there."""
        return adjusted_worker(
            request, stage, planned, view, now, draws, theta=None, gathered=gathered, counts_cache=False
        )

    def place_batch(self, batch: Batch, room: Room, view: View, now: float, draws: Draws) -> int:
        """Of the workers with room, the one on which the batch would end first if it held every model."""
        return first_to_end(batch, room, view, now, draws, counts_load=self.load_aware, counts_cache=False)
