"""What several placement tests need: a cluster as in Compass's evaluation, in any state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fairway import Fleet, Plan, Request, StateTable, TaskGraph, Worker, Workflow, placer_of
from fairway.links import Moves
from fairway.place.plan import Draws
from fairway.place.state import NEVER
from tests.workflows.edge import GPU_MEMORY


def draws(seed: int = 0) -> Draws:
    return np.random.default_rng(seed)


class NoDraws:
    """Chance that no decision may ask for."""

    def random(self) -> float:
        raise AssertionError("a decision between equals was drawn")


class Cluster:
    """A workflow on P equal workers, whose rows can be set by hand."""

    def __init__(
        self,
        workflow: Workflow,
        workers: int | Sequence[Worker],
        *,
        cached: Mapping[int, Sequence[str]] | None = None,
        load: Mapping[int, float] | None = None,
        links: Moves | None = None,
        now: float = 50.0,
        homes: Mapping[int, Sequence[str]] | None = None,
    ) -> None:
        if isinstance(workers, int):
            workers = [Worker(f"w{number}", GPU_MEMORY) for number in range(workers)]
        self.now = now
        self.workflow = workflow
        self.fleet = Fleet.of(workers, workflow.models.values(), links)
        self.graph = TaskGraph.of(workflow, self.fleet)
        at_home = np.zeros((len(self.fleet.models), len(self.fleet)), dtype=np.bool_)
        for worker, models in (homes or {}).items():
            at_home[[self.fleet.model_numbers[name] for name in models], worker] = True
        self.table = StateTable(self.fleet, homes=at_home)
        for worker, models in (cached or {}).items():
            for name in models:
                self.table.write_cache(worker, self.fleet.model_numbers[name], True, now)
        for worker, seconds in (load or {}).items():
            self.table.write_load(worker, seconds, NEVER, now)

    def plan(self, scheduler: str = "compass", ingress: int = 0, seed: int = 0, kept: Plan | None = None) -> Plan:
        request = Request(1, self.graph, ingress, kept)
        return placer_of(scheduler).plan(request, self.table.view(ingress, self.now), self.now, draws(seed))

    def next_worker(
        self,
        stage: str,
        planned: int,
        scheduler: str = "compass",
        me: int = 0,
        *,
        gathered: bool = False,
        seed: int = 0,
    ) -> int:
        request, view = Request(1, self.graph, 0), self.table.view(me, self.now)
        number = self.workflow.number(stage)
        return placer_of(scheduler).next_worker(
            request, number, planned, view, self.now, draws(seed), gathered=gathered
        )

    def latency(self, plan: Plan) -> float:
        return float(plan.finish.max()) - self.now
