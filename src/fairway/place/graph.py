"""A workflow on a fleet as arrays: everything about it that does not depend on the state of the workers.

Worked out once for each workflow and fleet, so that placing a request touches nothing but arrays. Stages keep their
numbers; `order` is the order in which they are planned, by decreasing upward rank. Where a stage's time depends on the
worker, its rank counts the mean over the workers that can run it (HEFT).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairway.errors import InputError
from fairway.place.arrays import BoolArray, FloatArray, IntArray
from fairway.place.fleet import Fleet
from fairway.place.stage_plan import StagePlan
from fairway.workflows import Workflow


@dataclass(frozen=True, eq=False)
class TaskGraph:
    """The tasks of a request, T of them, on P workers.

    `seconds[t, w]` is the run time, infinite where the stage has no time or its models do not fit. The predecessors of
    t are `before[before_offsets[t]:before_offsets[t + 1]]`; `heaviest[t]` is the one with the largest output, -1 for
    none. `local_seconds[t]`, `near_seconds[t]` and `far_seconds[t]` are how long its output takes to the next task on
    its worker, to another worker of the same host and to one of another host, `input_seconds[t]` how long its input
    takes from a client. `needs[need_offsets[t]:...]` are the
    models of t as positions in `models`, the numbers of all models of the workflow, each once; `needed[t]` are the
    numbers themselves. `is_join[t]` says whether t takes the output of several others. `plan` is what floor 2 has
    planned for the stages, where a scheduler asks for that.
    """

    workflow: Workflow
    fleet: Fleet
    order: IntArray
    ranks: FloatArray
    seconds: FloatArray
    runnable: BoolArray
    before_offsets: IntArray
    before: IntArray
    heaviest: IntArray
    local_seconds: FloatArray
    near_seconds: FloatArray
    far_seconds: FloatArray
    input_seconds: FloatArray
    need_offsets: IntArray
    needs: IntArray
    models: IntArray
    needed: tuple[IntArray, ...]
    is_join: tuple[bool, ...]
    plan: StagePlan | None = None

    @classmethod
    def of(cls, workflow: Workflow, fleet: Fleet, batch: int = 1) -> TaskGraph:
        """Work out the arrays; refuses a workflow with a stage that no worker of the fleet can run."""
        seconds = _seconds(workflow, fleet, batch)
        runnable = np.isfinite(seconds)
        outputs = [stage.output_bytes for stage in workflow.stages]
        far = [fleet.links.between_hosts(size) for size in outputs]
        means = [float(row[can].mean()) for row, can in zip(seconds, runnable, strict=True)]
        ranks = workflow.upward_ranks(means, far)
        before_offsets, before = _flattened(workflow.predecessors)
        used = list(dict.fromkeys(fleet.model_numbers[name] for stage in workflow.stages for name in stage.models))
        positions = {number: position for position, number in enumerate(used)}
        need_offsets, needs = _flattened(
            tuple(tuple(positions[fleet.model_numbers[name]] for name in stage.models) for stage in workflow.stages)
        )
        return cls(
            workflow=workflow,
            fleet=fleet,
            order=np.array(workflow.rank_order(ranks), dtype=np.int64),
            ranks=np.array(ranks),
            seconds=seconds,
            runnable=runnable,
            before_offsets=before_offsets,
            before=before,
            heaviest=np.array(
                [max(each, key=lambda number: outputs[number], default=-1) for each in workflow.predecessors],
                dtype=np.int64,
            ),
            local_seconds=np.array([fleet.links.local_seconds(size) for size in outputs]),
            near_seconds=np.array([fleet.links.within_host(size) for size in outputs]),
            far_seconds=np.array(far),
            input_seconds=np.array([fleet.links.entry_seconds(size) for size in workflow.input_bytes]),
            need_offsets=need_offsets,
            needs=needs,
            models=np.array(used, dtype=np.int64),
            needed=tuple(
                np.array([fleet.model_numbers[name] for name in stage.models], dtype=np.int64)
                for stage in workflow.stages
            ),
            is_join=tuple(len(before) > 1 for before in workflow.predecessors),
        )

    def __len__(self) -> int:
        return len(self.order)

    def __repr__(self) -> str:
        return f"TaskGraph({self.workflow.name!r} on {len(self.fleet)} workers)"


def _seconds(workflow: Workflow, fleet: Fleet, batch: int) -> FloatArray:
    accelerators = {worker.accelerator for worker in fleet.workers}
    seconds = np.empty((len(workflow), len(fleet)))
    for number, stage in enumerate(workflow.stages):
        where = f"stages[{number}] ('{stage.name}')"
        for name in stage.models:
            if name not in fleet.model_numbers:
                raise InputError(f"{where}: the fleet does not know model '{name}'; add it to the fleet's models")
        by_type = {accelerator: stage.seconds_on(accelerator, batch) for accelerator in accelerators}
        row = np.array([by_type[worker.accelerator] for worker in fleet.workers])
        if not np.isfinite(row).any():
            there = ", ".join(f"'{name}'" for name in sorted(accelerators)) or "none"
            known = ", ".join(f"'{name}'" for name in stage.seconds)
            raise InputError(
                f"{where}: has a time on {known}, but on none of the accelerators of the workers present ({there}); "
                "add a time for one of them"
            )
        needed = sum(fleet.model_bytes[fleet.model_numbers[name]] for name in stage.models)
        row[fleet.memory < needed] = np.inf
        if not np.isfinite(row).any():
            largest = max(fleet.memory, default=0.0)
            named = " and ".join(f"'{name}'" for name in stage.models)
            raise InputError(
                f"{where}: {named} with {needed:.0f} bytes fits in the memory of no worker that has a time for it; "
                f"the largest memory is {largest:.0f} bytes; use a smaller model or a larger worker"
            )
        seconds[number] = row
    return seconds


def _flattened(lists: tuple[tuple[int, ...], ...]) -> tuple[IntArray, IntArray]:
    """Lists of numbers as one array, and where each begins."""
    offsets = np.cumsum([0, *(len(each) for each in lists)]).astype(np.int64)
    return offsets, np.array([number for each in lists for number in each], dtype=np.int64)
