"""A serving scenario: which workflows are asked for, on which machines, at which prices.

`compass-edge` and `esg-apps` are built in (`scenarios`), others come from files (`scenario_file`). A scenario can run
with another number of workers: its workers are then repeated in order. Any scheduler runs on any scenario. A
configurator takes the times of a stage by batch size, CPUs and slices where the scenario has `profiles`, else by batch
size on a whole worker. A placer that runs without one takes a size that floor 2 fixes for all tasks (`uniform`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from fairway.configure.application import Application
from fairway.configure.configuration import Configuration, Prices
from fairway.configure.platform import Platform
from fairway.configure.profile import Profile
from fairway.configure.slices.mig import MigDevice
from fairway.configure.slices.parts import Slices, on_slices, shares_of
from fairway.configure.uniform import uniform_configuration
from fairway.engine.serving.applications import application_on, profiles_at
from fairway.engine.serving.batch_rule import GraphBatches, graph_batches
from fairway.errors import InputError
from fairway.links import Links, Moves
from fairway.place.fleet import Fleet, Worker
from fairway.place.graph import TaskGraph
from fairway.report.serving.record import Power
from fairway.workflows import ANY, Workflow, models_of

SLO_OF_LOWER_BOUND = 2.0
"""A workflow without an SLO of its own should be done in so many times its lower bound."""


@dataclass(frozen=True, slots=True)
class ColdStarts:
    """Every worker starts with so many copies of each model, and an idle copy goes after `keep_alive_seconds`.

    Under a configurator, with `held`, a batch that finds no copy of its model holds its share of the worker while one
    is loaded; otherwise its jobs wait in their queue. With `prewarms`, copies are begun ahead of batches.
    """

    initial: int = 0
    prewarms: bool = True
    held: bool = False
    keep_alive_seconds: float = math.inf

    def __post_init__(self) -> None:
        if self.initial < 0:
            raise InputError(f"containers: {self.initial} given, expected a whole number >= 0")


@dataclass(frozen=True, slots=True)
class DeviceSharing:
    """What accelerators can be cut into, and what tasks on one of them cost each other.

    Without `mig`, any number of slices can be had. `slowdown` is by which part a run takes longer while others have all
    of the rest of its accelerator, as under MPS (`interference`). `pairs` has, by two models, the factor by which the
    first was measured to take longer beside the second, which goes before that.
    """

    mig: MigDevice | None = None
    slowdown: float = 0.0
    pairs: Mapping[tuple[str, str], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0 <= self.slowdown < math.inf:
            raise InputError(f"slowdown: {self.slowdown} given, expected a number >= 0")
        if self.mig is not None and self.interferes:
            raise InputError("slowdown: given for instances of MIG, which share nothing; give one of the two")

    @property
    def interferes(self) -> bool:
        """Whether tasks cost each other anything."""
        return self.slowdown > 0 or any(factor != 1 for factor in self.pairs.values())

    def cost(self, model: str | None, other: str | None, part: float) -> float:
        """By which part a task of a model takes longer beside one of another that has so much of the accelerator."""
        found = self.pairs.get((model, other)) if model is not None and other is not None else None
        return self.slowdown * part if found is None else max(found - 1.0, 0.0)


@dataclass(frozen=True)
class Scenario:
    """Workflows and workers.

    `shares` say how many of the requests ask for each workflow; equal where it is empty. `slo_seconds` are by the name
    of the workflow. `eviction_copies` says that a model which has to go is copied back to the host first.
    `dollars_per_hour` are prices by accelerator type, for all of the time; `prices` are those of CPUs and slices, for
    the time that tasks use them. `profiles` are the times of the stages of a workflow by batch, CPUs and slices. A task
    waits `overhead_seconds` for its decision. `keys` number workflows where each has its own home among the workers.
    With `slices`, copies of models have parts of a worker, whose slices are then its thousandths.
    """

    name: str
    workflows: tuple[Workflow, ...]
    workers: tuple[Worker, ...]
    links: Moves = field(default_factory=Links)
    shares: tuple[float, ...] = ()
    slo_seconds: Mapping[str, float] = field(default_factory=dict)
    eviction_copies: bool = False
    power: Power = field(default_factory=Power)
    dollars_per_hour: Mapping[str, float] = field(default_factory=dict)
    prices: Prices | None = None
    profiles: Mapping[str, tuple[Profile, ...]] = field(default_factory=dict)
    overhead_seconds: float = 0.0
    keys: Mapping[str, int] = field(default_factory=dict)
    cold: ColdStarts = field(default_factory=ColdStarts)
    sharing: DeviceSharing = field(default_factory=DeviceSharing)
    slices: Slices = field(default_factory=dict)

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
                graphs.append(TaskGraph.of(self._at_fixed_size(workflow), fleet))
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

    def least_seconds(self, workflow: Workflow) -> float:
        """How long a request for a workflow takes at least on any worker that there is, in any configuration."""
        profiles = self.profiles.get(workflow.name)
        if profiles is None:
            return workflow.least_seconds({worker.accelerator for worker in self.workers})
        return workflow.critical_path([float(profile.seconds.min()) for profile in profiles]).seconds

    def check_slos(self, slo_scale: float = 1.0) -> None:
        """Refuse an SLO that no configuration can meet, with the least that would do."""
        for workflow in self.workflows:
            workflow.check_slo(slo_scale * self.slo_of(workflow), self.least_seconds(workflow))

    def price(self) -> float | None:
        """Dollars per hour for all workers; None if one of them has no price."""
        prices = [self.dollars_per_hour.get(worker.accelerator) for worker in self.workers]
        known = [price for price in prices if price is not None]
        return sum(known) if len(known) == len(prices) else None

    # As floor 2 takes it

    def platform(self, noise: float = 0.0) -> Platform:
        """What the platform adds to a run; `noise` is the standard deviation of log(time / profile)."""
        worker = self.workers[0]
        prices = Prices(0.0, 1.0) if self.prices is None else self.prices
        mig = self.sharing.mig
        return Platform(prices, self.links, self.overhead_seconds, worker.cpus, worker.slices, noise, mig)

    def applications(self, slo_scale: float = 1.0) -> tuple[Application, ...]:
        """The workflows with their profiles and SLOs; refuses what no configurator can choose sizes for."""
        return tuple(
            application_on(
                self.workers,
                self.links,
                workflow,
                slo_scale * self.slo_of(workflow),
                key=self.keys.get(workflow.name, number),
                profiles=self._profiles_of(workflow),
            )
            for number, workflow in enumerate(self.workflows)
        )

    @cached_property
    def fixed_size(self) -> Configuration | None:
        """The size of every task where none is chosen for it; None if each has a whole worker."""
        if not self.profiles:
            return None
        return uniform_configuration(self.applications(), self.platform())

    def fixed_shares(self, graphs: Iterable[TaskGraph]) -> dict[TaskGraph, tuple[tuple[int, int], ...]]:
        """The CPUs and slices of each stage where no configurator chooses them."""
        if self.slices:
            return {graph: self._slices_of(graph.workflow) for graph in graphs}
        size = self.fixed_size
        return {} if size is None else {graph: ((size.cpu, size.gpu),) * len(graph) for graph in graphs}

    def _at_fixed_size(self, workflow: Workflow) -> Workflow:
        """The same workflow with the times that its stages have at the fixed size, or on the slices of their models."""
        if self.slices:
            return on_slices(workflow, self.slices)
        size = self.fixed_size
        if size is None:
            return workflow
        times = [profile.seconds_of(*size) for profile in self.profiles[workflow.name]]
        stages = tuple(
            replace(stage, seconds={ANY: {1: seconds}}) for stage, seconds in zip(workflow.stages, times, strict=True)
        )
        return replace(workflow, stages=stages)

    def _slices_of(self, workflow: Workflow) -> tuple[tuple[int, int], ...]:
        worker = self.workers[0]
        return shares_of(workflow, self.slices, (worker.cpus, worker.slices))

    def _profiles_of(self, workflow: Workflow) -> tuple[Profile, ...] | None:
        """The sizes that a configurator may choose from, where they are not those of whole workers."""
        if not self.slices:
            return self.profiles.get(workflow.name)
        accelerator = self.workers[0].accelerator
        return profiles_at(on_slices(workflow, self.slices), accelerator, self._slices_of(workflow))


def _repeated(worker: Worker, turn: int) -> Worker:
    if turn == 0:
        return worker
    host = None if worker.host is None else f"{worker.host}-{turn + 1}"
    name = f"{worker.name}-{turn + 1}"
    return Worker(name, worker.memory_bytes, worker.accelerator, host, worker.cpus, worker.slices)
