"""The situations of the conformance kit: small workflows on small clusters, of every kind that makes a difference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from fairway.links import Links
from fairway.place.batch import Batch, Room
from fairway.place.fleet import Fleet, Worker
from fairway.place.graph import TaskGraph
from fairway.place.plan import Request
from fairway.place.state import NEVER, StateTable, View
from fairway.workflows import Model, Stage, Workflow

Generator = np.random.Generator

NOW = 100.0
"""The time of day in every situation: not 0, so that a duration taken for a time shows."""

CPUS, SLICES = 16, 7
"""What a worker has room for when nothing runs there."""

_BATCHES_OF_A_STAGE = 2


@dataclass(frozen=True, eq=False)
class Situation:
    """A request, the rows of the workers, the numbers of the workers that are there, and what is free on each.

    `batches` are of the stages of the request, of sizes that some workers have room for.
    """

    request: Request
    table: StateTable
    present: tuple[int, ...]
    room: Room
    batches: tuple[Batch, ...]

    def view(self, me: int) -> View:
        """What a worker sees, or `OUTSIDE`."""
        return self.table.view(me, NOW)

    def empty_room(self) -> Room:
        """What is free when nothing runs anywhere."""
        there = np.zeros(len(self.table.fleet), np.int64)
        there[list(self.present)] = 1
        return self.room._replace(cpu=CPUS * there, gpu=SLICES * there)


def situation_of(kind: str, seed: int) -> Situation:
    """The situation of a kind and a seed, always the same."""
    generator = np.random.default_rng([seed, *kind.encode()])
    shape = KINDS[kind](_Shape(), generator)
    fleet = Fleet.of(_workers(shape, generator), _models(shape, generator), Links())
    graph = TaskGraph.of(_workflow(shape, fleet, generator), fleet)
    table = StateTable(fleet)
    for worker in range(len(fleet)):
        queued = 0.0 if shape.idle else float(generator.choice([0.0, generator.uniform(0.0, 3.0)]))
        table.write_load(worker, queued, NOW + generator.uniform(-1.0, 1.0) if queued else NEVER, NOW)
        room = fleet.memory[worker]
        for model in generator.permutation(len(fleet.models)).tolist():
            if fleet.model_bytes[model] <= room and generator.random() < 0.5:
                table.write_cache(worker, model, True, NOW)
                room -= fleet.model_bytes[model]
    present = _leave(shape, table, graph, generator)
    ingress = int(generator.choice(present))
    request = Request(int(generator.integers(2**40)), graph, ingress)
    room = _room(len(fleet), present, generator)
    batches = tuple(
        _batch(request, stage, present, generator) for stage in range(len(graph)) for _ in range(_BATCHES_OF_A_STAGE)
    )
    return Situation(request, table, present, room, batches)


@dataclass(frozen=True)
class _Shape:
    stages: int = 4
    workers: int = 5
    models: int = 6
    models_of_a_stage: int = 1
    edges: str = "any"
    accelerators: tuple[str, ...] = ("gpu",)
    hosts: int | None = None
    memory: float = 10.0
    leaving: int = 0
    idle: bool = False


def _changed(**fields: Any) -> Callable[[_Shape, Generator], _Shape]:
    return lambda shape, _: replace(shape, **fields)


KINDS: Mapping[str, Callable[[_Shape, Generator], _Shape]] = MappingProxyType(
    {
        "one task": _changed(stages=1, edges="none"),
        "one worker": _changed(workers=1),
        "a chain": _changed(stages=5, edges="chain"),
        "parts that join": _changed(stages=6, edges="diamond"),
        "several entries": _changed(stages=5, edges="last"),
        "any graph": lambda shape, generator: replace(shape, stages=int(generator.integers(2, 10))),
        "idle workers": _changed(idle=True, stages=5, edges="diamond"),
        "no models": _changed(models_of_a_stage=0),
        "several models in a stage": _changed(models_of_a_stage=3),
        "more than 64 models": _changed(models=80, stages=8, workers=8),
        "little memory": _changed(memory=4.5),
        "mixed accelerators": _changed(accelerators=("a100", "t4", "cpu"), workers=8),
        "shared hosts": _changed(hosts=2, workers=6),
        "workers that left": _changed(leaving=3, workers=7),
        "many workers": _changed(workers=60, stages=6),
    }
)
"""All kinds of situations, by name."""


def _workers(shape: _Shape, generator: Generator) -> list[Worker]:
    return [
        Worker(
            f"w{number}",
            # The first worker of each accelerator type is as large as any, so that every model fits somewhere.
            shape.memory if number < len(shape.accelerators) else shape.memory * float(generator.choice([0.5, 1.0])),
            shape.accelerators[number % len(shape.accelerators)],
            None if shape.hosts is None else f"host{generator.integers(shape.hosts)}",
        )
        for number in range(shape.workers)
    ]


def _models(shape: _Shape, generator: Generator) -> list[Model]:
    largest = max(1, int(shape.memory / max(1, shape.models_of_a_stage)))
    return [Model(f"m{number}", int(generator.integers(1, largest + 1))) for number in range(shape.models)]


def _workflow(shape: _Shape, fleet: Fleet, generator: Generator) -> Workflow:
    stages = []
    for number in range(shape.stages):
        names = [fleet.models[model].name for model in generator.permutation(shape.models)[: shape.models_of_a_stage]]
        times = {name: float(generator.uniform(0.0, 1.0)) for name in shape.accelerators}
        if len(times) > 1 and generator.random() < 0.5:
            del times[str(generator.choice(shape.accelerators))]
        # Every fourth stage is plain code.
        models = () if number % 4 == 3 else tuple(names)
        sizes = generator.integers(0, 5_000_000, size=2).tolist()
        given = sizes[0] if generator.random() < 0.5 else None
        stages.append(Stage.of(f"s{number}", times, models=models, input_bytes=given, output_bytes=sizes[1]))
    return Workflow(tuple(stages), _edges(shape, generator), {model.name: model for model in fleet.models})


def _edges(shape: _Shape, generator: Generator) -> tuple[tuple[str, str], ...]:
    count = shape.stages
    match shape.edges:
        case "none":
            pairs = []
        case "chain":
            pairs = [(number, number + 1) for number in range(count - 1)]
        case "diamond":
            pairs = [(0, middle) for middle in range(1, count - 1)] + [
                (middle, count - 1) for middle in range(1, count - 1)
            ]
        case "last":
            pairs = [(number, count - 1) for number in range(count - 1)]
        case _:
            every = [(source, target) for target in range(count) for source in range(target)]
            pairs = [pair for pair in every if generator.random() < 0.4]
    return tuple((f"s{source}", f"s{target}") for source, target in pairs)


def _leave(shape: _Shape, table: StateTable, graph: TaskGraph, generator: Generator) -> tuple[int, ...]:
    """Let some workers leave, but none whose loss would leave a task without any."""
    present = list(range(len(table.fleet)))
    for worker in generator.permutation(len(present)).tolist()[: shape.leaving]:
        rest = [other for other in present if other != worker]
        if graph.runnable[:, rest].any(axis=1).all():
            table.leave(worker)
            present = rest
    return tuple(present)


def _room(workers: int, present: tuple[int, ...], generator: Generator) -> Room:
    cpu, gpu = generator.integers(CPUS + 1, size=workers), generator.integers(SLICES + 1, size=workers)
    gone = np.ones(workers, np.bool_)
    gone[list(present)] = False
    cpu[gone] = gpu[gone] = 0
    return Room(cpu, gpu, *generator.uniform(0.0, 1.0, size=2).tolist())


def _batch(request: Request, stage: int, present: tuple[int, ...], generator: Generator) -> Batch:
    """A batch of up to three jobs, whose inputs are anywhere."""
    before, workers = request.graph.workflow.predecessors[stage], len(request.graph.fleet)
    jobs = int(generator.integers(1, 4)) if before else 0
    return Batch(
        request.graph,
        stage,
        int(generator.integers(2**40)),
        float(generator.uniform(0.0, 1.0)),
        int(generator.integers(1, CPUS + 1)),
        int(generator.integers(SLICES + 1)),
        [tuple(generator.choice(present, size=len(before)).tolist()) for _ in range(jobs)],
        int(generator.integers(workers)),
        generator.random(workers) < 0.5 if generator.random() < 0.5 else None,
    )
