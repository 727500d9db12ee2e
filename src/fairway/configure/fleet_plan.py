"""What a configurator that plans for all queues together is asked, and what it answers (Nexus, Shepherd, InferLine).

A configurator that has a field `fleet` (`FleetRules`) sees more than one queue at a time. Its jobs may wait in order of
their deadlines, all of which it is then told. If it has a planner, that is asked when the engine starts and once an
epoch from then on, with the rates that were measured: how many jobs a batch of each stage has at most, how long the
stage may take, and which workers run it. A plan depends on what it is asked and on the plan before, and on nothing
else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from fairway.configure.application import Application
from fairway.configure.arrays import BoolArray, FloatArray, IntArray


class StagePlan(NamedTuple):
    """A stage runs at most so many jobs at once on each worker, none where it is 0, within `seconds` of being ready.

    `later` is how long the stages after it may take, along their longest way.
    """

    batches: IntArray
    seconds: float
    later: float

    @property
    def workers(self) -> BoolArray:
        """The workers that run it."""
        mask: BoolArray = self.batches > 0
        return mask


class Demand(NamedTuple):
    """An application, by stage the number of its model (-1: none), and its requests per second; None: not known yet.

    `arrivals` are the times at which its requests came of late, for a planner that asks for them, the oldest first.
    """

    application: Application
    models: tuple[int, ...]
    rate: float | None
    arrivals: Sequence[float] = ()


class Machines(NamedTuple):
    """By worker, its memory in bytes, 0 for one that is gone, and by model, its bytes."""

    memory: FloatArray
    model_bytes: FloatArray

    @property
    def present(self) -> list[int]:
        """The workers that are there."""
        return np.flatnonzero(self.memory > 0).tolist()


FleetPlan = tuple[tuple[StagePlan, ...], ...]
"""By application and stage."""


class FleetPlanner(Protocol):
    """Plans for all applications together."""

    def plan(
        self, demands: Sequence[Demand], machines: Machines, before: FleetPlan | None, now: float = 0.0
    ) -> FleetPlan:
        """Say what each stage runs in, and where; `before` is what it has answered last."""
        ...


@dataclass(frozen=True, slots=True)
class FleetRules:
    """What a configurator asks of the engine that plans: deadlines of all jobs, in order, and plans, if any.

    Its planner gets the arrivals of the last `window_seconds`. One that `preempts` may stop a batch for a larger one.
    """

    planner: FleetPlanner | None = None
    first_epoch_seconds: float = 1.0
    epoch_seconds: float = 10.0
    window_seconds: float = 0.0
    preempts: bool = False


def fleet_rules_of(configurator: object) -> FleetRules | None:
    """What a configurator asks for, None for one that decides queue by queue."""
    rules = getattr(configurator, "fleet", None)
    return rules if isinstance(rules, FleetRules) else None


def preempts(configurator: object) -> bool:
    """Whether a configurator, if there is one, may stop a batch that runs."""
    rules = fleet_rules_of(configurator)
    return rules is not None and rules.preempts


def later_seconds(application: Application, seconds: Sequence[float]) -> tuple[float, ...]:
    """By stage, how long the stages after it take, along their longest way, if each takes so long."""
    later = [0.0] * len(application)
    for stage in reversed(application.workflow.topological_order):
        after = application.workflow.successors[stage]
        later[stage] = max((seconds[other] + later[other] for other in after), default=0.0)
    return tuple(later)


def stay_put(
    wanted: Sequence[frozenset[int]], machines: Machines, before: FleetPlan | None, models: Sequence[tuple[int, ...]]
) -> list[int]:
    """A worker for each set of models that is wanted together: of those that are there, the ones that had most of it.

    Largest overlap in bytes first, so that as little as possible is loaded anew.
    """
    free = machines.present
    had: dict[int, set[int]] = {worker: set() for worker in free}
    for plans, numbers in zip(before or (), models, strict=False):
        for plan, model in zip(plans, numbers, strict=True):
            if model >= 0:
                for worker in np.flatnonzero(plan.workers).tolist():
                    if worker in had:
                        had[worker].add(model)
    pairs = sorted(
        (
            (-sum(float(machines.model_bytes[model]) for model in each & had[worker] if model >= 0), number, worker)
            for number, each in enumerate(wanted)
            for worker in free
        ),
    )
    chosen: dict[int, int] = {}
    taken: set[int] = set()
    for _, number, worker in pairs:
        if number not in chosen and worker not in taken:
            chosen[number] = worker
            taken.add(worker)
    return [chosen[number] for number in range(len(wanted))]
