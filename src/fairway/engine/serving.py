"""The serving engine of one worker: receives requests, plans them, runs tasks, and keeps its memory (Compass).

It is told what happens (`serving_messages`) and answers with what is to be done; it reads no clock, touches nothing.
Every worker has one, and all are alike: whichever receives a request plans it for the whole cluster from what it knows
of the others (`ingress`); whoever finishes a task decides where the tasks go that take its output. One task runs at a
time; models for the next ones are copied meanwhile.

When a worker is lost, each ingress plans again what it had of the requests received there. A task may then run twice,
but a reply is given once. The requests received by a lost worker itself fail: whoever sent them has to ask another
worker, and everybody drops what they hold of them.

An engine whose number is `OUTSIDE` has no accelerator: it only plans, for a cluster with one scheduler for all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fairway.engine.flow import Flow
from fairway.engine.ingress import Ingress, ServingError
from fairway.engine.serving_messages import (
    HIT,
    MISS,
    NO_MODEL,
    PARTIAL,
    Command,
    Event,
    Evict,
    Forget,
    InputsArrived,
    Load,
    ModelLoaded,
    PeerJoined,
    PeerLoad,
    PeerLost,
    PeerModels,
    PublishLoad,
    PublishModels,
    Replanned,
    RequestArrived,
    Run,
    Send,
    SendAgain,
    StageDone,
    StageMoved,
    StageStuck,
    TaskDone,
)
from fairway.engine.stage_facts import StageFacts
from fairway.engine.task_queue import Task, TaskQueue
from fairway.place.fleet import OUTSIDE
from fairway.place.graph import TaskGraph
from fairway.place.memory import DeviceMemory, DoesNotFitError
from fairway.place.plan import Draws, NoPlaceError
from fairway.place.scheduler import Scheduler
from fairway.place.state import ABSENT, StateTable, View
from fairway.place.state import Load as OwnLoad

_MOST_FORGOTTEN = 4096
"""Late messages about the last so many requests that are over are recognised as such."""


@dataclass(frozen=True, slots=True)
class ServingEngineOptions:
    """How an engine works.

    `recovers`: workers tell the ingress how far its requests are, and keep outputs until the reply, so that nothing
    is lost with a worker. `publishes`: changes of the own row are commands; not needed with a table that all share.
    `epoch` is larger each time that a worker comes back, and makes the numbers of its runs and copies its own.
    """

    recovers: bool = True
    publishes: bool = True
    epoch: int = 0


class ServingEngine:
    """Events in, commands out. `handle` is all that a driver needs; the rest can be looked at."""

    __slots__ = (
        "_changed",
        "_copied_until",
        "_copies",
        "_facts",
        "_fetch_seconds",
        "_forgotten",
        "_gathers",
        "_kept",
        "_models_changed",
        "_numbers",
        "_prefetches",
        "_publishes",
        "_recovers",
        "_run",
        "_table",
        "_tasks",
        "_waits_for",
        "draws",
        "ingress",
        "load",
        "me",
        "memory",
        "now",
        "out",
        "queue",
        "running",
        "scheduler",
    )

    def __init__(
        self,
        me: int,
        scheduler: Scheduler,
        table: StateTable,
        draws: Draws,
        options: ServingEngineOptions | None = None,
    ) -> None:
        options = options or ServingEngineOptions()
        fleet, rules = table.fleet, scheduler.rules
        self.me = me
        self.scheduler = scheduler
        self.draws = draws
        self.ingress = Ingress(self, recovers=options.recovers)
        self.queue = TaskQueue()
        self.load = OwnLoad(rules.running_load)
        self.memory = DeviceMemory(0.0 if me == OUTSIDE else fleet.memory[me], fleet.model_bytes, rules.memory)
        self.running: Task | None = None
        self.now = -math.inf
        self.out: list[Command] = []
        self._recovers = options.recovers
        self._publishes = options.publishes
        self._gathers = rules.gathers_joins
        self._prefetches = rules.memory.eviction == "look-ahead" and rules.memory.prefetch_models > 0
        self._table = table
        self._fetch_seconds: list[float] = fleet.fetch_seconds.tolist()
        self._facts: dict[TaskGraph, StageFacts] = {}
        self._tasks: dict[tuple[int, int], Task] = {}  # joins that lack inputs; with recovery, all that wait or run
        self._kept: dict[int, dict[int, Flow]] = {}
        self._forgotten: dict[int, None] = {}
        self._copies: dict[int, tuple[int, float]] = {}  # by model, the number of its copy and when it should end
        self._copied_until = -math.inf
        self._waits_for: set[int] = set()
        self._numbers = options.epoch << 40
        self._run = -1
        self._changed = False
        self._models_changed = False

    def handle(self, now: float, event: Event) -> list[Command]:
        """Take in what happened, and say what is to be done now."""
        if now < self.now:
            raise ServingError(f"worker {self.me}: time went back from {self.now} s to {now} s: {event}")
        self.now = now
        out = self.out = []
        _HANDLERS[type(event)](self, event)
        if self.running is None and self.queue.ready:
            self._start_next()
        if self._changed:
            self._write_load()
        if self._models_changed:
            self._models_changed = False
            if self._publishes:
                self._numbers += 1
                out.append(PublishModels(self._numbers, self.memory.resident))
        return out

    # What the ingress needs too

    def facts(self, graph: TaskGraph) -> StageFacts:
        """The numbers of a graph for this worker."""
        facts = self._facts.get(graph)
        if facts is None:
            facts = self._facts[graph] = StageFacts.of(graph, self.me)
        return facts

    def view(self) -> View:
        """What is known of all workers now, of this one exactly."""
        if self._changed:
            self._write_load()
        return self._table.view(self.me, self.now)

    def is_present(self, worker: int) -> bool:
        """Whether a worker is there, as far as this one knows."""
        return bool(self._table.view(OUTSIDE, self.now).queued[worker] != ABSENT)

    def send(self, flow: Flow, stage: int, worker: int, sources: tuple[int, ...], *, gathered: bool = False) -> None:
        """Bring inputs of a task to its worker."""
        if worker == self.me:
            self._take(flow, stage, sources, gathered)
        else:
            self.out.append(Send(worker, InputsArrived(flow, stage, sources, gathered)))

    def tell(self, worker: int, message: Event) -> None:
        """Tell a worker something, this one too."""
        if worker == self.me:
            _HANDLERS[type(message)](self, message)
        else:
            self.out.append(Send(worker, message))

    # Tasks

    def _inputs_arrived(self, event: InputsArrived) -> None:
        self._take(*event)

    def _take(self, flow: Flow, stage: int, sources: tuple[int, ...], gathered: bool) -> None:
        """Let a task join the queue with its first inputs, and be ready to run with the last."""
        is_join = flow.graph.is_join[stage]
        if not (is_join or self._recovers):  # by far the most
            self._enqueue(self._task(flow, stage), ready=True)
            return
        name = (flow.request.key, stage)
        if self._recovers and self._is_over(flow, stage):
            return
        task = self._tasks.get(name)
        if task is None:
            task = self._tasks[name] = self._task(flow, stage)
            if not is_join or gathered or not self._gathers:
                self._enqueue(task, ready=False)
        elif flow.attempt > task.flow.attempt:
            task.flow = flow
        if task.arrived < 0:  # all are there, these came twice
            return
        for source in sources:
            task.arrived |= 1 << source
        if task.arrived == task.needed:
            task.arrived = -1
            if not self._recovers:
                del self._tasks[name]
            if task.place >= 0:
                self.queue.complete(task)
            else:
                self._place_gathered(task)

    def _task(self, flow: Flow, stage: int) -> Task:
        facts = self._facts.get(flow.graph) or self.facts(flow.graph)
        return Task(flow, stage, facts.seconds[stage], facts.models[stage], facts.inputs[stage], self.now)

    def _enqueue(self, task: Task, *, ready: bool) -> None:
        self.queue.join(task, ready=ready)
        self.load.enqueue(task.seconds)
        self._changed = True

    def _place_gathered(self, task: Task) -> None:
        """All inputs of a task have come together here: it is placed now, once."""
        flow, stage = task.flow, task.stage
        target = self._next_worker(flow, stage, self.view(), gathered=True)
        if target == self.me:
            task.queued = self.now
            self._enqueue(task, ready=True)
            return
        self._tasks.pop((flow.request.key, stage), None)
        if target is not None:
            self.send(flow, stage, target, flow.graph.workflow.predecessors[stage], gathered=True)

    def _start_next(self) -> None:
        """Give the accelerator to the first task that can run, and bring in the models that it lacks."""
        queue, memory, now = self.queue, self.memory, self.now
        while (task := queue.take()) is not None:
            found = NO_MODEL
            for model in task.models:
                if model not in memory:
                    found = MISS
                elif found != MISS:
                    found = PARTIAL if model in self._copies or found == PARTIAL else HIT
            if found == MISS or (self._prefetches and len(queue)):
                try:
                    evict, fetch, prefetch = memory.prepare(task.models, queue.models())
                except DoesNotFitError as error:
                    self.load.drop(task.seconds)
                    self._give_up(task.flow, task.stage, str(error))
                    continue
                if evict or fetch or prefetch:
                    self._change_memory(evict, fetch + prefetch)
            expected = task.seconds
            if found in {MISS, PARTIAL}:
                self._waits_for = {model for model in task.models if model in self._copies}
                expected += max(self._copies[model][1] for model in self._waits_for) - now
            task.turn, task.found = now, found
            self.running = task
            self.load.start(task.seconds, now, expected)
            self._changed = True
            if not self._waits_for:
                self._run_task(task)
            return

    def _run_task(self, task: Task) -> None:
        self._numbers += 1
        self._run = self._numbers
        self.out.append(Run(self._run, task.flow, task.stage, task.seconds, task.queued, task.turn, task.found))

    def _task_done(self, event: TaskDone) -> None:
        task = self.running
        if task is None or event.run != self._run:
            return  # from before this worker was lost and came back
        self.running = None
        self.load.finish()
        self._changed = True
        flow, stage = task.flow, task.stage
        key = flow.request.key
        if self._recovers:
            self._tasks.pop((key, stage), None)
            if not task.dropped:
                self._kept.setdefault(key, {})[stage] = flow
        if not task.dropped:
            successors = flow.graph.workflow.successors[stage]
            if self._recovers or not successors:
                self.tell(flow.request.ingress, StageDone(key, stage, self.me, flow.attempt, self.now))
            view = None
            for successor in successors:
                if view is None or self._changed:  # by a task that stays here
                    view = self.view()
                worker = self._next_worker(flow, successor, view)
                if worker is not None:
                    self.send(flow, successor, worker, (stage,))

    def _next_worker(self, flow: Flow, stage: int, view: View, *, gathered: bool = False) -> int | None:
        """Where a task goes whose input is here; None if it can run nowhere any more, which its ingress is told."""
        planned = flow.workers[stage]
        try:
            worker = self.scheduler.next_worker(
                flow.request, stage, planned, view, self.now, self.draws, gathered=gathered
            )
        except NoPlaceError as error:
            self._give_up(flow, stage, str(error))
            return None
        if worker != planned and self._recovers:
            self.tell(flow.request.ingress, StageMoved(flow.request.key, stage, worker, flow.attempt))
        return worker

    def _give_up(self, flow: Flow, stage: int, reason: str) -> None:
        self._tasks.pop((flow.request.key, stage), None)
        self.tell(flow.request.ingress, StageStuck(flow.request.key, reason))

    # Memory and row

    def _change_memory(self, evict: tuple[int, ...], load: tuple[int, ...]) -> None:
        for model in evict:
            self._copies.pop(model, None)
            self._table.write_cache(self.me, model, False, self.now)
            self.out.append(Evict(model))
        for model in load:
            self._numbers += 1
            self._copied_until = max(self._copied_until, self.now) + self._fetch_seconds[model]
            self._copies[model] = (self._numbers, self._copied_until)
            self._table.write_cache(self.me, model, True, self.now)
            self.out.append(Load(self._numbers, model))
        self._models_changed = True

    def _model_loaded(self, event: ModelLoaded) -> None:
        copy, model = event
        number, _ = self._copies.get(model, (-1, 0.0))
        if number != copy:
            return  # it was evicted meanwhile
        del self._copies[model]
        self.memory.copied(model)
        if model in self._waits_for:
            self._waits_for.discard(model)
            if not self._waits_for and self.running is not None:
                self._run_task(self.running)

    def _write_load(self) -> None:
        self._changed = False
        if self.me == OUTSIDE:
            return
        load = self.load
        self._table.write_load(self.me, load.queued, load.busy_until, self.now)
        if self._publishes:
            self._numbers += 1
            self.out.append(PublishLoad(self._numbers, load.queued, load.busy_until))

    # The others

    def _peer_load(self, event: PeerLoad) -> None:
        self._table.receive_load(*event)

    def _peer_models(self, event: PeerModels) -> None:
        self._table.receive_cache(event.worker, event.sequence, list(event.models))

    def _peer_joined(self, event: PeerJoined) -> None:
        if not self.is_present(event.worker):
            self._table.join(event.worker)

    def _peer_lost(self, event: PeerLost) -> None:
        if self.is_present(event.worker):
            self._table.leave(event.worker)
        self._drop(lambda flow: flow.request.ingress == event.worker)
        if self._recovers:
            self.ingress.worker_lost(event.worker)

    def _replanned(self, event: Replanned) -> None:
        flow = event.flow
        tasks = [task for (key, _), task in self._tasks.items() if key == flow.request.key]
        for task in tasks:
            if flow.attempt > task.flow.attempt:
                task.flow = flow

    def _send_again(self, event: SendAgain) -> None:
        flow, source, stages = event
        if source in self._kept.get(flow.request.key, ()):
            for stage in stages:
                self.send(flow, stage, flow.workers[stage], (source,))

    def _forget(self, event: Forget) -> None:
        self._forgotten[event.key] = None
        if len(self._forgotten) > _MOST_FORGOTTEN:
            del self._forgotten[next(iter(self._forgotten))]
        self._drop(lambda flow: flow.request.key == event.key)

    def _drop(self, concerned: Callable[[Flow], bool]) -> None:
        """Let go of all that is held for some requests; what runs for them runs to its end, for nothing."""
        for key in [key for key, outputs in self._kept.items() if any(map(concerned, outputs.values()))]:
            del self._kept[key]
        for name in [name for name, task in self._tasks.items() if concerned(task.flow)]:
            del self._tasks[name]
        for task in [task for task in self.queue if concerned(task.flow)]:
            self.queue.drop(task)
            self.load.drop(task.seconds)
            self._changed = True
        if self.running is not None and concerned(self.running.flow):
            self.running.dropped = True

    def _is_over(self, flow: Flow, stage: int) -> bool:
        """Whether a task has ended here before, or nobody waits for it any more."""
        key, ingress = flow.request.key, flow.request.ingress
        if stage in self._kept.get(key, ()) or key in self._forgotten:
            return True
        return ingress != OUTSIDE and not self.is_present(ingress)


_HANDLERS: dict[type, Callable[[ServingEngine, Any], None]] = {
    RequestArrived: lambda engine, event: engine.ingress.arrived(event),
    StageDone: lambda engine, event: engine.ingress.stage_done(event),
    StageMoved: lambda engine, event: engine.ingress.stage_moved(event),
    StageStuck: lambda engine, event: engine.ingress.stage_stuck(event),
    InputsArrived: ServingEngine._inputs_arrived,
    TaskDone: ServingEngine._task_done,
    ModelLoaded: ServingEngine._model_loaded,
    PeerLoad: ServingEngine._peer_load,
    PeerModels: ServingEngine._peer_models,
    PeerLost: ServingEngine._peer_lost,
    PeerJoined: ServingEngine._peer_joined,
    Replanned: ServingEngine._replanned,
    SendAgain: ServingEngine._send_again,
    Forget: ServingEngine._forget,
}
