"""JIT, the baseline: no plan but a default, and each task placed when its input is ready.

The default is by hash. Unless the default worker is idle, a task goes where it would end first, loads and memories
considered: Compass's adjustment with a threshold of 0. Tasks with several inputs have them gathered first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fairway.place.adjust import adjusted_worker, first_to_end
from fairway.place.batch import Batch, Room
from fairway.place.memory import MemoryPolicy
from fairway.place.placer import WorkerRules
from fairway.place.plan import Draws, Plan, Request
from fairway.place.spread import spread_plan
from fairway.place.state import View


@dataclass(frozen=True, slots=True)
class Jit:
    """Place each task when its inputs are ready: on its default worker if that is idle, else where it would end first.

    With `ignore_cache`, it looks at loads only.
    """

    name: ClassVar[str] = "jit"
    eviction_penalty: float = 1.0
    ignore_cache: bool = False
    prefetch: bool = False
    no_batching: bool = False

    @property
    def rules(self) -> WorkerRules:
        """Inputs of a task that takes several are gathered before it is placed."""
        memory = MemoryPolicy.looking_ahead(prefetches=self.prefetch)
        return WorkerRules(memory, gathers_joins=True, batches=not self.no_batching)

    def plan(self, request: Request, view: View, now: float, draws: Draws) -> Plan:  # noqa: ARG002
        """The default worker of each task."""
        return spread_plan(request, view, now)

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
        """The default worker if it is idle, else the one where the task would end first."""
        return adjusted_worker(
            request,
            stage,
            planned,
            view,
            now,
            draws,
            theta=0.0,
            gathered=gathered,
            eviction_penalty=self.eviction_penalty,
            counts_cache=not self.ignore_cache,
        )

    def place_batch(self, batch: Batch, room: Room, view: View, now: float, draws: Draws) -> int:
        """Of the workers with room, the one on which the batch would end first."""
        return first_to_end(
            batch,
            room,
            view,
            now,
            draws,
            eviction_penalty=self.eviction_penalty,
            counts_cache=not self.ignore_cache,
        )
