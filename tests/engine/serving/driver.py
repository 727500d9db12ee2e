"""Runs serving engines in virtual time, as small as a driver can be: one for each worker, and the one that plans.

It delivers messages, lets runs and copies take their time, wakes engines when they are due, and lets workers and the
engine that plans be lost and come back. After every event, all engines are validated. Messages between two engines keep
their order; a test may say how long they take, which runs and copies fail, and how long they take. Where engines
publish their rows, each has a table of its own, and all others get what it publishes before anything else. If it
`gathers`, all events that come to an engine in a row at one moment are handed over at once; to a desk, they always are.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np

from fairway.engine.serving.desk import Desk, DeskOptions
from fairway.engine.serving.engine import ServingEngine, ServingEngineOptions
from fairway.engine.serving.messages import (
    Cancelled,
    Command,
    Event,
    Evict,
    Load,
    ModelFailed,
    ModelLoaded,
    PeerJoined,
    PeerLoad,
    PeerLost,
    PeerModels,
    PublishLoad,
    PublishModels,
    Refuse,
    Reply,
    RequestArrived,
    Restarted,
    Run,
    Send,
    Stop,
    TaskDone,
    TimePassed,
)
from fairway.engine.serving.schedule import Schedule, schedule_of
from fairway.engine.serving.stage_planning import planned_graphs
from fairway.place.fleet import OUTSIDE
from fairway.place.homes import homes_under
from fairway.place.state import StateTable
from fairway.sim.scenario import Scenario

AT_ONCE, SOON, LATE = range(3)
"""What comes first of all that falls on one moment; the engine that plans with a desk comes last."""


_SUPERVISOR = -2


class Ran(NamedTuple):
    """A run: its worker, what was asked for, and when it ends."""

    worker: int
    run: Run
    start: float
    end: float

    @property
    def keys(self) -> list[int]:
        """The requests that it is for, in order."""
        return [self.run.flow.request.key, *(mate.flow.request.key for mate in self.run.mates)]

    @property
    def stage(self) -> int:
        return self.run.stage


class Cluster:
    """Engines on a scenario's workers; `commands` are all that they have asked for, each with its time and engine."""

    def __init__(
        self, scenario: Scenario, scheduler: str | Schedule = "compass", *, seed: int = 0, **options: Any
    ) -> None:
        self.schedule = schedule = schedule_of(scheduler) if isinstance(scheduler, str) else scheduler
        self.scenario, self.fleet = scenario, scenario.fleet()
        self.graphs = planned_graphs(schedule.rules, dict.fromkeys(scenario.graphs(self.fleet)))
        self.draws = np.random.default_rng(seed)
        desk = None
        if schedule.configurator is not None:
            applications = dict(zip(self.graphs, scenario.applications(), strict=True))
            cold = {"holds_cold": scenario.cold.held, "prewarms": scenario.cold.prewarms}
            desk = DeskOptions(schedule.configurator, applications, scenario.platform(), **cold)
        given = {
            "publishes": False,
            "batches": scenario.batches(self.graphs),
            "shares": scenario.fixed_shares(self.graphs),
            "initial_copies": scenario.cold.initial,
            "keep_alive_seconds": scenario.cold.keep_alive_seconds,
        }
        self.options = ServingEngineOptions(**{**given, "desk": desk, **options})
        self.now = 0.0
        self.commands: list[tuple[float, int, Command]] = []
        self.ran: list[Ran] = []
        self.answers: Counter[int] = Counter()
        self.replies: dict[int, float] = {}
        self.refusals: dict[int, Refuse] = {}
        self.steps = 0
        self.gathers = False
        self.latency: Callable[[], float] = lambda: 0.0
        self.takes: Callable[[Run], float] = lambda run: run.seconds
        self.fails: Callable[[Run], dict[int, str]] = lambda _: {}
        self.copy_fails: Callable[[int], str | None] = lambda _: None
        self.epoch = 0
        self._heap: list[tuple[float, int, int, int, int, Any]] = []
        self._number = 0
        self._lives = [0] * (len(self.fleet) + 1)
        self._published: dict[int, int] = {}
        self._heard: dict[tuple[int, int], float] = {}
        self._known: dict[int, float] = {}  # since when the others know that an engine is back
        self._dues = [math.inf] * (len(self.fleet) + 1)
        self._table = self._new_table()
        self.engines: list[ServingEngine | None] = [self._new_engine(worker) for worker in range(len(self.fleet))]
        self.engines.append(self._new_engine(OUTSIDE) if schedule.centralised else None)
        for worker in range(len(self.fleet)):
            self._wake(worker)
            if self.options.publishes:
                self.tell(worker)  # the others hear what it starts with

    def _new_table(self) -> StateTable:
        return StateTable(self.fleet, homes=homes_under(self.schedule.rules, self.graphs, self.fleet))

    def _new_engine(self, number: int) -> ServingEngine:
        table = self._new_table() if self.options.publishes else self._table
        options = replace(self.options, epoch=self.epoch)
        return ServingEngine(number, self.schedule.placer, table, self.draws, options)

    # What a test looks at

    @property
    def desk(self) -> Desk:
        """The desk of the engine that plans."""
        planner = self.engines[OUTSIDE]
        assert planner is not None
        assert planner.desk is not None
        return planner.desk

    def worker(self, number: int) -> ServingEngine:
        """The engine of a worker that is there."""
        engine = self.engines[number]
        assert engine is not None
        return engine

    def of_kind(self, kind: type) -> list[Any]:
        """All commands of a kind so far, and all messages of it that engines have sent each other."""
        asked = [command for _, _, command in self.commands]
        return [
            each for each in (*asked, *(each.message for each in asked if isinstance(each, Send))) if type(each) is kind
        ]

    def is_quiet(self) -> bool:
        """Whether nothing waits, runs or is kept anywhere."""
        for engine in self.engines:
            if engine is None:
                continue
            if engine.running is not None or len(engine.queue) or engine.beside or engine.here or engine.ingress.open:
                return False
            if engine.desk is not None and (engine.desk.open or engine.desk.batches or engine.desk.waiting):
                return False
        return True

    # What a test lets happen

    def ask(
        self, *keys: int, workflow: int = 0, at: float | None = None, ingress: int = 0, deadline: float = math.inf,
        due: float | None = None,
    ) -> None:  # fmt: skip
        """Let clients ask for a workflow."""
        at = self.now if at is None else at
        slo = self.scenario.slo_of(self.scenario.workflows[workflow])
        for key in keys:
            arrived = RequestArrived(key, self.graphs[workflow], deadline, at + slo if due is None else due)
            self.put(OUTSIDE if self.schedule.centralised else ingress, arrived, at)

    def cancel(self, key: int, ingress: int = 0) -> None:
        """Let a client change its mind."""
        self.put(OUTSIDE if self.schedule.centralised else ingress, Cancelled(key))

    def put(self, target: int, event: Any, at: float | None = None, priority: int = SOON) -> None:
        """Let an engine get an event."""
        self._number += 1
        if target == OUTSIDE and self.options.desk is not None and priority == SOON:
            priority = LATE
        moment = self.now if at is None else at
        heappush(self._heap, (moment, priority, self._number, target, self._lives[target], event))

    def run(self, until: float = math.inf, steps: int = 100_000) -> None:
        """Let happen what happens up to a time; nothing may take more steps than that."""
        for _ in range(steps):
            if not self._heap or self._heap[0][0] > until:
                self.now = max(self.now, until) if until < math.inf else self.now
                return
            self.step()
        raise AssertionError(f"after {steps} steps, at {self.now} s, there is still something to come")

    def step(self) -> None:
        """Let the next event happen."""
        self.now, priority, _, target, life, event = heappop(self._heap)
        self.steps += 1
        engine = self.engines[target]
        own = isinstance(event, TaskDone | ModelLoaded | ModelFailed)
        if engine is None or (life != self._lives[target] and not own):
            return  # it was meant for an engine that is gone; but late news of its runs and copies may come
        if type(event) is TimePassed and self._dues[target] > self.now:
            return  # it wanted to look sooner meanwhile, and has done so
        events = [event]
        if self.gathers or (engine.desk is not None and priority == LATE):
            while self._heap and self._heap[0][:2] == (self.now, priority) and self._heap[0][3] == target:
                _, _, _, _, life, event = heappop(self._heap)
                if life == self._lives[target]:
                    events.append(event)
        if TimePassed() in events:
            self._dues[target] = math.inf
        self.tell(target, *events)

    def tell(self, target: int, *events: Event) -> list[Command]:
        """Let an engine take events in now, and do what it asks for."""
        engine = self.engines[target]
        assert engine is not None
        commands = engine.handle(self.now, events)
        for each in self.engines:
            if each is not None:
                each.validate()
        for command in commands:
            self.commands.append((self.now, target, command))
            self._do(target, command)
        self._wake(target)
        return commands

    def _wake(self, target: int) -> None:
        engine = self.engines[target]
        if engine is not None and engine.due < self._dues[target]:
            self._dues[target] = engine.due
            self.put(target, TimePassed(), max(engine.due, self.now), LATE)

    def _do(self, source: int, command: Any) -> None:
        match command:
            case Send(worker=target, message=message):
                arrives = max(self.now + self.latency(), self._heard.get((source, target), 0.0))
                self._heard[source, target] = arrives
                self.put(target, message, arrives)
            case Run(run=number):
                end = self.now + self.takes(command)
                self.ran.append(Ran(source, command, self.now, end))
                self.put(source, TaskDone(number, self.fails(command), end - self.now), end)
            case Load(copy=number, model=model):
                problem = self.copy_fails(model)
                there = self.now + self.fleet.fetch_seconds[model]
                ended = ModelLoaded(number, model) if problem is None else ModelFailed(number, model, problem)
                self.put(source, ended, there)
            case PublishLoad(sequence=number, queued=queued, busy_until=busy_until):
                assert number > self._published.get(source, number - 1), "numbers of rows rise"
                self._published[source] = number
                self._publish(source, PeerLoad(source, number, queued, busy_until))
            case PublishModels(sequence=number, models=models):
                self._publish(source, PeerModels(source, number, models))
            case Reply(key=key, finished=finished):
                self.answers[key] += 1
                self.replies[key] = finished
            case Refuse(key=key):
                self.answers[key] += 1
                self.refusals[key] = command
            case _:
                assert isinstance(command, Evict | Restarted | Stop)

    def _publish(self, source: int, row: PeerLoad | PeerModels) -> None:
        for target in (*range(len(self.fleet)), OUTSIDE):
            if target != source and self.engines[target] is not None:
                self.put(target, row, priority=AT_ONCE)

    # What goes wrong

    def lose(self, number: int) -> None:
        """An engine is gone, with what was on its way to it; the others hear of it from a supervisor."""
        self.engines[number] = None
        self._lives[number] += 1
        self._dues[number] = math.inf
        if number != OUTSIDE and not self.options.publishes:
            self._table.leave(number)
        for other in self._others(number):
            self._news(other, PeerLost(number), self.now)

    def can_come_back(self, number: int) -> bool:
        """Whether all have heard of the loss of an engine, and of all that it had said before."""
        said = [
            self._heard.get((source, other), 0.0) for source in (number, _SUPERVISOR) for other in self._others(number)
        ]
        return self.engines[number] is None and max(said, default=0.0) <= self.now

    def is_known(self, number: int) -> bool:
        """Whether an engine is there, and all others have heard so."""
        return self.engines[number] is not None and self._known.get(number, 0.0) <= self.now

    def bring_back(self, number: int) -> None:
        """Another engine takes the place of one that was lost; the others hear that after what was said before."""
        self.epoch += 1
        if number != OUTSIDE and not self.options.publishes:
            self._table.join(number)
        self.engines[number] = self._new_engine(number)
        for other in range(len(self.fleet)):
            if self.engines[other] is None:
                self.tell(number, PeerLost(other))
        for other in self._others(number):
            before = [at for (_, target), at in self._heard.items() if target == other]
            self._news(other, PeerJoined(number), max(before, default=self.now))
            self._known[number] = max(self._known.get(number, 0.0), self._heard[_SUPERVISOR, other])

    def _others(self, number: int) -> list[int]:
        everyone = (*range(len(self.fleet)), OUTSIDE)
        return [other for other in everyone if other != number and self.engines[other] is not None]

    def _news(self, target: int, news: PeerLost | PeerJoined, after: float) -> None:
        arrives = max(self.now + self.latency(), after, self._heard.get((_SUPERVISOR, target), 0.0))
        self._heard[_SUPERVISOR, target] = arrives
        self.put(target, news, arrives)
