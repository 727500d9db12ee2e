"""Fairway: batch, memory and worker in one decision, by every worker for what it has, from rows that may be old.

A task goes where it and what waits there together are done soonest (`joining`): into a batch that waits, if that adds
little, or to a worker that is free. Each task is placed when its inputs are there. Workers serve the task that has to
start soonest first, keeping back the planned batches of what follows (`stage_plan`), in batches as large as is in time;
what cannot be in time any more runs last, or not at all. Models have homes, which workers load when they start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fairway.errors import InputError
from fairway.made import made
from fairway.place.adjust import adjusted_worker, first_to_end
from fairway.place.batch import Batch, Room
from fairway.place.fleet import OUTSIDE
from fairway.place.joining import joined_worker
from fairway.place.memory import MemoryPolicy
from fairway.place.placer import WorkerRules
from fairway.place.plan import Draws, Plan, Request
from fairway.place.planner import NO_TIMES, plan_request
from fairway.place.spread import spread_worker
from fairway.place.state import OLD_SECONDS, View

_LATE = ("last", "refuse", "serve")


@dataclass(frozen=True, slots=True)
class Fairway:
    """Place each task, when its inputs are ready, where it and what it holds up end first.

    What a task adds to the work of others counts `weight` times. `late` says what happens to a task that cannot be in
    time: it runs `last`, its request is refused (`refuse`), or it is served in its turn (`serve`). The flags take parts
    away: `no_joining` places tasks as if each ran alone (Compass's rule), `no_moving` leaves tasks where they were
    placed, `no_fetching` has workers that are about to be free ask for nothing, `no_asking` has them decide by rows
    however old, `no_deadlines` serves tasks in the order of their arrival, `no_batching` runs each alone, `no_mixing`
    batches stages of one workflow only, `no_homes` leaves memory to chance. `waits` is how many times a planned batch a
    request may wait at each stage, by which batches are planned. A batch that is not full waits `lingers` times as long
    as it would waste. `centralised` has all requests received in one place that sees every row exactly.
    """

    name: ClassVar[str] = "fairway"
    weight: float = 1.0
    waits: float = 0.5
    stay: float = 0.2
    lingers: float = 1.0
    late: str = "refuse"
    eviction_penalty: float = 1.0
    home_penalty: float = 8.0
    patience: float = 8.0
    no_joining: bool = False
    no_moving: bool = False
    no_fetching: bool = False
    no_asking: bool = False
    no_deadlines: bool = False
    no_batching: bool = False
    no_mixing: bool = False
    no_homes: bool = False
    no_separating: bool = False
    centralised: bool = False

    def __post_init__(self) -> None:
        if self.late not in _LATE:
            raise InputError(f"fairway: late: '{self.late}' given, expected one of {', '.join(_LATE)}")

    @property
    def rules(self) -> WorkerRules:
        """Workers serve what has to start soonest, and show what waits there."""
        return WorkerRules(
            MemoryPolicy.looking_ahead(prefetches=True, replaces=True),
            gathers_joins=True,
            centralised=self.centralised,
            batches=not self.no_batching,
            overtakes=True,
            patience=self.patience,
            settles=not self.no_homes,
            separates=not self.no_separating,
            plans_stages=True,
            waits=self.waits,
            lingers=self.lingers,
            by_latest_start=not self.no_deadlines,
            late="serve" if self.no_deadlines else self.late,
            mixes=not self.no_mixing,
            moves=self._moves,
            fetches=self._moves and not self.no_fetching,
            asks=self._moves and not self.no_asking,
        )

    @property
    def _moves(self) -> bool:
        return not (self.no_moving or self.no_joining or self.no_deadlines)

    def plan(self, request: Request, view: View, now: float, draws: Draws) -> Plan:
        """Where the first tasks go; the others have a default until their inputs are there."""
        graph, kept = request.graph, request.kept
        before = graph.workflow.predecessors
        workers = np.empty(len(graph), dtype=np.int64)
        for stage in range(len(graph)):
            if kept is not None and kept.workers[stage] >= 0:
                workers[stage] = kept.workers[stage]
            elif before[stage]:
                workers[stage] = spread_worker(request, stage, view)
            else:
                workers[stage] = self._soonest(request, stage, view, now, draws)
        if request.untimed and kept is None:
            return made(Plan, (graph, workers, NO_TIMES))
        finish = np.full(len(graph), np.nan) if kept is None else kept.finish
        return plan_request(request._replace(kept=Plan(graph, workers, finish)), view, now, 0.0)

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
        """The worker where the task, and what it holds up, end first; inputs of a join are gathered before."""
        if request.graph.is_join[stage] and not gathered:
            return planned if view.is_present(planned) else spread_worker(request, stage, view)
        return self._soonest(request, stage, view, now, draws, planned)

    def place_again(self, request: Request, stage: int, together: int, view: View, now: float, draws: Draws) -> int:
        """Where so many tasks of a stage that wait at `view.me` go, which its own row leaves out."""
        return joined_worker(
            request,
            stage,
            view,
            now,
            draws.random(),
            weight=self.weight,
            eviction_penalty=self.eviction_penalty,
            home_penalty=self.home_penalty,
            together=together,
            stay=self.stay,
        )

    def _soonest(self, request: Request, stage: int, view: View, now: float, draws: Draws, planned: int = -1) -> int:
        if self.no_joining:
            default = planned if planned >= 0 else spread_worker(request, stage, view)
            return adjusted_worker(
                request, stage, default, view, now, draws, theta=0.0, gathered=True,
                eviction_penalty=self.eviction_penalty, home_penalty=self.home_penalty,
            )  # fmt: skip
        if view.age > OLD_SECONDS and self._moves and not self.no_asking and _can_stay(request, stage, view):
            return view.me
        return joined_worker(
            request,
            stage,
            view,
            now,
            draws.random(),
            weight=self.weight,
            eviction_penalty=self.eviction_penalty,
            home_penalty=self.home_penalty,
        )

    def place_batch(self, batch: Batch, room: Room, view: View, now: float, draws: Draws) -> int:
        """Of the workers with room, the one on which the batch would end first, models and loads considered."""
        return first_to_end(
            batch,
            room,
            view,
            now,
            draws,
            eviction_penalty=self.eviction_penalty,
            home_penalty=self.home_penalty,
        )


def _can_stay(request: Request, stage: int, view: View) -> bool:
    """Whether a task can run where its inputs are, with the models that are there."""
    me, graph = view.me, request.graph
    if me == OUTSIDE or not view.is_present(me) or graph.seconds[stage, me] == np.inf:
        return False
    return all(view.own_cached[model] for model in graph.needed[stage].tolist())
