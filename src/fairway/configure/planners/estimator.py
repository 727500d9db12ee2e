"""How long requests of a sample take if each model has so many workers to itself, and its stages planned batches.

InferLine (SoCC'20) estimates its plans like this: jobs of a stage wait in one queue; whenever a worker of its model is
free, it takes as many as wait, up to the planned batch, and holds them for the time of the profile. Nothing is loaded,
sent or drawn. Stages that share a model share its workers, the job that has waited longest first; those without a
model have workers enough.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from fairway.workflows import Workflow

Times = Sequence[tuple[int, float]]
"""By batch size, from the smallest on, the seconds that a batch takes."""


@dataclass(frozen=True, eq=False)
class Pipeline:
    """A workflow, by stage the number of its model (-1: none) and its times, its SLO, and when its requests came."""

    workflow: Workflow
    models: tuple[int, ...]
    times: tuple[Times, ...]
    slo_seconds: float
    arrivals: Sequence[float]

    @property
    def entries(self) -> list[int]:
        """The stages that take the request itself."""
        return [stage for stage, before in enumerate(self.workflow.predecessors) if not before]


class Plan(NamedTuple):
    """By model, how many workers it has; by pipeline and stage, the largest batch."""

    copies: Mapping[int, int]
    batches: tuple[tuple[int, ...], ...]


def seconds_of(times: Times, jobs: int) -> float:
    """How long so many jobs take at once: as long as the next larger batch that has a time."""
    return next((seconds for size, seconds in times if size >= jobs), times[-1][1])


def latencies(pipelines: Sequence[Pipeline], plan: Plan) -> list[list[float]]:
    """By pipeline, how long each request of the sample takes."""
    free = dict(plan.copies)
    waiting: dict[int, dict[tuple[int, int], deque[tuple[float, int]]]] = {model: {} for model in free}
    left = [
        [[len(before) for before in pipeline.workflow.predecessors] for _ in pipeline.arrivals]
        for pipeline in pipelines
    ]
    found = [[0.0] * len(pipeline.arrivals) for pipeline in pipelines]
    heap: list[tuple[float, int, int, int, int, tuple[int, ...]]] = []
    number = 0
    for which, pipeline in enumerate(pipelines):
        for request, arrival in enumerate(pipeline.arrivals):
            number += 1
            heappush(heap, (arrival, 0, number, which, -1, (request,)))
    while heap:
        now, _, _, which, ended, requests = heappop(heap)
        pipeline = pipelines[which]
        after = pipeline.workflow.successors[ended] if ended >= 0 else pipeline.entries
        touched = set()
        if ended >= 0 and (model := pipeline.models[ended]) >= 0:
            free[model] += 1
            touched.add(model)
        for request in requests:
            found[which][request] = now - pipeline.arrivals[request]
            for stage in after:
                if ended >= 0:
                    left[which][request][stage] -= 1
                    if left[which][request][stage]:
                        continue
                model = pipeline.models[stage]
                if model < 0:
                    number += 1
                    end = now + seconds_of(pipeline.times[stage], 1)
                    heappush(heap, (end, 1, number, which, stage, (request,)))
                else:
                    waiting[model].setdefault((which, stage), deque()).append((now, request))
                    touched.add(model)
        for model in sorted(touched):
            while free[model] and (queues := {key: jobs for key, jobs in waiting[model].items() if jobs}):
                key = min(queues, key=lambda each: (queues[each][0], each))
                jobs = queues[key]
                batch = min(plan.batches[key[0]][key[1]], len(jobs))
                members = tuple(jobs.popleft()[1] for _ in range(batch))
                free[model] -= 1
                number += 1
                end = now + seconds_of(pipelines[key[0]].times[key[1]], batch)
                heappush(heap, (end, 1, number, key[0], key[1], members))
    return found


def in_time(pipelines: Sequence[Pipeline], plan: Plan, quantile: float = 0.99) -> bool:
    """Whether this part of the requests of each pipeline is done within its SLO."""
    for pipeline, taken in zip(pipelines, latencies(pipelines, plan), strict=True):
        if taken and float(np.quantile(taken, quantile, method="higher")) > pipeline.slo_seconds:
            return False
    return True
