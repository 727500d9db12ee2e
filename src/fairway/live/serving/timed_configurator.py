"""A configurator with a stopwatch: how long its decisions take, which the requests in all queues wait for."""

from __future__ import annotations

import time
from typing import Any, ClassVar

import numpy as np

from fairway.configure.application import Application
from fairway.configure.configurator import Configurator, QueueConfigurator, TurnOrder
from fairway.configure.invokers import Invokers
from fairway.configure.platform import Platform
from fairway.configure.queues import Decision, Queue
from fairway.live.serving.tally import Histogram


class TimedConfigurator:
    """Decides as the configurator that it is given, and counts what each decision took."""

    name: ClassVar[str] = "timed"

    def __init__(self, configurator: Configurator, times: Histogram) -> None:
        self._configurator = configurator
        self._times = times

    @property
    def turns(self) -> TurnOrder:
        """As the configurator's."""
        return self._configurator.turns

    def prepare(self, application: Application, platform: Platform, draws: np.random.Generator) -> QueueConfigurator:
        """What decides for an application; it has decided once for each stage, so that all of its code is there."""
        decider = self._configurator.prepare(application, platform, draws)
        idle = Invokers.idle(1, platform.cpu, platform.gpu)
        for stage, before in enumerate(application.workflow.predecessors):
            sources = [(0,) * len(before)] if before else ()
            warm = np.ones(1, np.bool_)
            decider.decide(Queue(stage, 1, application.slo_seconds, sources, warm=warm, noise=0.0), idle)
        return _TimedQueues(decider, self._times)


class _TimedQueues:
    def __init__(self, decider: QueueConfigurator, times: Histogram) -> None:
        self._decider = decider
        self._times = times
        self.shares: Any = getattr(decider, "shares", None)

    def decide(self, queue: Queue, invokers: Invokers) -> Decision:
        began = time.perf_counter()
        decision = self._decider.decide(queue, invokers)
        self._times.add(time.perf_counter() - began)
        return decision
