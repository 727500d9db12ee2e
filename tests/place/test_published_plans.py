"""The plans of the authors' own simulator: given the state that it saw, `compass:compat` decides the same, 1,003 times.

The state is worked out from the trace of a run. As that simulator has it: a load is the work of tasks that wait,
without the one that runs, and a planner sees its own load as of a millisecond ago but the others' at once. A model is
there when its copy has ended; then the oldest models go until all fit. Workflows share no models.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from fairway import Fleet, Model, Request, StateTable, TaskGraph, Worker, Workflow, placer_of
from fairway.place.state import NEVER
from tests.figures import NavigatorJob, navigator_jobs
from tests.place.clusters import NoDraws
from tests.workflows.edge import GPU_MEMORY, WORKFLOWS

WORKERS = 5
OWN_AGE = 0.001


class Run(NamedTuple):
    """A task that ran, or waits for ever; times in seconds."""

    graph: TaskGraph
    stage: int
    queued: float
    start: float


def _apart(number: int, workflow: Workflow) -> Workflow:
    """The workflow with models that only it knows."""
    names = {name: f"{number}/{name}" for name in workflow.models}
    return replace(
        workflow,
        stages=tuple(replace(stage, models=tuple(names[name] for name in stage.models)) for stage in workflow.stages),
        models={names[name]: Model(names[name], model.bytes) for name, model in workflow.models.items()},
    )


def _runs(jobs: list[NavigatorJob], graphs: list[TaskGraph]) -> dict[int, list[Run]]:
    """By worker, the tasks that reached its queue."""
    runs = defaultdict(list)
    for job in jobs:
        for stage, (worker, times) in enumerate(zip(job.workers, job.times, strict=True)):
            if times:
                ended = len(times) == 4
                runs[worker].append(Run(graphs[job.workflow], stage, times[0], times[1] if ended else math.inf))
    return runs


def _memory_changes(runs: list[Run], fleet: Fleet) -> list[tuple[float, int, bool]]:
    """When the memory of a worker takes in and gives up which model."""
    resident: list[int] = []
    changes = []
    for run in sorted((run for run in runs if run.start < math.inf), key=lambda run: run.start):
        for model in run.graph.needed[run.stage].tolist():
            if model in resident:
                continue
            there = run.start + float(fleet.fetch_seconds[model])
            resident.append(model)
            changes.append((there, model, True))
            while fleet.model_bytes[resident].sum() > GPU_MEMORY:
                changes.append((there, resident.pop(0), False))
    return changes


def _loads(runs: dict[int, list[Run]], now: float, ingress: int) -> Iterator[float]:
    for worker in range(WORKERS):
        seen = now - (OWN_AGE if worker == ingress else 0.0)
        waiting = (run for run in runs[worker] if run.queued < seen <= run.start)
        yield sum(float(run.graph.seconds[run.stage, 0]) for run in waiting)


def test_every_plan_of_the_run_is_reproduced() -> None:
    jobs = navigator_jobs("compass_5_workers")
    workflows = [_apart(number, workflow) for number, workflow in enumerate(WORKFLOWS)]
    models = {name: model for workflow in workflows for name, model in workflow.models.items()}
    fleet = Fleet.of([Worker(f"w{number}", GPU_MEMORY) for number in range(WORKERS)], models.values())
    graphs = [TaskGraph.of(workflow, fleet) for workflow in workflows]
    runs = _runs(jobs, graphs)
    changes = {worker: _memory_changes(runs[worker], fleet) for worker in range(WORKERS)}
    compat = placer_of("compass:compat")

    for job in jobs:
        assert job.ingress is not None
        graph, ingress = graphs[job.workflow], job.ingress
        now = job.created + float(graph.input_seconds[0])
        table = StateTable(fleet)
        for worker, load in enumerate(_loads(runs, now, ingress)):
            table.write_load(worker, load, NEVER, now)
            for at, model, held in changes[worker]:
                if at < now:
                    table.write_cache(worker, model, held, now)
        plan = compat.plan(Request(job.id, graph, ingress), table.view(ingress, now), now, NoDraws())
        assert plan.workers.tolist() == list(job.workers), f"job {job.id}"
    assert len(jobs) == 1003
    assert np.unique([job.workflow for job in jobs]).tolist() == [0, 1, 2, 3]
