"""When an engine that plans asks for a plan for all of its queues, from which rates, and what it does with the answer.

The first plan is made when the engine starts, before any rate is known, the second after a first, short epoch, all
others once an epoch, and one as soon as a worker has gone or come. A rate is the number of requests since the last plan
over the time since; where none came, the rate of before holds, so that a pause is not taken for the end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from fairway.configure.fleet_plan import Demand, FleetPlan, FleetRules, Machines
from fairway.engine.serving.stage_queues import StageQueue, StageQueues
from fairway.engine.serving.warming import Tell, Warming
from fairway.place.fleet import Fleet


class FleetPlanning:
    """The plan that holds; `due` is when the next is to be made."""

    def __init__(self, rules: FleetRules, queues: StageQueues, fleet: Fleet) -> None:
        assert rules.planner is not None
        self._rules = rules
        self._planner = rules.planner
        self._queues = queues
        self._memory = np.maximum(fleet.memory, 1.0)  # one without memory can still run what needs no model
        self._model_bytes = fleet.model_bytes
        workflows = len(queues.first)
        self._counts = [0] * workflows
        self._rates: list[float | None] = [None] * workflows
        self._arrivals: list[deque[float]] = [deque() for _ in range(workflows)]
        self._since = 0.0
        self._plans = 0
        self.plan: FleetPlan | None = None
        self.due = 0.0

    def arrived(self, workflow: int, now: float) -> None:
        """A request for a workflow is there."""
        self._counts[workflow] += 1
        if self._rules.window_seconds > 0:
            self._arrivals[workflow].append(now)

    def make(self, now: float, absent: set[int], warming: Warming | None, tell: Tell) -> None:
        """Plan, and have models loaded where they will be needed."""
        self._measure(now)
        memory = self._memory.copy()
        memory[sorted(absent)] = 0.0
        demands = [
            Demand(queues[0].application, tuple(queue.model for queue in queues), rate, self._of_late(arrivals, now))
            for queues, rate, arrivals in zip(self._by_workflow(), self._rates, self._arrivals, strict=True)
        ]
        self.plan = self._planner.plan(demands, Machines(memory, self._model_bytes), self.plan, now)
        for queues, plans in zip(self._by_workflow(), self.plan, strict=True):
            for queue, plan in zip(queues, plans, strict=True):
                queue.plan = plan
                if warming is not None and queue.model >= 0:
                    for worker in np.flatnonzero(plan.workers).tolist():
                        warming.settle(queue.model, worker, now, tell)
        rules = self._rules
        self.due = now + (rules.first_epoch_seconds if self._plans == 0 else rules.epoch_seconds)
        self._plans += 1

    def _measure(self, now: float) -> None:
        elapsed = now - self._since
        if elapsed > 0 and any(self._counts):
            self._rates = [
                count / elapsed if count else before for count, before in zip(self._counts, self._rates, strict=True)
            ]
            self._counts = [0] * len(self._counts)
            self._since = now

    def _of_late(self, arrivals: deque[float], now: float) -> tuple[float, ...]:
        while arrivals and arrivals[0] < now - self._rules.window_seconds:
            arrivals.popleft()
        return tuple(arrivals)

    def _by_workflow(self) -> list[Sequence[StageQueue]]:
        ends = [*self._queues.first[1:], len(self._queues.all)]
        return [self._queues.all[first:end] for first, end in zip(self._queues.first, ends, strict=True)]
