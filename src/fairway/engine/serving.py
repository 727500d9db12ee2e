"""The serving engine of one worker: receives requests, plans them, runs tasks, and keeps its memory (Compass).

It is told what happens (`serving_messages`) and answers with what is to be done; it reads no clock, touches nothing.
Every worker has one, and all are alike: whichever receives a request plans it for the whole cluster from what it knows
of the others (`ingress`); whoever finishes a task decides where the tasks go that take its output. One task runs at a
time; models for the next ones are copied meanwhile.

A task whose turn has come takes along others that wait for the same stage of the same workflow, as many as floor 2
allows (`batch_rule`): they are its mates, and run with it as a batch. Nobody waits for mates to come: a batch is made
of those that are there anyway. A task that waits for its models lets others pass that have theirs (`_let_pass`).

When a worker is lost, each ingress plans again what it had of the requests received there. A task may then run twice,
but a reply is given once. The requests received by a lost worker itself fail: whoever sent them has to ask another
worker, and everybody drops what they hold of them.

An engine whose number is `OUTSIDE` has no accelerator: it only plans, for a cluster with one scheduler for all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from fairway.engine.batch_rule import GraphBatches
from fairway.engine.flow import Flow
from fairway.engine.ingress import Ingress, ServingError
from fairway.engine.serving_messages import (
    FAILED,
    HIT,
    LATE,
    MISS,
    NO_MODEL,
    PARTIAL,
    UNPLACEABLE,
    Cancelled,
    Command,
    Event,
    Evict,
    Forget,
    InputsArrived,
    Load,
    Mate,
    ModelFailed,
    ModelLoaded,
    PeerJoined,
    PeerLoad,
    PeerLost,
    PeerModels,
    Pin,
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
    TimePassed,
)
from fairway.engine.stage_facts import StageFacts
from fairway.engine.task_queue import Task, TaskQueue
from fairway.engine.tasks_here import TasksHere
from fairway.made import made
from fairway.place.fleet import OUTSIDE
from fairway.place.graph import TaskGraph
from fairway.place.memory import DeviceMemory, DoesNotFitError
from fairway.place.plan import Draws, NoPlaceError
from fairway.place.scheduler import Scheduler
from fairway.place.state import Load as OwnLoad
from fairway.place.state import StateTable, View

_RUNS_AT_ONCE = frozenset((HIT, NO_MODEL))

_MOST_ASKED = 32
"""So many of the tasks that wait are looked at for one that can run while another waits for its models."""

_LEAST_OVERRUN_SECONDS = 5e-3
_LOOK_SECONDS = 2.0
"""A task that is late by less is not worth waking up for; a worker that was slow and rests looks so often."""


@dataclass(frozen=True, slots=True)
class ServingEngineOptions:
    """How an engine works.

    `recovers`: workers tell the ingress how far its requests are, and keep outputs until the reply, so that nothing
    is lost with a worker. `publishes`: changes of the own row are commands; not needed with a table that all share.
    `epoch` is larger each time that a worker comes back, and makes the numbers of its runs and copies its own.
    `most_attempts`: a request that has been planned so often, since workers were lost each time, is refused: it may be
    what they die of. `watches_time`: it compares how long tasks take with what was expected, and wants to be told when
    it is `due`, so that a worker that is slow, or stuck, does not look idle. `batches` says which workflows have stages
    that run several requests at once, and how many; the scheduler's rules may forbid it all the same.
    """

    recovers: bool = True
    publishes: bool = True
    epoch: int = 0
    most_attempts: float = math.inf
    watches_time: bool = False
    batches: Mapping[TaskGraph, GraphBatches] = field(default_factory=dict)


class ServingEngine:
    """Events in, commands out. `handle` is all that a driver needs; the rest can be looked at.

    With `watches_time` the driver says when the time `due` has come.
    """

    __slots__ = (
        "_batches",
        "_began",
        "_copied_until",
        "_copies",
        "_facts",
        "_fetch_seconds",
        "_gathers",
        "_idles",
        "_keeps_plans",
        "_models_changed",
        "_numbers",
        "_overtakes",
        "_passed",
        "_prefetches",
        "_publishes",
        "_recovers",
        "_row_changed",
        "_run",
        "_table",
        "_waits_for",
        "_watches_time",
        "draws",
        "due",
        "here",
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
        self.ingress = Ingress(self, recovers=options.recovers, most_attempts=options.most_attempts)
        self.queue = TaskQueue()
        self.load = OwnLoad(rules.running_load)
        self.memory = DeviceMemory(0.0 if me == OUTSIDE else fleet.memory[me], table.model_bytes, rules.memory)
        self.running: Task | None = None
        self.now = -math.inf
        self.due = math.inf
        self.out: list[Command] = []
        self._batches = options.batches if rules.batches else {}
        self._watches_time = options.watches_time
        self._began = -math.inf
        self._recovers = options.recovers
        self._publishes = options.publishes
        self._gathers = rules.gathers_joins
        self._keeps_plans = rules.keeps_plans
        self._overtakes = rules.overtakes
        self._prefetches = rules.memory.prefetches
        self._table = table
        self._fetch_seconds = table.fetch_seconds
        self._facts: dict[TaskGraph, StageFacts] = {}
        self.here = TasksHere()  # of the tasks, joins that lack inputs; with recovery, all that wait or run
        self._copies: dict[int, tuple[int, float]] = {}  # by model, the number of its copy and when it should end
        self._copied_until = -math.inf
        self._waits_for: set[int] = set()
        self._idles = False  # whether the task that has the accelerator waits for its models
        self._passed: Task | None = None  # it waits for its models, too, and another one has the accelerator meanwhile
        self._numbers = options.epoch << 40
        self._run = -1
        self._row_changed = False
        self._models_changed = False

    def handle(self, now: float, event: Event) -> list[Command]:
        """Take in what happened, and say what is to be done now."""
        if now < self.now:
            raise ServingError(f"worker {self.me}: time went back from {self.now} s to {now} s: {event}")
        self.now = now
        out = self.out = []
        if type(event) is InputsArrived:  # these two are most of them
            flow, stage, sources, gathered = event
            self._take(flow, stage, sources, gathered)
        elif type(event) is TaskDone:
            self._task_done(event)
        else:
            _HANDLERS[type(event)](self, event)
        if self.running is None:
            if self.queue.ready or self._passed is not None:
                self._start_next()
        elif self._idles and self._overtakes and self.queue.ready:
            self._let_pass(self.running)
        if self._row_changed:
            self._row_changed = False
            load = self.load
            self._table.write_load(self.me, load.queued, load.busy_until, now)
            if self._publishes:
                self._publish()
        return out

    # What the ingress needs too

    def facts(self, graph: TaskGraph) -> StageFacts:
        """The numbers of a graph for this worker."""
        facts = self._facts.get(graph)
        if facts is None:
            facts = StageFacts.of(graph, self.me)
            batches = self._batches.get(graph)
            if batches is not None:
                facts = replace(facts, batches=batches[self.me])
            self._facts[graph] = facts
        return facts

    def view(self) -> View:
        """What is known of all workers now, of this one exactly."""
        return self._table.view(self.me, self.now, self.load)

    def is_present(self, worker: int) -> bool:
        """Whether a worker is there, as far as this one knows."""
        return self._table.is_seen(worker)

    def send(self, flow: Flow, stage: int, worker: int, sources: tuple[int, ...], *, gathered: bool = False) -> None:
        """Bring inputs of a task to its worker."""
        if worker == self.me:
            self._take(flow, stage, sources, gathered)
        else:
            self.out.append(made(Send, (worker, made(InputsArrived, (flow, stage, sources, gathered)))))

    def tell(self, worker: int, message: Event) -> None:
        """Tell a worker something, this one too."""
        if worker == self.me:
            _HANDLERS[type(message)](self, message)
        else:
            self.out.append(made(Send, (worker, message)))

    # Tasks

    def _take(self, flow: Flow, stage: int, sources: tuple[int, ...], gathered: bool) -> None:
        """Let a task join the queue with its first inputs, and be ready to run with the last."""
        graph = flow.graph
        facts = self._facts.get(graph) or self.facts(graph)
        is_join = graph.is_join[stage]
        if not (is_join or self._recovers):  # by far the most
            ready = Task(flow, stage, facts, self.now)
            self.queue.join(ready, True)
            self.load.enqueue(ready.seconds)
            self._row_changed = True
            return
        if self._recovers and self._is_over(flow, stage):
            return
        task = self.here.get(flow.request.key, stage)
        if task is None:
            task = Task(flow, stage, facts, self.now)
            self.here.add(task)
            if not is_join or gathered or not self._gathers:
                self._enqueue(task, False)
        elif flow.attempt > task.flow.attempt:
            task.flow = flow
        if task.arrived < 0:  # all are there, these came twice
            return
        for source in sources:
            task.arrived |= 1 << source
        if task.arrived == facts.inputs[stage]:
            task.arrived = -1
            if not self._recovers:
                self.here.remove(task)
            if task.place >= 0:
                self.queue.complete(task)
            else:
                self._place_gathered(task)

    def _enqueue(self, task: Task, ready: bool) -> None:
        self.queue.join(task, ready)
        self.load.enqueue(task.seconds)
        self._row_changed = True

    def _place_gathered(self, task: Task) -> None:
        """All inputs of a task have come together here: it is placed now, once."""
        flow, stage = task.flow, task.stage
        target = self._next_worker(flow, stage, self.view(), gathered=True)
        if target == self.me:
            task.queued = self.now
            self._enqueue(task, True)
            return
        self.here.remove(task)
        if target is not None:
            self.send(flow, stage, target, flow.graph.workflow.predecessors[stage], gathered=True)

    def _start_next(self) -> None:
        """Give the accelerator to the first task that can run, and bring in the models that it lacks."""
        if self._passed is not None:
            self._resume(self._passed)
            return
        queue, memory, copies, now = self.queue, self.memory, self._copies, self.now
        while (task := queue.take()) is not None:
            if task.flow.request.deadline < now:
                self.load.drop(task.seconds)
                self._row_changed = True
                self._fail(task, "its time was over before it could run", LATE)
                continue
            if task.facts.batches is not None and len(queue):
                self._gather_mates(task)
            found = NO_MODEL
            for model in task.models:
                if model not in memory.held:
                    found = MISS
                elif found != MISS:
                    found = PARTIAL if model in copies or found == PARTIAL else HIT
            if found == MISS or (self._prefetches and len(queue)):
                try:
                    evict, fetch, prefetch = memory.prepare(task.models, queue.models())
                except DoesNotFitError as error:
                    self.load.drop(task.seconds)
                    for each in (task, *task.mates):
                        self._fail(each, str(error), UNPLACEABLE)
                    continue
                if evict or fetch or prefetch:
                    self._change_memory(evict, fetch + prefetch)
            task.turn, task.found = now, found
            for mate in task.mates:
                mate.turn, mate.found = now, PARTIAL if found == MISS else found  # for them it is on its way
            if found in _RUNS_AT_ONCE:
                self._begin(task)
            else:
                self._await_models(task)
            return

    def _begin(self, task: Task) -> None:
        """Let a task run whose models are there."""
        self.running = task
        self.load.start(task.seconds, self.now, task.seconds)
        self._row_changed = True
        if self._watches_time:
            self.due = self._overdue()
        self._run_task(task)

    def _await_models(self, task: Task) -> None:
        """Give the accelerator to a task whose models are on their way; another one may have it until they come."""
        now, copies = self.now, self._copies
        there, waits_for = -math.inf, set()
        for model in task.models:
            if model in copies:
                waits_for.add(model)
                there = max(there, copies[model][1])
        self.running = task
        self._waits_for = waits_for
        self._idles = True
        self.load.start(task.seconds, now, task.seconds + (there - now))
        self._row_changed = True
        if self._watches_time:
            self.due = self._overdue()
        if self._overtakes and len(self.queue):
            self._let_pass(task)

    def _let_pass(self, waiting: Task) -> None:
        """Let another task run while one waits for its models: if the times at which they end are less in sum.

        With w seconds until the models are there, tasks of a and b seconds end at w + a and w + a + b in their order,
        at b and max(b, w) + a in the other. The latter is less if b < 2 w + a.
        """
        now, held, copies = self.now, self.memory.held, self._copies
        wait = max(0.0, max([copies[model][1] for model in self._waits_for]) - now)
        longest = 2.0 * wait + waiting.seconds

        def able(other: Task) -> bool:
            if other.seconds >= longest or other.flow.request.deadline < now:
                return False
            return all(model in held and model not in copies for model in other.models)

        task = self.queue.take_able(able, _MOST_ASKED)
        if task is None:
            return
        self._passed = waiting
        self.load.finish()
        self.load.enqueue(waiting.seconds)
        if task.facts.batches is not None and len(self.queue):
            self._gather_mates(task)
        for each in (task, *task.mates):
            each.turn, each.found = now, HIT if task.models else NO_MODEL
        self._begin(task)

    def _resume(self, task: Task) -> None:
        """The accelerator is free again for a task that let another one pass."""
        self._passed = None
        if self._waits_for:
            self._await_models(task)
            return
        if task.facts.batches is not None and len(self.queue):
            self._gather_mates(task)
        self._begin(task)

    def _gather_mates(self, task: Task) -> None:
        """Let others that wait for the stage of a task run with it; what they take together is then its time."""
        batches = task.facts.batches[task.stage] if task.facts.batches is not None else None
        if batches is None:
            return
        queue, load, mates, now = self.queue, self.load, task.mates, self.now
        room = len(batches) - 1 - len(mates)
        in_time = (other for other in queue.alike(task) if other.flow.request.deadline >= now)
        found = tuple(islice(in_time, room))
        count, seconds = batches[len(mates) + len(found)]
        more = found[: count - 1 - len(mates)]
        if not more:
            return
        for mate in more:
            queue.drop(mate)
            load.drop(mate.seconds)
            mate.turn, mate.found = now, HIT
        task.mates = mates + more
        # To the load they are one task, which waits, or has begun to, from now on.
        if self.running is task:
            load.finish()
            load.enqueue(seconds)
            load.start(seconds, now)
        else:
            load.drop(task.seconds)
            load.enqueue(seconds)
        task.seconds = seconds
        self._row_changed = True

    def _overdue(self) -> float:
        """When the task that starts now has taken twice as long as expected."""
        now = self.now
        return now + 2.0 * max(self.load.busy_until - now, _LEAST_OVERRUN_SECONDS)

    def _time_passed(self, _: TimePassed) -> None:
        now, task = self.now, self.running
        if not self._watches_time or now < self.due:
            return
        if task is not None:
            self.load.overrun(now, task.turn)
            self.due = now + max(now - task.turn, _LEAST_OVERRUN_SECONDS)
        else:
            self.load.fade(now)
            self._rest()
        self._row_changed = True

    def _rest(self) -> None:
        """Nothing runs; a worker that is slow looks at its load now and then, until that is forgotten."""
        self.due = self.now + _LOOK_SECONDS if self.load.pace.extra > 0 else math.inf

    def _run_task(self, task: Task) -> None:
        self._began = self.now
        self._idles = False
        self._numbers += 1
        self._run = self._numbers
        mates: tuple[Mate, ...] = ()
        if task.mates:
            mates = tuple([Mate(each.flow, each.queued, each.turn, each.found) for each in task.mates])
        fields = (self._run, task.flow, task.stage, task.seconds, task.queued, task.turn, task.found, mates)
        self.out.append(made(Run, fields))

    def _task_done(self, event: TaskDone) -> None:
        task = self.running
        if task is None or event.run != self._run:
            return  # from before this worker was lost and came back
        self.running = None
        self.load.finish()
        self._row_changed = True
        failed = event.failed
        if self._watches_time:
            if not failed:  # how long something took that raised says nothing
                self.load.ran(task.seconds, self._began, self.now)
            self._rest()
        if not (failed or task.mates):  # by far the most
            self._pass_on(task)
            return
        for position, each in enumerate((task, *task.mates)):
            if position in failed:
                self._fail(each, failed[position])
            else:
                self._pass_on(each)

    def _pass_on(self, task: Task) -> None:
        """A task has ended: those that take its output are next, and its ingress hears of it."""
        flow, stage = task.flow, task.stage
        if self._recovers:
            self.here.end(task)
        if task.dropped:
            return
        successors = task.facts.after[stage]
        if self._recovers or not successors:
            request = flow.request
            done = made(StageDone, (request.key, stage, self.me, flow.attempt, self.now))
            self.tell(request.ingress, done)
        view, table, workers = None, self._table, flow.workers
        for successor in successors:
            if self._keeps_plans and table.is_seen(workers[successor]):
                self.send(flow, successor, workers[successor], (stage,))
                continue
            if view is None or view.own_queued != self.load.queued:  # the last one stays here
                view = table.view(self.me, self.now, self.load)
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
            self._give_up(flow, str(error))
            return None
        if worker != planned and self._recovers:
            self.tell(flow.request.ingress, StageMoved(flow.request.key, stage, worker, flow.attempt))
        return worker

    def _give_up(self, flow: Flow, reason: str, code: str = UNPLACEABLE) -> None:
        """A task of a request can run nowhere, or has no result: its ingress is told."""
        self.tell(flow.request.ingress, StageStuck(flow.request.key, reason, code))

    def _fail(self, task: Task, reason: str, code: str = FAILED) -> None:
        """A task has no result: its request fails, if anybody still waits for it."""
        self.here.remove(task)
        if not task.dropped:
            self._give_up(task.flow, reason, code)

    # Memory and row

    def _change_memory(self, evict: tuple[int, ...], load: tuple[int, ...]) -> None:
        me, now, table, out = self.me, self.now, self._table, self.out
        for model in evict:
            self._copies.pop(model, None)
            table.write_cache(me, model, False, now)
            out.append(made(Evict, (model,)))
        for model in load:
            self._numbers += 1
            self._copied_until = max(self._copied_until, now) + self._fetch_seconds[model]
            self._copies[model] = (self._numbers, self._copied_until)
            table.write_cache(me, model, True, now)
            out.append(made(Load, (self._numbers, model)))
        self._row_changed = self._models_changed = True

    def _pin(self, event: Pin) -> None:
        evict, fetch, _ = self.memory.prepare((event.model,), ())
        self._change_memory(evict, fetch)
        self.memory.pin(event.model)

    def _model_loaded(self, event: ModelLoaded) -> None:
        copy, model = event
        under_way = self._copies.get(model)
        if under_way is None or under_way[0] != copy:
            return  # it was evicted meanwhile
        del self._copies[model]
        self.memory.copied(model)
        if model in self._waits_for:
            self._waits_for.discard(model)
            task = self.running
            if not self._waits_for and self._idles and task is not None:
                if task.facts.batches is not None and len(self.queue):  # some may have come meanwhile
                    self._gather_mates(task)
                    if self._watches_time:
                        self.due = self._overdue()
                self._run_task(task)

    def _model_failed(self, event: ModelFailed) -> None:
        copy, model, reason = event
        under_way = self._copies.get(model)
        if under_way is None or under_way[0] != copy:
            return  # it was evicted meanwhile
        del self._copies[model]
        self.memory.drop(model)
        self._table.write_cache(self.me, model, False, self.now)
        self._row_changed = self._models_changed = True
        if model not in self._waits_for:
            return
        self._waits_for.clear()
        task = self._passed or self.running
        assert task is not None
        if self._passed is not None:
            self._passed = None
            self.load.drop(task.seconds)
        else:
            self.running = None
            self._idles = False
            self.load.finish()
            self._rest()
        for each in (task, *task.mates):
            self._fail(each, reason)

    def _publish(self) -> None:
        """Tell the others the load and, if they have changed, the models."""
        self._numbers += 1
        self.out.append(PublishLoad(self._numbers, self.load.queued, self.load.busy_until))
        if self._models_changed:
            self._models_changed = False
            self._numbers += 1
            self.out.append(PublishModels(self._numbers, self.memory.resident))

    # The others

    def _peer_load(self, event: PeerLoad) -> None:
        self._table.receive_load(*event)

    def _peer_models(self, event: PeerModels) -> None:
        self._table.receive_cache(event.worker, event.sequence, list(event.models))

    def _peer_joined(self, event: PeerJoined) -> None:
        if not self.is_present(event.worker):
            self._table.join(event.worker)
        if self._recovers:  # news of what was sent to it before it was lost may have come after the news of its loss
            self.ingress.worker_lost(event.worker)

    def _peer_lost(self, event: PeerLost) -> None:
        if self.is_present(event.worker):
            self._table.leave(event.worker)
        self._drop(self.here.let_go(lambda flow: flow.request.ingress == event.worker))
        if self._recovers:
            self.ingress.worker_lost(event.worker)

    def _replanned(self, event: Replanned) -> None:
        flow = event.flow
        for task in self.here.of(flow.request.key):
            if flow.attempt > task.flow.attempt:
                task.flow = flow

    def _send_again(self, event: SendAgain) -> None:
        flow, source, stages = event
        if self.here.has_ended(flow.request.key, source):
            for stage in stages:
                self.send(flow, stage, flow.workers[stage], (source,))

    def _forget(self, event: Forget) -> None:
        self._drop(self.here.close(event.key))

    def _drop(self, tasks: Iterable[Task]) -> None:
        """Nobody waits for some tasks any more; those that run, or are about to, run to their end, for nothing."""
        for task in tasks:
            if self.queue.discard(task):
                self.load.drop(task.seconds)
                self._row_changed = True
            else:
                task.dropped = True

    def _is_over(self, flow: Flow, stage: int) -> bool:
        """Whether a task has ended here before, or nobody waits for it any more."""
        key, ingress = flow.request.key, flow.request.ingress
        if self.here.has_ended(key, stage) or self.here.is_over(key):
            return True
        return ingress not in {OUTSIDE, self.me} and not self.is_present(ingress)


_HANDLERS: dict[type, Callable[[ServingEngine, Any], None]] = {
    RequestArrived: lambda engine, event: engine.ingress.arrived(event),
    StageDone: lambda engine, event: engine.ingress.stage_done(event),
    StageMoved: lambda engine, event: engine.ingress.stage_moved(event),
    StageStuck: lambda engine, event: engine.ingress.stage_stuck(event),
    Cancelled: lambda engine, event: engine.ingress.cancelled(event),
    TimePassed: ServingEngine._time_passed,
    Pin: ServingEngine._pin,
    ModelLoaded: ServingEngine._model_loaded,
    ModelFailed: ServingEngine._model_failed,
    PeerLoad: ServingEngine._peer_load,
    PeerModels: ServingEngine._peer_models,
    PeerLost: ServingEngine._peer_lost,
    PeerJoined: ServingEngine._peer_joined,
    Replanned: ServingEngine._replanned,
    SendAgain: ServingEngine._send_again,
    Forget: ServingEngine._forget,
}
