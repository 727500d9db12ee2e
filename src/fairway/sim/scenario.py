"""A serving scenario: which workflows are asked for, on which machines.

`compass-edge` is built in (`scenarios`); others come from files (`scenario_file`). The same scenario can be run with
another number of workers: its workers are then repeated in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from fairway.engine.batch_rule import GraphBatches, graph_batches
from fairway.errors import InputError
from fairway.place.fleet import Fleet, Worker
from fairway.place.graph import TaskGraph
from fairway.place.links import Links
from fairway.report.serving_record import Power
from fairway.workflows import Workflow, models_of

SLO_OF_LOWER_BOUND = 2.0
"""A workflow without an SLO of its own should be done in so many times its lower bound."""


@dataclass(frozen=True)
class Scenario:
    """Workflows and workers.

    `shares` say how many of the requests ask for each workflow; equal where it is empty. `slo_seconds` are by the name
    of the workflow. `eviction_copies` says that a model which has to go is copied back to the host first.
    `dollars_per_hour` are prices by accelerator type.
    """

    name: str
    workflows: tuple[Workflow, ...]
    workers: tuple[Worker, ...]
    links: Links = field(default_factory=Links)
    shares: tuple[float, ...] = ()
    slo_seconds: Mapping[str, float] = field(default_factory=dict)
    eviction_copies: bool = False
    power: Power = field(default_factory=Power)
    dollars_per_hour: Mapping[str, float] = field(default_factory=dict)

    def with_workers(self, count: int) -> Scenario:
        """The same with so many workers; those of the scenario repeat, each with a name and a host of its own."""
        if count < 1:
            raise InputError(f"--workers: {count} given, expected a whole number of at least 1")
        own = self.workers
        more = tuple(_repeated(own[number % len(own)], number // len(own)) for number in range(count))
        return replace(self, workers=more)

    def fleet(self) -> Fleet:
        """Workers and models as numbers."""
        return Fleet.of(self.workers, models_of(self.workflows).values(), self.links)

    def graphs(self, fleet: Fleet) -> tuple[TaskGraph, ...]:
        """Each workflow on the fleet; refuses one with a stage that no worker can run."""
        graphs = []
        for workflow in self.workflows:
            try:
                graphs.append(TaskGraph.of(workflow, fleet))
            except InputError as error:
                raise InputError(f"workflows.{workflow.name}.{error}") from None
        return tuple(graphs)

    def batches(self, graphs: Iterable[TaskGraph], slo_scale: float = 1.0) -> dict[TaskGraph, GraphBatches]:
        """How many requests run together in the stages of each workflow that has such stages.

        Only an SLO that the scenario gives limits them, as in a live system.
        """
        batches = {}
        for graph in graphs:
            slo = self.slo_seconds.get(graph.workflow.name)
            found = graph_batches(graph, None if slo is None else slo_scale * slo)
            if found is not None:
                batches[graph] = found
        return batches

    def slo_of(self, workflow: Workflow) -> float:
        """Within how many seconds a request for a workflow should be done."""
        given = self.slo_seconds.get(workflow.name)
        return SLO_OF_LOWER_BOUND * workflow.critical_path().seconds if given is None else given

    def price(self) -> float | None:
        """Dollars per hour for all workers; None if one of them has no price."""
        prices = [self.dollars_per_hour.get(worker.accelerator) for worker in self.workers]
        known = [price for price in prices if price is not None]
        return sum(known) if len(known) == len(prices) else None


def _repeated(worker: Worker, turn: int) -> Worker:
    if turn == 0:
        return worker
    host = None if worker.host is None else f"{worker.host}-{turn + 1}"
    return Worker(f"{worker.name}-{turn + 1}", worker.memory_bytes, worker.accelerator, host)
