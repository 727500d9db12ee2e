"""Hash, the baseline: each task goes to some worker, whatever is known about any of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fairway.place.batch import NOWHERE, Batch, Room
from fairway.place.kernels import spread_task
from fairway.place.memory import MemoryPolicy
from fairway.place.placer import COMPAT_RULES, WorkerRules
from fairway.place.plan import Draws, Plan, Request
from fairway.place.planner import KEY_MASK
from fairway.place.spread import spread_plan, spread_worker
from fairway.place.state import ABSENT, View


@dataclass(frozen=True, slots=True)
class Hash:
    """Spread tasks evenly over the workers that can run them, by the hash of request and stage.

    `compat` draws each worker instead, as the authors' simulator does.
    """

    name: ClassVar[str] = "hash"
    prefetch: bool = False
    no_batching: bool = False
    compat: bool = False

    @property
    def rules(self) -> WorkerRules:
        """Memory as under Compass, but models come when they are needed unless `prefetch` says otherwise."""
        if self.compat:
            return COMPAT_RULES
        memory = MemoryPolicy.looking_ahead(prefetches=self.prefetch)
        return WorkerRules(memory, keeps_plans=True, batches=not self.no_batching)

    def plan(self, request: Request, view: View, now: float, draws: Draws) -> Plan:
        """Some worker for each task, and when it is expected to finish there."""
        return spread_plan(request, view, now, draws if self.compat else None)

    def next_worker(
        self,
        request: Request,
        stage: int,
        planned: int,
        view: View,
        now: float,  # noqa: ARG002
        draws: Draws,  # noqa: ARG002
        *,
        gathered: bool = False,  # noqa: ARG002
    ) -> int:
        """The planned worker, as long as it is there."""
        if planned == view.me or view.queued[planned] != ABSENT:
            return planned
        return spread_worker(request, stage, view)

    def place_batch(self, batch: Batch, room: Room, view: View, now: float, draws: Draws) -> int:  # noqa: ARG002
        """The worker that the hash of the oldest request and the stage falls on, if it has room; else none."""
        seconds = batch.graph.seconds[batch.stage]
        worker = spread_task(batch.key & KEY_MASK, batch.stage, -1.0, seconds, view.queued)
        if worker < 0 or room.cpu[worker] < batch.cpu or room.gpu[worker] < batch.gpu:
            return NOWHERE
        return worker
