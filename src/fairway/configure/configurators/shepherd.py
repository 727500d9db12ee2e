"""Shepherd (NSDI'23): groups of models by an integer program now and then, the largest batch first all of the time.

Herd (`planners.herd`) divides models and workers into groups once an epoch. Flex decides in a group whenever a request
comes or a batch ends. The candidate of a queue is its largest batch that is in time: the largest b of which b jobs have
deadlines after now + t(b), and of those the most urgent; jobs that are too urgent for it stay in the queue. The largest
candidate of all queues starts on an idle worker of its group. If there is none, it takes the place of a batch that
runs, whose work is lost, if it is at least `preemption` times as large: 3.03 is what the paper's bound is best for.

Shepherd serves single models. With the deadline of the request at every stage of a workflow, the first stage would use
all of the time in large batches, and requests be lost after most of the work was done for them; so stages have the
shares of the SLO that Nexus gives them (`budgets.query_split`), unless they are to have `request_deadlines`.
"""

from __future__ import annotations

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
from fairway.configure.planners.herd import Stream, herd
from fairway.configure.platform import Platform
from fairway.configure.queues import Candidates, Choice, Decision, Drop, Preempt, Queue
from fairway.configure.whole_workers import WholeWorkers
from fairway.errors import InputError


@dataclass(frozen=True, slots=True)
class Shepherd:
    """Groups once an `epoch` (seconds) with at most so many workers (`most`) each; the largest batch in time first.

    A batch that is `preemption` times as large as one that runs takes its place; never with `no_preemption`.
    """

    name: ClassVar[str] = "shepherd"
    preemption: float = 3.03
    epoch: float = 12.0
    most: int = 12
    no_preemption: bool = False
    request_deadlines: bool = False

    def __post_init__(self) -> None:
        if not self.preemption > 1:
            raise InputError(f"shepherd: preemption: {self.preemption:g} given, expected a number > 1")
        if not self.epoch > 0:
            raise InputError(f"shepherd: epoch: {self.epoch:g} given, expected a number of seconds > 0")
        if self.most < 1:
            raise InputError(f"shepherd: most: {self.most} given, expected a whole number of workers >= 1")

    @property
    def placer(self) -> str:
        """Near the data, of the workers of the group."""
        return "near-data"

    @property
    def turns(self) -> TurnOrder:
        """The largest candidate of all."""
        return "largest"

    @property
    def fleet(self) -> FleetRules:
        """It plans for all queues, and may stop what runs."""
        planner = HerdPlanner(self.most, request_deadlines=self.request_deadlines)
        return FleetRules(planner, epoch_seconds=self.epoch, preempts=not self.no_preemption)

    def prepare(self, application: Application, platform: Platform, draws: np.random.Generator) -> FlexQueues:  # noqa: ARG002
        """The times of an application."""
        return FlexQueues(WholeWorkers.of(application, platform), self.preemption)


@dataclass(frozen=True, slots=True)
class HerdPlanner:
    """Which workers hold which models."""

    most: int = 12
    request_deadlines: bool = False

    def plan(
        self,
        demands: Sequence[Demand],
        machines: Machines,
        before: FleetPlan | None,
        now: float = 0.0,  # noqa: ARG002
    ) -> FleetPlan:
        """Group the models by what they are asked for; stages without a model run anywhere."""
        times = [WholeWorkers.of(each.application).times for each in demands]
        budgets = [
            split_slo(each.application.workflow, own, each.application.slo_seconds, rounds=1)
            for each, own in zip(demands, times, strict=True)
        ]
        known = [each.rate for each in demands if each.rate is not None]
        usual = sum(known) / len(known) if known else 1.0
        needed: dict[int, float] = {}
        for demand, own, split in zip(demands, times, budgets, strict=True):
            rate = usual if demand.rate is None else demand.rate
            for model, sizes, seconds in zip(demand.models, own, split, strict=True):
                if model >= 0:
                    needed[model] = needed.get(model, 0.0) + rate * _seconds_each(sizes, seconds)
        numbers = sorted(needed)
        present = machines.present
        memory = float(min(machines.memory[worker] for worker in present))
        streams = [Stream(needed[model], float(machines.model_bytes[model])) for model in numbers]
        groups = herd(streams, len(present), memory, self.most)
        wanted = [frozenset(numbers[each] for each in group.models) for group in groups for _ in range(group.workers)]
        workers = stay_put(wanted, machines, before, [each.models for each in demands])
        holds = {worker: models for models, worker in zip(wanted, workers, strict=True)}
        return tuple(
            self._stages(demand, own, split, holds, machines)
            for demand, own, split in zip(demands, times, budgets, strict=True)
        )

    def _stages(
        self,
        demand: Demand,
        times: Sequence[Sequence[tuple[int, float]]],
        split: Sequence[float],
        holds: dict[int, frozenset[int]],
        machines: Machines,
    ) -> tuple[StagePlan, ...]:
        later = later_seconds(demand.application, split)
        if self.request_deadlines:
            later = (0.0,) * len(later)
        plans = []
        for stage, model in enumerate(demand.models):
            batches = np.zeros(len(machines.memory), np.int64)
            for worker in machines.present:
                if model < 0 or model in holds.get(worker, ()):
                    batches[worker] = times[stage][-1][0]
            plans.append(StagePlan(batches, split[stage], later[stage]))
        return tuple(plans)


def _seconds_each(sizes: Sequence[tuple[int, float]], seconds: float) -> float:
    """What a request takes of a worker, in the best batch that is done within a time; alone if none is."""
    return min((time / size for size, time in sizes if time <= seconds), default=sizes[0][1])


@dataclass(frozen=True, slots=True)
class FlexQueues:
    """Decides for the queues of one application."""

    times: WholeWorkers
    preemption: float

    def at_once(self, stage: int, left: Sequence[float], plan: StagePlan | None) -> int:
        """How many jobs the candidate of a queue has."""
        later = 0.0 if plan is None else plan.later
        return self._candidate(stage, [seconds - later for seconds in left])[0]

    def decide(self, queue: Queue, capacity: Capacity) -> Decision:
        """Start the candidate on an idle worker of the group, or in place of a batch that is much smaller."""
        plan, stage, times = queue.plan, queue.stage, self.times
        if plan is not None and not plan.batches.any():  # its model has no room beside others anywhere
            return Drop(queue.length)
        left = queue.left(0.0 if plan is None else plan.later)
        single = times.seconds_of(stage, 1)
        lost = bisect_left(left, single)
        if lost:  # the deadlines of those before it are sooner still
            return Drop(lost)
        size, skip = self._candidate(stage, left)
        choice = Choice(times.configuration(stage, size))
        if plan is None:  # nothing is planned: as on a worker of its own
            return Candidates((choice,), skip=skip)
        _, cpu, gpu = choice.configuration
        idle = plan.workers & (capacity.free_cpu >= cpu) & (capacity.free_gpu >= gpu)
        if idle.any():
            return Candidates((choice,), None, idle, skip)
        smaller = [
            (each.jobs, -each.seconds_left, worker)
            for worker, each in enumerate(queue.running)
            if each is not None and plan.batches[worker] and size >= self.preemption * each.jobs
        ]
        if smaller:
            return Preempt(choice, min(smaller)[2], skip)
        return Candidates(())

    def _candidate(self, stage: int, left: Sequence[float]) -> tuple[int, int]:
        """The most jobs that are in time together, and how many more urgent ones stay behind."""
        best, skip = 0, 0
        for size, time in self.times.times[stage]:
            first = bisect_left(left, time)
            jobs = min(size, len(left) - first)
            if jobs > best:
                best, skip = jobs, first
        return best, skip
