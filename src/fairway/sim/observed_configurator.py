"""A configurator with a stopwatch: how long each decision takes, all in all and for the task that it starts."""

from __future__ import annotations

import time
from array import array
from collections import deque
from typing import Any, ClassVar

import numpy as np

from fairway.configure.application import Application
from fairway.configure.configurator import Configurator, QueueConfigurator, TurnOrder
from fairway.configure.invokers import Invokers
from fairway.configure.platform import Platform
from fairway.configure.queues import Decision, Dispatch, Queue


class ObservedConfigurator:
    """Decides as the configurator that it is given, and writes down what each decision took.

    With `by_task`, it also remembers which tasks a pass has started by which decision.
    """

    name: ClassVar[str] = "observed"

    def __init__(self, configurator: Configurator, *, by_task: bool = False) -> None:
        self._by_task = by_task
        self._configurator = configurator
        self._deciders: list[_ObservedQueues] = []
        self.seconds = array("d")

    @property
    def turns(self) -> TurnOrder:
        """As the configurator's."""
        return self._configurator.turns

    def prepare(self, application: Application, platform: Platform, draws: np.random.Generator) -> QueueConfigurator:
        """What decides for an application."""
        decider = self._configurator.prepare(application, platform, draws)
        self._deciders.append(_ObservedQueues(decider, self.seconds, by_task=self._by_task))
        return self._deciders[-1]

    def forget(self) -> None:
        """A pass begins: what earlier decisions took is of no more interest."""
        for decider in self._deciders:
            for started in decider.started.values():
                started.clear()

    def seconds_of(self, application: int, stage: int) -> float:
        """What the decision took that started the next task of a stage, in the order of the pass."""
        return self._deciders[application].started[stage].popleft()


class _ObservedQueues:
    def __init__(self, decider: QueueConfigurator, seconds: array[float], *, by_task: bool) -> None:
        self._by_task = by_task
        self._decider = decider
        self._seconds = seconds
        self.started: dict[int, deque[float]] = {}
        self.shares: Any = getattr(decider, "shares", None)

    def decide(self, queue: Queue, invokers: Invokers) -> Decision:
        begin = time.perf_counter()
        decision = self._decider.decide(queue, invokers)
        taken = time.perf_counter() - begin
        self._seconds.append(taken)
        if self._by_task and isinstance(decision, Dispatch):
            self.started.setdefault(queue.stage, deque()).append(taken)
        return decision
