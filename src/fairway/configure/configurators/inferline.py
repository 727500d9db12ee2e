"""InferLine (SoCC'20): the fewest workers with which a sample of the traffic is in time, tuned as the traffic changes.

The planner and the tuner are in `planners.provisioning`. A worker holds one model, and runs its stages in batches of
what waits, up to the planned size; nothing waits for a batch to fill. The sample is what came in the last minute: the
first plan is made after a second, the next when the sample is twice as long, then one a minute. The tuner looks once a
second.

The paper takes its workers from a cloud; here there are so many as there are. Workers that are left over repeat the
model that has fewest for its load, unless the plan is `lean`. Where there are too few, all are used: models get workers
by their load, several models share one if they have to, and batches are the largest that fit the shares of the SLO that
Nexus gives the stages. A request that has no chance even alone is refused, unless there is `no_drop`, as in the paper.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fairway.configure.application import Application
from fairway.configure.budgets.query_split import split_slo
from fairway.configure.capacity import Capacity
from fairway.configure.configurator import TurnOrder
from fairway.configure.fleet_plan import (
    Demand,
    FleetPlan,
    FleetRules,
    Machines,
    StagePlan,
    later_seconds,
    stay_put,
)
from fairway.configure.planners.envelope import LONGEST_SECONDS
from fairway.configure.planners.estimator import Pipeline
from fairway.configure.planners.provisioning import Provision, loads, provision, tuned
from fairway.configure.platform import Platform
from fairway.configure.queues import Candidates, Choice, Decision, Drop, Queue
from fairway.configure.whole_workers import WholeWorkers
from fairway.errors import InputError

_LITTLE = 1e-9
_PARTS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5, 2.0, 3.0)
"""How many times the load of a worker a copy may bring, where workers are shared."""
_MOST_PER_WORKER = 8
"""A plan that would need so many times the workers that there are is not looked for."""


@dataclass(frozen=True, slots=True)
class InferLine:
    """Plan anew every `epoch` seconds, from the last `sample` requests at most; tune every second."""

    name: ClassVar[str] = "inferline"
    epoch: float = 60.0
    sample: int = 500
    lean: bool = False
    no_drop: bool = False
    no_tuner: bool = False

    def __post_init__(self) -> None:
        if not self.epoch > 0:
            raise InputError(f"inferline: epoch: {self.epoch:g} given, expected a number of seconds > 0")
        if self.sample < 1:
            raise InputError(f"inferline: sample: {self.sample} given, expected a whole number of requests >= 1")

    @property
    def placer(self) -> str:
        """Near the data, of the workers of the model."""
        return "near-data"

    @property
    def turns(self) -> TurnOrder:
        """The one that has waited longest, where models share a worker."""
        return "slack"

    @property
    def fleet(self) -> FleetRules:
        """It plans for all queues, from the arrivals of the last minute."""
        planner = InferLinePlanner(self.epoch, self.sample, lean=self.lean, tunes=not self.no_tuner)
        return FleetRules(planner, epoch_seconds=1.0, window_seconds=LONGEST_SECONDS)

    def prepare(self, application: Application, platform: Platform, draws: np.random.Generator) -> InferLineQueues:  # noqa: ARG002
        """The times of an application."""
        return InferLineQueues(WholeWorkers.of(application, platform), drops=not self.no_drop)


class InferLinePlan(tuple[tuple[StagePlan, ...], ...]):
    """A plan for all stages, and what it was made from, for the next one."""

    provision: Provision | None = None


@dataclass(frozen=True, slots=True)
class InferLinePlanner:
    """Which workers run which model, and in which batches."""

    epoch: float = 60.0
    sample: int = 500
    lean: bool = False
    tunes: bool = True

    def plan(
        self, demands: Sequence[Demand], machines: Machines, before: FleetPlan | None, now: float = 0.0
    ) -> InferLinePlan:
        """Plan from the sample, or tune what is planned."""
        pipelines = [_pipeline(each, each.arrivals) for each in demands]
        workers = len(machines.present)
        known = before.provision if isinstance(before, InferLinePlan) else None
        if any(pipeline.arrivals for pipeline in pipelines):
            if known is None or now - known.planned_at >= min(self.epoch, known.sample_seconds):
                pipelines, seconds = self._sampled(demands, now)
                known = provision(pipelines, seconds, now, _MOST_PER_WORKER * workers)
            elif known.feasible and self.tunes:
                known = tuned(known, pipelines, now)
        plan = self._placed(demands, pipelines, known, machines, before)
        plan.provision = known
        return plan

    def _sampled(self, demands: Sequence[Demand], now: float) -> tuple[list[Pipeline], float]:
        """The last requests, and how long they took to come."""
        times = sorted((arrival for each in demands for arrival in each.arrivals), reverse=True)
        first = times[: self.sample][-1]
        pipelines = [_pipeline(each, [arrival for arrival in each.arrivals if arrival >= first]) for each in demands]
        return pipelines, max(now - first, _LITTLE) if len(times) > self.sample else max(now, _LITTLE)

    def _placed(
        self,
        demands: Sequence[Demand],
        pipelines: Sequence[Pipeline],
        known: Provision | None,
        machines: Machines,
        before: FleetPlan | None,
    ) -> InferLinePlan:
        """Each copy on a worker of its own or, if there are too few, models beside each other."""
        present = machines.present
        if known is not None and known.feasible and sum(known.copies.values()) <= len(present):
            batches, copies = known.plan.batches, dict(known.copies)
            needed = loads(pipelines, known.rates, batches)
        else:
            batches = tuple(_within_split(each, pipeline) for each, pipeline in zip(demands, pipelines, strict=True))
            rates = [1.0 if each.rate is None else each.rate for each in demands] if known is None else known.rates
            needed = loads(pipelines, rates, batches)
            copies = {}
        if copies and not (self.lean and known is not None and known.feasible):
            while sum(copies.values()) < len(present):
                copies[min(copies, key=lambda each: (copies[each] / max(needed[each], _LITTLE), each))] += 1
        wanted = _shared(copies, needed, machines) if copies else _crowded(needed, machines)
        chosen = stay_put(wanted, machines, before, [each.models for each in demands])
        holds = dict(zip(chosen, wanted, strict=True))
        rows = []
        for demand, pipeline, sizes in zip(demands, pipelines, batches, strict=True):
            later = later_seconds(demand.application, [times[0][1] for times in pipeline.times])
            stages = []
            for stage, model in enumerate(demand.models):
                row = np.zeros(len(machines.memory), np.int64)
                for worker in present:
                    if model < 0 or model in holds.get(worker, ()):
                        row[worker] = sizes[stage]
                stages.append(StagePlan(row, pipeline.times[stage][0][1], later[stage]))
            rows.append(tuple(stages))
        return InferLinePlan(rows)


def _pipeline(demand: Demand, arrivals: Sequence[float]) -> Pipeline:
    application = demand.application
    times = WholeWorkers.of(application).times
    return Pipeline(application.workflow, demand.models, times, application.slo_seconds, arrivals)


def _within_split(demand: Demand, pipeline: Pipeline) -> tuple[int, ...]:
    """By stage, the batch that gets most done within the share of the SLO that Nexus would give it."""
    split = split_slo(pipeline.workflow, pipeline.times, demand.application.slo_seconds, rounds=1)
    return tuple(
        min(((time / size, size) for size, time in times if time <= seconds + _LITTLE), default=(0.0, times[0][0]))[1]
        for times, seconds in zip(pipeline.times, split, strict=True)
    )


def _crowded(needed: dict[int, float], machines: Machines) -> list[frozenset[int]]:
    """The models of each worker where there are too few workers: of copies fine and coarse, the most even load."""

    def busiest(wanted: list[frozenset[int]]) -> tuple[float, float]:
        copies = {model: sum(model in held for held in wanted) for model in needed}
        loads = [sum(needed[model] / copies[model] for model in held) for held in wanted]
        return sum(needed[model] for model in needed if not copies[model]), max(loads, default=0.0)

    plans = []
    mean = max(sum(needed.values()) / len(machines.present), _LITTLE)
    for part in _PARTS:
        copies = {model: max(1, math.ceil(load / (part * mean) - _LITTLE)) for model, load in needed.items()}
        plans.append(_shared(copies, needed, machines))
    return min(plans, key=busiest)


def _shared(copies: dict[int, int], needed: dict[int, float], machines: Machines) -> list[frozenset[int]]:
    """The models of each worker: one each or, where copies are more than workers, with as even a load as memory lets.

    The copies that bring most load are placed first; one that has no room beside others has none.
    """
    workers = len(machines.present)
    memory = float(min(machines.memory[worker] for worker in machines.present))
    parts = sorted(
        ((needed[model] / count, model) for model, count in copies.items() for _ in range(count)), reverse=True
    )
    held: list[set[int]] = [set() for _ in range(workers)]
    load = [0.0] * workers
    for part, model in parts:
        fits = [
            worker
            for worker in range(workers)
            if model not in held[worker]
            and sum(float(machines.model_bytes[each]) for each in {*held[worker], model}) <= memory
        ]
        if fits:
            worker = min(fits, key=lambda each: (bool(held[each]), load[each], each))
            held[worker].add(model)
            load[worker] += part
    return [frozenset(each) for each in held if each]


@dataclass(frozen=True, slots=True)
class InferLineQueues:
    """Decides for the queues of one application."""

    times: WholeWorkers
    drops: bool = True

    def decide(self, queue: Queue, capacity: Capacity) -> Decision:
        """Start what waits, up to the planned batch, on a worker of the model."""
        plan, stage, times = queue.plan, queue.stage, self.times
        if plan is None:  # nothing is planned: as on a worker of its own
            return Candidates((Choice(times.configuration(stage, 1)),))
        if not plan.batches.any():  # its model has no room anywhere
            return Drop(queue.length)
        if self.drops:
            lost = bisect_left(queue.left(plan.later), times.seconds_of(stage, 1))
            if lost:
                return Drop(lost)
        free = np.where((capacity.free_cpu > 0) | (capacity.free_gpu > 0), plan.batches, 0)
        planned = int(free.max())
        if not planned:
            return Candidates(())
        size = min(planned, queue.length)
        return Candidates((Choice(times.configuration(stage, size)),), None, free == planned)
