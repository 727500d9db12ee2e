"""Placers and configurators with a stopwatch: how long their decisions take, which every request waits for.

Decisions themselves read no clock; whoever drives an engine wraps them in these.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from fairway.configure.application import Application
from fairway.configure.capacity import Capacity
from fairway.configure.configurator import Configurator, QueueConfigurator, TurnOrder
from fairway.configure.fleet_plan import fleet_rules_of
from fairway.configure.platform import Platform
from fairway.configure.queues import Decision, Queue
from fairway.place.batch import Batch, Room
from fairway.place.placer import BatchPlacer, Placer, WorkerRules
from fairway.place.plan import Draws, Plan, Request
from fairway.place.state import View

Note = Callable[[float], None]
"""Takes the seconds of a decision."""

QueueNote = Callable[[float, int, int], None]
"""Takes the seconds of a decision, the number of its workflow, and its stage."""


class TimedPlacer:
    """Decides as the placer that it is given, and notes what each plan took; with `hops`, each next worker, too."""

    name: ClassVar[str] = "timed"

    def __init__(self, placer: BatchPlacer, note: Note, *, hops: bool = False) -> None:
        self._placer: Any = placer
        self._note = note
        self.rules: WorkerRules = placer.rules
        if isinstance(placer, Placer) and not hops:
            self.next_worker = placer.next_worker  # type: ignore[method-assign]
        self.place_batch = placer.place_batch  # type: ignore[method-assign]

    def plan(self, request: Request, view: View, now: float, draws: Draws) -> Plan:
        """The plan of the placer."""
        began = time.perf_counter()
        plan: Plan = self._placer.plan(request, view, now, draws)
        self._note(time.perf_counter() - began)
        return plan

    def next_worker(
        self,
        request: Request,
        stage: int,
        planned: int,
        view: View,
        now: float,
        draws: Draws,
        *,
        gathered: bool = False,
    ) -> int:
        """The worker that the placer chooses."""
        began = time.perf_counter()
        worker: int = self._placer.next_worker(request, stage, planned, view, now, draws, gathered=gathered)
        self._note(time.perf_counter() - began)
        return worker

    def place_again(self, request: Request, stage: int, together: int, view: View, now: float, draws: Draws) -> int:
        """The worker that the placer chooses for tasks that wait; asked only where its rules say that tasks move."""
        worker: int = self._placer.place_again(request, stage, together, view, now, draws)
        return worker

    def place_batch(self, batch: Batch, room: Room, view: View, now: float, draws: Draws) -> int:
        """The worker that the placer chooses for a batch; its time counts with the decision about its size."""
        worker: int = self._placer.place_batch(batch, room, view, now, draws)
        return worker


class TimedConfigurator:
    """Decides as the configurator that it is given, and notes what each decision took.

    With `warms_up`, it decides once for each stage beforehand, so that no request waits for code to be compiled.
    """

    name: ClassVar[str] = "timed"

    def __init__(self, configurator: Configurator, note: QueueNote, *, warms_up: bool = False) -> None:
        self.fleet = fleet_rules_of(configurator)
        self._configurator = configurator
        self._note = note
        self._warms_up = warms_up
        self._prepared = 0

    @property
    def placer(self) -> str:
        """As the configurator's."""
        return self._configurator.placer

    @property
    def turns(self) -> TurnOrder:
        """As the configurator's."""
        return self._configurator.turns

    def prepare(self, application: Application, platform: Platform, draws: np.random.Generator) -> QueueConfigurator:
        """What decides for an application."""
        decider = self._configurator.prepare(application, platform, draws)
        if self._warms_up:
            idle = Capacity.idle(1, platform.cpu, platform.gpu)
            for stage, before in enumerate(application.workflow.predecessors):
                sources = [(0,) * len(before)] if before else ()
                warm = np.ones(1, np.bool_)
                decider.decide(Queue(stage, 1, application.slo_seconds, sources, warm=warm, noise=0.0), idle)
        self._prepared += 1
        return _TimedQueues(decider, self._note, self._prepared - 1)


class _TimedQueues:
    def __init__(self, decider: QueueConfigurator, note: QueueNote, number: int) -> None:
        self._decider = decider
        self._note, self._number = note, number
        self.shares: Any = getattr(decider, "shares", None)
        self.reserves: Any = getattr(decider, "reserves", None)
        self.at_once: Any = getattr(decider, "at_once", None)

    def decide(self, queue: Queue, capacity: Capacity) -> Decision:
        began = time.perf_counter()
        decision = self._decider.decide(queue, capacity)
        self._note(time.perf_counter() - began, self._number, queue.stage)
        return decision
