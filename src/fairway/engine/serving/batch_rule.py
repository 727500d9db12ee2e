"""Which stages of a workflow run several requests at once, how many of them, and how long that takes on each worker.

Floor 2 decides (`configure`): the SLO of the workflow is divided among its stages by their shares of the work, along
the dominators, and a batch has to end within the part of its stage and to save time. Without an SLO, it only has to
save time. A batch between two sizes that have a time takes as long as the larger one (`Stage.seconds_on`), as in
`configure` itself. All of it is worked out once for a workflow and a fleet.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from fairway.configure.batch_sizes import BatchSize, batch_sizes
from fairway.configure.budgets.stages import stage_budgets
from fairway.place.graph import TaskGraph
from fairway.workflows import Stage

StageBatches = tuple[tuple[BatchSize, ...] | None, ...]
"""By stage, the batch for each number of requests that wait; None where each runs alone."""

GraphBatches = tuple[StageBatches, ...]
"""The same by worker."""


def graph_batches(
    graph: TaskGraph, slo_seconds: float | None = None, alone: Collection[int] = ()
) -> GraphBatches | None:
    """The batches of a workflow on its fleet; None if all of its stages run one request at a time everywhere.

    The stages in `alone` do so whatever their times say: those that put out their result in pieces.
    """
    stages, workers = graph.workflow.stages, graph.fleet.workers
    accelerators = sorted({worker.accelerator for worker in workers})
    if all(len(stage.times_on(each)) <= 1 for stage in stages for each in accelerators):
        return None
    budgets: Sequence[float] = [math.inf] * len(graph)
    if slo_seconds is not None:
        budgets = stage_budgets(graph.workflow, slo_seconds, accelerators)
    by_type = {
        accelerator: tuple(
            None if number in alone else _batches(stage, accelerator, budget)
            for number, (stage, budget) in enumerate(zip(stages, budgets, strict=True))
        )
        for accelerator in accelerators
    }
    if not any(batches for of_type in by_type.values() for batches in of_type):
        return None
    return tuple(by_type[worker.accelerator] for worker in workers)


def _batches(stage: Stage, accelerator: str, budget: float) -> tuple[BatchSize, ...] | None:
    times = stage.times_on(accelerator)
    if len(times) <= 1:
        return None
    sizes = batch_sizes(lambda count: stage.seconds_on(accelerator, count), max(times), budget)
    return sizes if len(sizes) > 1 else None
