"""How tasks come to a worker, and where their outputs go: from task to task along the plan that travels with them.

A task joins the queue with its first input and is ready with the last. When it has ended, each task that takes its
output goes to the planned worker or, if the placer finds that better now, to another one. The ingress of the request
hears of ends that its reply needs, of moves, and of the rest when it asks. With recovery, a worker keeps what its tasks
put out until the request is over, so that it can be sent again when another worker is lost; and whatever it does for a
request, it does by the newest plan that it has heard of.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

import numpy as np

from fairway.engine.serving.batch_rule import GraphBatches
from fairway.engine.serving.flow import Flow
from fairway.engine.serving.messages import (
    FAILED,
    UNPLACEABLE,
    BatchArrived,
    Forget,
    InputsArrived,
    OutputGone,
    ProgressAsked,
    ProgressTold,
    Replanned,
    Send,
    SendAgain,
    StageDone,
    StageMoved,
    StageStuck,
)
from fairway.engine.serving.residency import OwnPart
from fairway.engine.serving.side_by_side import SideBySide
from fairway.engine.serving.stage_facts import StageFacts
from fairway.engine.serving.task_queue import Task
from fairway.engine.serving.tasks_here import TasksHere
from fairway.made import made
from fairway.place.graph import TaskGraph
from fairway.place.placer import BatchPlacer, Placer
from fairway.place.plan import NoPlaceError, Request
from fairway.place.state import StateTable, View

Shares = Mapping[TaskGraph, tuple[tuple[int, int], ...]]
"""By workflow and stage, the CPUs and slices that a task holds on a divided worker."""

Returned = Mapping[TaskGraph, frozenset[int]]
"""By workflow, the stages whose outputs belong to the reply though other stages take them too."""


class Forwarding(SideBySide):
    """The tasks that are here, and the way to those that take their outputs.

    `here` are the joins that lack inputs; with recovery, all tasks that wait or run, and what has ended.
    """

    __slots__ = (
        "_batches",
        "_begins_at_once",
        "_facts",
        "_facts_of_all",
        "_gathers",
        "_keeps_plans",
        "_recovers",
        "_returned",
        "_stage_shares",
        "ahead",
        "draws",
        "here",
    )

    def __init__(
        self,
        me: int,
        placer: BatchPlacer,
        table: StateTable,
        draws: np.random.Generator,
        own: OwnPart,
        *,
        recovers: bool,
        kept: float,
        batches: Mapping[TaskGraph, GraphBatches],
        shares: Shares,
        returned: Returned,
        facts: dict[TaskGraph, list[StageFacts]],
    ) -> None:
        rules = placer.rules
        super().__init__(me, rules, table, own)
        self.ahead: Placer = placer  # type: ignore[assignment]  # where no configurator makes batches, it is one
        self.draws = draws
        self.here = TasksHere(kept)
        self._recovers = recovers
        self._begins_at_once = not self._shared and self._urgent is None
        self._gathers = rules.gathers_joins
        self._keeps_plans = rules.keeps_plans
        self._batches = batches
        self._stage_shares = shares
        self._returned = returned
        self._facts: dict[TaskGraph, StageFacts] = {}
        self._facts_of_all = facts

    def facts(self, graph: TaskGraph) -> StageFacts:
        """The numbers of a graph for this worker."""
        facts = self._facts.get(graph)
        if facts is None:
            of_all = self._facts_of_all.get(graph)
            if of_all is None:
                returned = self._returned.get(graph, frozenset())
                of_all = StageFacts.of_all(graph, self._batches.get(graph), self._stage_shares.get(graph), returned)
                self._facts_of_all[graph] = of_all
            facts = self._facts[graph] = of_all[self.me]
        return facts

    def view(self) -> View:
        """What is known of all workers now, of this one exactly."""
        return self._table.view(self.me, self.now, self.load)

    def is_present(self, worker: int) -> bool:
        """Whether a worker is there, as far as this one knows."""
        return self._table.is_seen(worker)

    def workers_present(self) -> list[int]:
        """All workers that are there, as far as this one knows."""
        return [worker for worker, there in enumerate(self._table.present) if there]

    def send(self, flow: Flow, stage: int, worker: int, sources: tuple[int, ...], *, gathered: int = 0) -> None:
        """Bring inputs of a task to its worker."""
        if worker == self.me:
            self._take(flow, stage, sources, gathered)
        else:
            self.out.append(made(Send, (worker, made(InputsArrived, (flow, stage, sources, gathered)))))

    # Tasks come

    def _take(self, flow: Flow, stage: int, sources: tuple[int, ...], gathered: int, is_alone: bool = False) -> None:
        """Let a task join the queue with its first inputs, and be ready to run with the last.

        One that `is_alone` begins at once where nothing runs: then no other that can run is before it.
        """
        graph, task = flow.graph, None
        facts = self._facts.get(graph) or self.facts(graph)
        is_join = graph.is_join[stage]
        is_noted = is_join or self._recovers
        if is_noted:
            here, key = self.here, flow.request.key
            task = first = here.tasks.get(key)
            while task is not None and task.stage != stage:
                task = task.sibling
            if task is None and here.is_wary and self._recovers:
                if key in here.over or not self._is_open(flow.request):
                    return
                flow = here.newest(flow)
        if task is None:
            task = Task(flow, stage, facts, self.now, self._patience)
            task.moves = gathered
            if is_noted:
                here.add(key, task, first)
            if is_join:
                if gathered or not self._gathers:
                    self._enqueue(task, False)
            elif is_alone and self.running is None and self._begins_at_once:
                self.load.admit(task.seconds)
                self._row_changed = True
                self._start(task)
                return
            else:
                self._enqueue(task, True)
                return
        else:
            task.moves = max(task.moves, gathered)  # the two are one from now on
            if flow.attempt > task.flow.attempt:
                task.flow = flow
                if task.ended is not None:  # by an older plan: its output goes where the new one says
                    self._pass_on(task)
        if not is_join or task.arrived < 0:  # all are there, or have come twice
            return
        for source in sources:
            task.arrived |= 1 << source
        if task.arrived == facts.inputs[stage]:
            task.arrived = -1
            if not self._recovers:
                here.remove(task)
            if task.place >= 0:
                self.queue.complete(task)
            else:
                self._place_gathered(task)

    @abstractmethod
    def _is_open(self, request: Request) -> bool:
        """Whether the engine that received a request may still answer it, as far as is known here."""

    def _take_batch(self, event: BatchArrived) -> None:
        """Let a batch that an engine has planned join the queue, ready to run."""
        if self._was_stopped(event):
            return
        first, *others = event.flows
        graph, stage = first.graph, event.stage
        facts = self._facts.get(graph) or self.facts(graph)
        task = Task(first, stage, facts, self.now)
        task.batch, task.seconds, task.arrived = event, event.seconds, -1
        if others:
            task.mates = tuple([Task(flow, stage, facts, self.now) for flow in others])
        if self.queue.waiting or not self._start_beside(task):
            self._enqueue(task, True)

    def _place_gathered(self, task: Task) -> None:
        """All inputs of a task have come together here: it is placed now, once."""
        flow, stage, moves = task.flow, task.stage, task.moves + 1
        target = self._next_worker(flow, stage, self.view(), gathered=moves)
        if target == self.me:
            task.queued = self.now
            self._enqueue(task, True)
            return
        self.here.remove(task)
        if target is not None:
            self.send(flow, stage, target, flow.graph.workflow.predecessors[stage], gathered=moves)

    # Outputs go on

    def _pass_on(self, task: Task) -> None:
        """A task has ended: those that take its output are next. By a newer plan, it may be passed on once more."""
        flow, stage, facts = task.flow, task.stage, task.facts
        if task.ended is None:
            task.ended = self.now
        if task.dropped:
            self.here.remove(task)
            return
        if facts.exits >> stage & 1:
            self._tell_end(task)
        successors = facts.after[stage]
        view, table, workers, keeps_plans = None, self._table, flow.workers, self._keeps_plans
        for successor in successors:
            if keeps_plans and table.present[planned := workers[successor]]:
                if planned == self.me:
                    self._take(flow, successor, (stage,), False)
                else:  # by far the most: `send` without a call
                    self.out.append(made(Send, (planned, made(InputsArrived, (flow, successor, (stage,), False)))))
                continue
            if view is None or view.own_queued != self.load.queued:  # the last one stays here
                view = table.view(self.me, self.now, self.load)
            worker = self._next_worker(flow, successor, view)
            if worker is not None:
                self.send(flow, successor, worker, (stage,))

    def _tell_end(self, task: Task) -> None:
        """Let the ingress know that a task has ended."""
        flow = task.flow
        done = (flow.request.key, task.stage, self.me, flow.attempt, task.ended)
        self.tell(flow.request.ingress, made(StageDone, done))

    def _next_worker(self, flow: Flow, stage: int, view: View, *, gathered: int = 0) -> int | None:
        """Where a task goes whose input is here; None if it can run nowhere any more, which its ingress hears."""
        planned = flow.workers[stage]
        try:
            worker = self.ahead.next_worker(
                flow.request, stage, planned, view, self.now, self.draws, gathered=gathered > 0
            )
        except NoPlaceError as error:
            self._give_up(flow, str(error))
            return None
        if worker != planned and self._recovers:
            alone = flow.graph.is_join[stage] and not gathered
            moved = StageMoved(flow.request.key, stage, worker, flow.attempt, alone, gathered)
            self.tell(flow.request.ingress, moved)
        return worker

    def _give_up(self, flow: Flow, reason: str, code: str = UNPLACEABLE, retry_seconds: float | None = None) -> None:
        """Let the ingress know that a task of a request can run nowhere, or has no result."""
        self.tell(flow.request.ingress, StageStuck(flow.request.key, reason, code, retry_seconds))

    def _fail(self, task: Task, reason: str, code: str = FAILED, retry_seconds: float | None = None) -> None:
        """A task has no result: its request fails, unless it is over already."""
        self.here.remove(task)
        if not task.dropped:
            self._give_up(task.flow, reason, code, retry_seconds)

    # What the ingress says

    def _progress_asked(self, event: ProgressAsked) -> None:
        key, ingress = event
        for task in self.here.of(key):
            if task.ended is not None:
                self._tell_end(task)
        self.tell(ingress, ProgressTold(key, self.me))

    def _replanned(self, event: Replanned) -> None:
        """Follow a new plan. The ingress does not know of tasks that ended here by the old one, or has them wrong."""
        flow, here = event.flow, self.here
        key = flow.request.key
        if key in here.over or not self._is_open(flow.request):
            return
        here.follow(flow)
        for task in here.of(key):
            if flow.attempt > task.flow.attempt:
                if task.ended is not None:
                    self._tell_end(task)
                else:
                    task.flow = flow
        if here.has_let_go:
            for stage, worker in enumerate(flow.workers):
                if worker == self.me and here.get(key, stage) is None:
                    self.tell(flow.request.ingress, OutputGone(key, stage, self.me, flow.attempt))

    def _send_again(self, event: SendAgain) -> None:
        flow, source, stages = event
        request = flow.request
        task = self.here.get(request.key, source)
        if task is None or task.ended is None:
            self.tell(request.ingress, OutputGone(request.key, source, self.me, flow.attempt))
            return
        for stage in stages:
            self.send(flow, stage, flow.workers[stage], (source,))

    def _forget(self, event: Forget) -> None:
        key = event.key
        self._drop(self.here.close(key))
        if self._reports_copies:
            self._drop_batches(lambda flow: flow.request.key == key)
