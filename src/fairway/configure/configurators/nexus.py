"""Nexus (SOSP'19): sessions packed onto accelerators by their duty cycles, and requests dropped early.

The SLO of a workflow is split among its stages (`budgets.query_split`), and each stage is a session (`squishy`). Nexus
takes as many accelerators as the rates ask for; here there are so many as there are, so the rates are raised, or
lowered, in proportion until the packing just fits. What is left over repeats the fullest. A stage's deadline is that of
the request less what later stages may take. When an accelerator of a stage is free, a window of the planned batch moves
over the queue: as long as its first request cannot be in time with the batch behind it, that request is dropped;
then the window runs. With `lazy`, only what has no chance even alone is dropped, and the first request decides how
large a batch may be, as in serving systems before.
"""

from __future__ import annotations

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
from fairway.configure.platform import Platform
from fairway.configure.queues import Candidates, Choice, Decision, Drop, Queue
from fairway.configure.squishy import Bin, ModelSession, pack
from fairway.configure.whole_workers import WholeWorkers
from fairway.errors import InputError

_ROUNDS = 40


@dataclass(frozen=True, slots=True)
class Nexus:
    """Plan batches and accelerators by squishy bin packing once an `epoch` (seconds), and drop early.

    `rounds` is how many batches the time of a stage has to hold: 2 in the paper; 1 trusts in early drop instead.
    """

    name: ClassVar[str] = "nexus"
    epoch: float = 10.0
    rounds: int = 2
    lazy: bool = False

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise InputError(f"nexus: rounds: {self.rounds} given, expected a whole number >= 1")
        if not self.epoch > 0:
            raise InputError(f"nexus: epoch: {self.epoch:g} given, expected a number of seconds > 0")

    @property
    def placer(self) -> str:
        """Near the data, of the workers that are planned."""
        return "near-data"

    @property
    def turns(self) -> TurnOrder:
        """Round robin."""
        return "ring"

    @property
    def fleet(self) -> FleetRules:
        """It plans for all queues."""
        return FleetRules(SquishyPlanner(self.rounds), epoch_seconds=self.epoch)

    def prepare(self, application: Application, platform: Platform, draws: np.random.Generator) -> NexusQueues:  # noqa: ARG002
        """The times of an application."""
        return NexusQueues(WholeWorkers.of(application, platform), lazy=self.lazy)


@dataclass(frozen=True, slots=True)
class SquishyPlanner:
    """Which accelerator runs which stages, in which batches."""

    rounds: int = 2

    def plan(
        self,
        demands: Sequence[Demand],
        machines: Machines,
        before: FleetPlan | None,
        now: float = 0.0,  # noqa: ARG002
    ) -> FleetPlan:
        """Pack as much of the demand as there are workers for."""
        applications = [WholeWorkers.of(each.application) for each in demands]
        budgets = [
            split_slo(each.application.workflow, times.times, each.application.slo_seconds, self.rounds)
            for each, times in zip(demands, applications, strict=True)
        ]
        known = [each.rate for each in demands if each.rate is not None]
        usual = sum(known) / len(known) if known else 1.0
        sessions = [
            ModelSession(
                usual if each.rate is None else each.rate,
                seconds,
                tuple(times.times[stage]),
                model,
                float(machines.model_bytes[model]) if model >= 0 else 0.0,
                self.rounds,
            )
            for each, times, split in zip(demands, applications, budgets, strict=True)
            for stage, (model, seconds) in enumerate(zip(each.models, split, strict=True))
        ]
        bins = _filled(sessions, machines)
        wanted = [frozenset(sessions[number].model for number in each.batches) for each in bins]
        workers = stay_put(wanted, machines, before, [each.models for each in demands])
        batches = np.zeros((len(sessions), len(machines.memory)), np.int64)
        for each, worker in zip(bins, workers, strict=True):
            for number, batch in each.batches.items():
                batches[number, worker] = batch
        plans, first = [], 0
        for demand, split in zip(demands, budgets, strict=True):
            later = later_seconds(demand.application, split)
            plans.append(
                tuple(StagePlan(batches[first + stage], split[stage], later[stage]) for stage in range(len(split)))
            )
            first += len(split)
        return tuple(plans)


def _filled(sessions: Sequence[ModelSession], machines: Machines) -> list[Bin]:
    """The packing of the highest rates, in the proportion that they have, that there are workers for."""
    present = machines.present
    memory = float(min(machines.memory[worker] for worker in present))
    low, high = 1e-6, 1e6
    for _ in range(_ROUNDS):
        middle = (low * high) ** 0.5
        if len(pack([each._replace(rate=middle * each.rate) for each in sessions], memory)) <= len(present):
            low = middle
        else:
            high = middle
    bins = pack([each._replace(rate=low * each.rate) for each in sessions], memory)
    bins = sorted(bins, key=lambda each: -_bytes(sessions, set(each.batches)))
    bins, rest = bins[: len(present)], bins[len(present) :]
    for each in rest:  # more than there are workers for, at any rate: they run beside others, if memory has room
        for number, batch in each.batches.items():
            fits = [other for other in bins if _bytes(sessions, {*other.batches, number}) <= memory]
            if fits:
                min(fits, key=lambda other: other.occupancy(sessions)).batches[number] = batch
    fullest = sorted(bins, key=lambda each: -each.occupancy(sessions))
    return bins + [fullest[number % len(fullest)] for number in range(len(present) - len(bins))]


def _bytes(sessions: Sequence[ModelSession], numbers: set[int]) -> float:
    """What the models of some sessions take, each once."""
    return sum({sessions[each].model: sessions[each].bytes for each in numbers}.values())


@dataclass(frozen=True, slots=True)
class NexusQueues:
    """Decides for the queues of one application."""

    times: WholeWorkers
    lazy: bool = False

    def decide(self, queue: Queue, capacity: Capacity) -> Decision:
        """Drop what cannot be in time with a full batch behind it, then start the batch on a planned worker."""
        plan, stage, times = queue.plan, queue.stage, self.times
        if plan is None:  # nothing is planned: as on a worker of its own
            return Candidates((Choice(times.configuration(stage, 1)),))
        if not plan.batches.any():  # no worker has room for its model beside those of others
            return Drop(queue.length)
        free = np.where((capacity.free_cpu > 0) | (capacity.free_gpu > 0), plan.batches, 0)
        planned = int(free.max())
        if not planned:
            return Candidates(())
        left = queue.left(plan.later)
        for place, seconds in enumerate(left):
            size = min(planned, queue.length - place)
            if self.lazy:
                size = times.largest_within(stage, seconds, size)
            if size and times.seconds_of(stage, size) <= seconds:
                if place:
                    return Drop(place)
                return Candidates((Choice(times.configuration(stage, size)),), None, free == planned)
        return Drop(len(left))
