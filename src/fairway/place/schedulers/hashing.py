"""Hash, the baseline: each task goes to some worker, whatever is known about any of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fairway.place.memory import MemoryPolicy
from fairway.place.plan import Draws, Plan, Request
from fairway.place.planner import plan_request
from fairway.place.scheduler import COMPAT_RULES, WorkerRules
from fairway.place.spread import spread_worker
from fairway.place.state import View


@dataclass(frozen=True, slots=True)
class Hash:
    """Spread tasks evenly over the workers that can run them, by the hash of request and stage.

    `compat` draws each worker instead, as the authors' simulator does.
    """

    name: ClassVar[str] = "hash"
    prefetch: bool = False
    compat: bool = False

    @property
    def rules(self) -> WorkerRules:
        """Memory as under Compass, but models come when they are needed unless `prefetch` says otherwise."""
        return COMPAT_RULES if self.compat else WorkerRules(memory=MemoryPolicy.looking_ahead(prefetches=self.prefetch))

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
        return planned if view.is_present(planned) else spread_worker(request, stage, view)


def spread_plan(request: Request, view: View, now: float, draws: Draws | None) -> Plan:
    """A plan that spreads the tasks by hash or, where draws are given, by chance."""
    graph, kept = request.graph, request.kept
    workers = np.full(len(graph), -1, dtype=np.int64) if kept is None else kept.workers.copy()
    for stage in np.flatnonzero(workers < 0).tolist():
        workers[stage] = spread_worker(request, stage, view, None if draws is None else draws.random())
    finish = np.full(len(graph), np.nan) if kept is None else kept.finish
    return plan_request(request, view, now, 0.0, given=Plan(graph, workers, finish))
