"""What floor 2 has planned for the stages of a workflow: how many run together, and what to keep back for later ones.

A request is due at some time. A stage has to end so much earlier that a planned batch of each stage behind it still
fits, and to start earlier still by a planned batch of its own. Kept back is a whole batch, not the time of one request:
stages that follow run in batches too when there is much to do, and then there is no time to lose.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairway.place.arrays import FloatArray, IntArray
from fairway.place.fleet import Fleet
from fairway.workflows import Workflow


@dataclass(frozen=True, eq=False)
class StagePlan:
    """By stage: the planned batch, what it takes, and what the planned batches of all that follows take.

    `after[s]` is the longest way from the end of s to the end of the request, `kept[s]` that from its start.
    `times[s, k, n - 1]` is what n requests take together on the k-th kind of worker, up to `largest[s]` of them;
    `kinds[w]` is the kind of worker w. Stages of the same `group` number may share a batch, in whichever workflow they
    are.
    """

    sizes: IntArray
    after: FloatArray
    kept: FloatArray
    times: FloatArray
    largest: IntArray
    kinds: IntArray
    groups: tuple[int, ...]

    @classmethod
    def of(
        cls, workflow: Workflow, fleet: Fleet, sizes: Sequence[int], groups: Sequence[int], waits: float = 0.0
    ) -> StagePlan:
        """The plan with batches of these sizes."""
        kinds = sorted({worker.accelerator for worker in fleet.workers})
        number = {kind: position for position, kind in enumerate(kinds)}
        largest = [
            max([1, *(max(stage.times_on(kind), default=1) for kind in kinds)]) if size > 1 else 1
            for stage, size in zip(workflow.stages, sizes, strict=True)
        ]
        times = np.full((len(workflow), len(kinds), max(largest, default=1)), np.inf)
        for stage, most in enumerate(largest):
            for kind, name in enumerate(kinds):
                for count in range(1, most + 1):
                    times[stage, kind, count - 1] = workflow.stages[stage].seconds_on(name, count)
        of_worker = np.array([number[worker.accelerator] for worker in fleet.workers], dtype=np.int64)
        planned = [typical(times[stage, of_worker, size - 1]) for stage, size in enumerate(sizes)]
        after = np.zeros(len(workflow))
        for stage in reversed(workflow.topological_order):
            after[stage] = max(
                [after[later] + (1.0 + waits) * planned[later] for later in workflow.successors[stage]], default=0.0
            )
        return cls(
            np.array(sizes, dtype=np.int64),
            after,
            after + np.array(planned),
            times,
            np.array(largest, dtype=np.int64),
            of_worker,
            tuple(groups),
        )


def typical(seconds: FloatArray) -> float:
    """What a stage takes on a worker that can run it, in the mean."""
    able = seconds[np.isfinite(seconds)]
    return float(able.mean()) if len(able) else 0.0
