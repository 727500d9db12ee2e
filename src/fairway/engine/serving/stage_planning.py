"""Plans the batches of a workflow's stages by its SLO: of all plans in time with little work, the one done soonest.

A request that runs in a batch of b has a part t(b) / b of the work, and waits before it runs, since workers are busy:
`waits` times t(b) at each stage. So the plan is one of the exact front of the graph (`configure.search`): its longest
way, waiting included, is within the SLO, and of those whose work for a request is nearly the least it is the one done
soonest, since time that is left keeps bursts from being late. Without an SLO a batch only has to save work
(`configure.batch_sizes`).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Mapping
from dataclasses import replace

import numpy as np

from fairway.configure.batch_sizes import batch_sizes
from fairway.configure.search.fronts import of_stage
from fairway.configure.search.graph_front import graph_front
from fairway.place.graph import TaskGraph
from fairway.place.placer import WorkerRules
from fairway.place.stage_plan import StagePlan, typical

_ROUNDING = 1e-9

_MORE_WORK = 0.03
"""A plan may take such a part more work than it has to, if it is done sooner."""


def planned_graphs(
    rules: WorkerRules,
    slo_seconds: Mapping[TaskGraph, float | None],
    alone: Mapping[TaskGraph, Collection[int]] | None = None,
    *,
    mixes: bool = True,
) -> list[TaskGraph]:
    """The graphs with plans for their stages, if the scheduler asks for them.

    The stages in `alone` run one request at a time. Unless it `mixes`, no stages of two workflows are the same.
    """
    if not rules.plans_stages:
        return list(slo_seconds)
    groups: dict[Hashable, int] = {}
    planned = []
    for number, (graph, slo) in enumerate(slo_seconds.items()):
        single = set() if alone is None else set(alone.get(graph, ()))
        if not rules.batches:
            single = set(range(len(graph)))
        sizes = _sizes(graph, slo, rules.waits, single)
        kinds = [
            groups.setdefault(_kind(graph, stage, number if stage in single or not (mixes and rules.mixes) else -1),
                              len(groups))
            for stage in range(len(graph))
        ]  # fmt: skip
        planned.append(replace(graph, plan=StagePlan.of(graph.workflow, graph.fleet, sizes, kinds, rules.waits)))
    return planned


def _kind(graph: TaskGraph, stage: int, workflow: int) -> Hashable:
    """Stages that are of one kind may share a batch: they have the same models and times."""
    own = graph.workflow.stages[stage]
    times = tuple((name, tuple(by_batch.items())) for name, by_batch in sorted(own.seconds.items()))
    return (workflow, stage, own.models, times)


def _sizes(graph: TaskGraph, slo: float | None, waits: float, alone: Collection[int]) -> list[int]:
    """The batch of each stage."""
    times = [_times(graph, stage, single=stage in alone) for stage in range(len(graph))]
    if slo is None or not math.isfinite(slo):
        return [
            batch_sizes(lambda count, of=each: of[min(size for size in of if size >= count)], max(each))[-1].requests  # type: ignore[misc]
            for each in times
        ]
    fronts = {
        stage: of_stage(
            stage,
            np.array([(1.0 + waits) * seconds for seconds in each.values()]),
            np.array([seconds / size for size, seconds in each.items()]),
            np.arange(len(each)),
        )
        for stage, each in enumerate(times)
    }
    front = graph_front(graph.workflow, range(len(graph)), fronts)
    in_time = np.flatnonzero(front.seconds <= slo + _ROUNDING)
    least = front.cost[in_time[-1]] if len(in_time) else np.inf
    chosen = front.plan(int(np.flatnonzero(front.cost <= (1.0 + _MORE_WORK) * least)[0]))
    return [list(each)[chosen[stage]] for stage, each in enumerate(times)]


def _times(graph: TaskGraph, stage: int, *, single: bool) -> dict[int, float]:
    """What batches of a stage take on workers that can run it, in the mean; larger ones at least as long."""
    own = graph.workflow.stages[stage]
    sizes = {1} if single else {1, *(size for by_batch in own.seconds.values() for size in by_batch)}
    times: dict[int, float] = {}
    for size in sorted(sizes):
        on = np.array([own.seconds_on(worker.accelerator, size) for worker in graph.fleet.workers])
        if np.isfinite(on).any():
            times[size] = max([typical(on), *times.values()])
    return times
