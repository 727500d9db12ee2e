"""The serving engine of one worker: receives requests, plans them, runs tasks, and passes results on (Compass).

It is told what happens (`serving_messages`) and answers with what is to be done; it reads no clock, touches nothing.
Every worker has one, and all are alike: whichever receives a request plans it for the whole cluster from what it knows
of the others (`ingress`); whoever finishes a task decides where the tasks go that take its output. What happens between
a task's arrival and its end is decided by the `accelerator`.

When a worker is lost, each ingress plans again what it had of the requests received there. A task may then run twice,
but a reply is given once. The requests received by a lost worker itself fail: whoever sent them has to ask another
worker, and everybody drops what they hold of them.

An engine whose number is `OUTSIDE` has no accelerator: it only plans, for a cluster with one scheduler for all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fairway.engine.accelerator import Accelerator
from fairway.engine.batch_rule import GraphBatches
from fairway.engine.flow import Flow
from fairway.engine.ingress import Ingress, ServingError
from fairway.engine.serving_messages import (
    FAILED,
    UNPLACEABLE,
    Cancelled,
    Command,
    Event,
    Forget,
    InputsArrived,
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
    Send,
    SendAgain,
    StageDone,
    StageMoved,
    StageStuck,
    TaskDone,
    TimePassed,
)
from fairway.engine.stage_facts import StageFacts
from fairway.engine.task_queue import Task
from fairway.engine.tasks_here import TasksHere
from fairway.made import made
from fairway.place.fleet import OUTSIDE
from fairway.place.graph import TaskGraph
from fairway.place.plan import Draws, NoPlaceError
from fairway.place.scheduler import Scheduler
from fairway.place.state import StateTable, View


@dataclass(frozen=True, slots=True)
class ServingEngineOptions:
    """How an engine works.

    `recovers`: workers tell the ingress how far its requests are, and keep outputs until the reply, so that nothing
    is lost with a worker. `publishes`: changes of the own row are commands; not needed with a table that all share.
    `epoch` is larger each time that a worker comes back, and makes the numbers of its runs and copies its own.
    `most_attempts`: a request that has been planned so often, since workers were lost each time, is refused: it may be
    what they die of. `watches_time`: it compares how long tasks take with what was expected, and wants to be told when
    it is `due`, so that a worker that is slow, or stuck, does not look idle. `batches` says which workflows have stages
    that run several requests at once, and how many; the scheduler's rules may forbid it all the same. `facts` are for
    all engines that share these options: the first that needs some of them works them out.
    """

    recovers: bool = True
    publishes: bool = True
    epoch: int = 0
    most_attempts: float = math.inf
    watches_time: bool = False
    batches: Mapping[TaskGraph, GraphBatches] = field(default_factory=dict)
    facts: dict[TaskGraph, list[StageFacts]] = field(default_factory=dict)


class ServingEngine(Accelerator):
    """Events in, commands out. `handle` is all that a driver needs; the rest can be looked at.

    With `watches_time` the driver says when the time `due` has come.
    """

    __slots__ = (
        "_batches",
        "_facts",
        "_facts_of_all",
        "_gathers",
        "_keeps_plans",
        "_publishes",
        "_recovers",
        "draws",
        "here",
        "ingress",
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
        rules = scheduler.rules
        super().__init__(me, rules, table, watches_time=options.watches_time, epoch=options.epoch)
        self.scheduler = scheduler
        self.draws = draws
        self.ingress = Ingress(recovers=options.recovers, most_attempts=options.most_attempts)
        self.here = TasksHere()  # of the tasks, joins that lack inputs; with recovery, all that wait or run
        self._batches = options.batches if rules.batches else {}
        self._recovers = options.recovers
        self._publishes = options.publishes
        self._gathers = rules.gathers_joins
        self._keeps_plans = rules.keeps_plans
        self._facts: dict[TaskGraph, StageFacts] = {}
        self._facts_of_all = options.facts

    def handle(self, now: float, event: Event) -> list[Command]:
        """Take in what happened, and say what is to be done now."""
        if now < self.now:
            raise ServingError(f"worker {self.me}: time went back from {self.now} s to {now} s: {event}")
        self.now = now
        out = self.out = []
        if type(event) is InputsArrived:  # these two are most of them
            flow, stage, sources, gathered = event
            at_once = self.running is None and self._passed is None and not self.queue.ready
            self._take(flow, stage, sources, gathered, at_once)
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
            of_all = self._facts_of_all.get(graph)
            if of_all is None:
                of_all = self._facts_of_all[graph] = StageFacts.of_all(graph)
            facts = of_all[self.me]
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

    def _take(self, flow: Flow, stage: int, sources: tuple[int, ...], gathered: bool, at_once: bool = False) -> None:
        """Let a task join the queue with its first inputs, and be ready to run with the last.

        `at_once` says that nobody is before it.
        """
        graph = flow.graph
        facts = self._facts.get(graph) or self.facts(graph)
        is_join = graph.is_join[stage]
        if not (is_join or self._recovers):  # by far the most
            ready = Task(flow, stage, facts, self.now, self._patience)
            self.load.enqueue(ready.seconds)
            self._row_changed = True
            if at_once:
                self._start(ready)
            else:
                self.queue.join(ready, True)
            return
        if self._recovers and self._is_over(flow, stage, facts):
            return
        task = self.here.get(flow.request.key, stage)
        if task is None:
            task = Task(flow, stage, facts, self.now, self._patience)
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
            alone = flow.graph.is_join[stage] and not gathered
            self.tell(flow.request.ingress, StageMoved(flow.request.key, stage, worker, flow.attempt, alone))
        return worker

    def _give_up(self, flow: Flow, reason: str, code: str = UNPLACEABLE) -> None:
        """A task of a request can run nowhere, or has no result: its ingress is told."""
        self.tell(flow.request.ingress, StageStuck(flow.request.key, reason, code))

    def _fail(self, task: Task, reason: str, code: str = FAILED) -> None:
        """A task has no result: its request fails, if anybody still waits for it."""
        self.here.remove(task)
        if not task.dropped:
            self._give_up(task.flow, reason, code)

    # The others

    def _publish(self) -> None:
        """Tell the others the load and, if they have changed, the models."""
        self._numbers += 1
        self.out.append(PublishLoad(self._numbers, self.load.queued, self.load.busy_until))
        if self._models_changed:
            self._models_changed = False
            self._numbers += 1
            self.out.append(PublishModels(self._numbers, self.memory.resident))

    def _peer_load(self, event: PeerLoad) -> None:
        self._table.receive_load(*event)

    def _peer_models(self, event: PeerModels) -> None:
        self._table.receive_cache(event.worker, event.sequence, list(event.models))

    def _peer_joined(self, event: PeerJoined) -> None:
        if self._publishes and not self.is_present(event.worker):  # a table that all share knows it, and knows better
            self._table.join(event.worker)
        if self._recovers:  # news of what was sent to it before it was lost may have come after the news of its loss
            self.ingress.worker_lost(self, event.worker)

    def _peer_lost(self, event: PeerLost) -> None:
        if self.is_present(event.worker):
            self._table.leave(event.worker)
        self._drop(self.here.let_go(lambda flow: flow.request.ingress == event.worker))
        if self._recovers:
            self.ingress.worker_lost(self, event.worker)

    def _replanned(self, event: Replanned) -> None:
        flow = event.flow
        for task in self.here.of(flow.request.key):
            if flow.attempt > task.flow.attempt:
                task.flow = flow

    def _send_again(self, event: SendAgain) -> None:
        flow, source, stages = event
        if self.here.ended(flow.request.key, source) is not None:
            for stage in stages:
                self.send(flow, stage, flow.workers[stage], (source,))

    def _forget(self, event: Forget) -> None:
        self._drop(self.here.close(event.key))

    def _is_over(self, flow: Flow, stage: int, facts: StageFacts) -> bool:
        """Whether a task has ended here before, or nobody waits for it any more.

        If it has ended by an older plan, its ingress does not know that, and its output goes where the new one says.
        """
        key, ingress = flow.request.key, flow.request.ingress
        if self.here.is_over(key):
            return True
        ended = self.here.ended(key, stage)
        if ended is not None:
            if flow.attempt > ended.attempt:
                self._pass_on(Task(flow, stage, facts, self.now))
            return True
        return ingress not in {OUTSIDE, self.me} and not self.is_present(ingress)


_HANDLERS: dict[type, Callable[[ServingEngine, Any], None]] = {
    RequestArrived: lambda engine, event: engine.ingress.arrived(engine, event),
    StageDone: lambda engine, event: engine.ingress.stage_done(engine, event),
    StageMoved: lambda engine, event: engine.ingress.stage_moved(engine, event),
    StageStuck: lambda engine, event: engine.ingress.stage_stuck(engine, event),
    Cancelled: lambda engine, event: engine.ingress.cancelled(engine, event),
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
