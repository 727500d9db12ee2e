"""The requests that came to one worker: planned here, kept until the reply, planned again when workers are lost.

A plan for what is left of a request is a new attempt at it. As long as no worker is lost, the ingress hears only of
tasks that went elsewhere than planned, and of those whose outputs the reply needs. After a loss it asks the workers
that may have something of a request how far it is, and plans when all have answered, or are lost themselves. News of an
older attempt is taken with care: a task that ended counts, but its output may have gone where no task waits for it any
more, so it is sent again; a worker that took a task by an old plan gets the new one.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fairway.engine.serving.flow import Flow
from fairway.engine.serving.messages import (
    FAILED,
    HOPELESS,
    IMPOSSIBLE,
    Cancelled,
    Forget,
    OutputGone,
    ProgressAsked,
    ProgressTold,
    Refuse,
    Replanned,
    Reply,
    RequestArrived,
    SendAgain,
    StageDone,
    StageMoved,
    StageStuck,
)
from fairway.engine.serving.open_requests import OpenRequest
from fairway.made import made
from fairway.place.graph import TaskGraph
from fairway.place.plan import NoPlaceError, Plan, Request

if TYPE_CHECKING:
    from fairway.engine.serving.engine import ServingEngine


_LATE_SECONDS = 60.0
"""So long after a loss tasks may still come where they were sent to its predecessor, along ways that no plan names."""


def _too_late(key: int, graph: TaskGraph, expected: float, deadline: float, now: float) -> Refuse:
    """Why a request would not be in time: no worker is fast enough, or too much else waits; then, until when."""
    fastest = graph.seconds.min(axis=1).tolist()
    least, left = float(graph.workflow.critical_path(fastest).seconds), max(deadline - now, 0.0)
    if least > left:
        return Refuse(key, f"it would take {least:.3g} s at least, but has {left:.3g} s", IMPOSSIBLE)
    reason = f"it would take {expected - now:.3g} s, but has {left:.3g} s"
    return Refuse(key, reason, HOPELESS, expected - deadline)


class Ingress:
    """The open requests of a worker, by key; whoever tells it something says for which engine.

    `follows` says that a worker with its number was lost before: news for that one may come to it.
    """

    __slots__ = ("_forgets", "_lost_at", "_most_attempts", "_recovers", "open")

    def __init__(self, *, recovers: bool, forgets: bool, most_attempts: float, follows: bool = False) -> None:
        self._recovers = recovers
        self._forgets = forgets
        self._most_attempts = most_attempts
        self._lost_at = None if follows else -math.inf
        self.open: dict[int, OpenRequest] = {}

    def arrived(self, engine: ServingEngine, event: RequestArrived) -> None:
        """Plan a request, and send its input to where it starts."""
        key, graph, deadline, due = event
        if key in self.open:
            raise engine.story_error(event.cause, f"{event.cause} arrives but is here already")
        request = made(Request, (key, graph, engine.me, None, deadline, deadline == math.inf, due))
        plan = self._plan(engine, request)
        if plan is None:
            return
        if deadline != math.inf and (expected := float(plan.finish.max())) > deadline:
            engine.out.append(_too_late(key, graph, expected, deadline, engine.now))
            return
        facts = engine.facts(graph)
        flow = Flow(request, graph, plan.workers.tolist())
        self.open[key] = OpenRequest(flow, facts.exits, tracked=self._recovers)
        for stage in facts.entries:
            engine.send(flow, stage, flow.workers[stage], ())

    def stage_done(self, engine: ServingEngine, event: StageDone) -> None:
        """A task of a request has ended: if it was the last, the request is answered."""
        key, stage, worker, _, finished = event
        request = self.open.get(key)
        if request is None:
            if self._recovers and self._forgets:
                self._news_of_the_past(engine, key, worker)
            return
        if self._recovers:
            self._note(engine, request, event)
        if request.left >> stage & 1:
            request.left &= ~(1 << stage)
            request.finished = max(request.finished, finished)
            if not request.left:
                engine.out.append(made(Reply, (key, request.finished)))
                if self._forgets or request.flow.attempt:  # else no worker has a task of it any more
                    self._close(engine, request)
                else:
                    del self.open[key]

    def stage_moved(self, engine: ServingEngine, event: StageMoved) -> None:
        """A task went elsewhere than planned; if that worker is gone by now, the task needs another place.

        So does one that went without its other inputs, since its planned worker is gone: some of these may have gone
        there, too.
        """
        key, stage, worker, attempt, alone, moves = event
        request = self.open.get(key)
        if request is None:
            self._news_of_the_past(engine, key, worker)
            return
        request.named.add(worker)
        if attempt < request.flow.attempt:
            engine.tell(worker, Replanned(request.flow))
        known = request.moved[stage]
        if (attempt, moves) >= known and not request.is_done(stage):  # else it was sent anew, or moved on, since then
            request.at[stage], request.moved[stage] = worker, (attempt, moves)
            if alone:
                request.gone.add(stage)
            self._recover(engine, request)

    def stage_stuck(self, engine: ServingEngine, event: StageStuck) -> None:
        """A task has no result, and will have none: the request is refused."""
        request = self.open.get(event.key)
        if request is not None:
            engine.out.append(Refuse(*event))
            self._close(engine, request)

    def output_gone(self, engine: ServingEngine, event: OutputGone) -> None:
        """What a task put out is not there any more: the task runs once more, if its output is still needed.

        A worker also says so of a task that it does not know. If that one takes from tasks that have not ended, it is
        still to come; else its inputs are sent again, in case it has been there.
        """
        key, stage, worker, attempt = event
        request = self.open.get(key)
        if request is None or request.at[stage] != worker or attempt < request.since[stage]:
            return  # the task was sent on its way once more since then
        if request.is_done(stage):
            request.gone.add(stage)
            self._recover(engine, request)
        elif attempt > request.since[stage]:
            self._send_inputs(engine, request, stage)

    def cancelled(self, engine: ServingEngine, event: Cancelled) -> None:
        """A client waits for its request no more: all workers drop what they hold of it."""
        request = self.open.get(event.key)
        if request is not None:
            self._close(engine, request)

    def worker_lost(self, engine: ServingEngine, worker: int) -> None:
        """A worker is lost: plan again what it had, once the others have said what they have."""
        self._lost_at = engine.now
        for request in list(self.open.values()):
            request.asked.discard(worker)
            if worker in request.named:
                request.lose(worker)
                self._ask(engine, request)
            if request.flow.request.key in self.open:  # else there was no one to ask, and no place for it any more
                self._recover(engine, request)

    def progress_told(self, engine: ServingEngine, event: ProgressTold) -> None:
        """A worker has said what it has of a request."""
        request = self.open.get(event.key)
        if request is not None:
            request.asked.discard(event.worker)
            self._recover(engine, request)

    def _news_of_the_past(self, engine: ServingEngine, key: int, worker: int) -> None:
        """A task ran twice, or for a request that is over: its worker may forget it.

        Soon after a loss any worker may have had a part in it: tasks for one that is lost reach its successor.
        """
        if self._lost_at is None:
            self._lost_at = engine.now
        is_settled = engine.now - self._lost_at > _LATE_SECONDS
        for holder in {worker} if is_settled else sorted({worker, *engine.workers_present()}):
            engine.tell(holder, Forget(key))

    def _ask(self, engine: ServingEngine, request: OpenRequest) -> None:
        """Ask all workers that may have something of a request how far it is."""
        there = {worker for worker in request.named if worker == engine.me or engine.is_present(worker)}
        asked = sorted(there - request.asked)
        request.asked |= there
        for worker in asked:
            engine.tell(worker, ProgressAsked(request.flow.request.key, engine.me))

    def _note(self, engine: ServingEngine, request: OpenRequest, event: StageDone) -> None:
        _, stage, worker, attempt, finished = event
        flow = request.flow
        request.named.add(worker)
        after = flow.graph.workflow.successors[stage]
        if after and worker != engine.me and not engine.is_present(worker):
            return  # its output is gone with it
        if request.is_done(stage):
            return
        request.finish[stage], request.at[stage] = finished, worker
        if attempt != flow.attempt:
            waiting = tuple(next_ for next_ in after if not request.is_done(next_))
            if waiting:
                engine.tell(worker, SendAgain(flow, stage, waiting))

    def _recover(self, engine: ServingEngine, request: OpenRequest) -> None:
        if request.asked:
            return
        request.conclude()
        repeated = request.to_repeat(engine.is_present)
        if not repeated:
            return
        old = request.flow
        if old.attempt + 1 >= self._most_attempts:
            reason = f"workers that ran it were lost {old.attempt + 1} times, so it is not tried again"
            engine.out.append(Refuse(old.request.key, reason, FAILED))
            self._close(engine, request)
            return
        plan = self._plan(engine, old.request._replace(kept=request.without(repeated)))
        if plan is None:
            self._close(engine, request)
            return
        flow = Flow(old.request, old.graph, plan.workers.tolist(), old.attempt + 1)
        request.follow(flow, repeated)
        before = flow.graph.workflow.predecessors
        # Who has a task of it needs the new plan before anything that is sent by it.
        holders = {request.at[stage] for stage in range(len(request.at)) if not request.is_done(stage)}
        for worker in sorted(holders):
            engine.tell(worker, Replanned(flow))
        again: dict[int, list[int]] = {}
        for stage in sorted(repeated):
            if not before[stage]:
                engine.send(flow, stage, flow.workers[stage], ())
            for source in before[stage]:
                if request.is_done(source):
                    again.setdefault(source, []).append(stage)
        for source, stages in again.items():
            engine.tell(request.at[source], SendAgain(flow, source, tuple(stages)))

    def _send_inputs(self, engine: ServingEngine, request: OpenRequest, stage: int) -> None:
        """Have all inputs of a task sent to where it is planned, if they are there."""
        flow, before = request.flow, request.flow.graph.workflow.predecessors[stage]
        if not before:
            engine.send(flow, stage, flow.workers[stage], ())
        elif all(map(request.is_done, before)):
            for source in before:
                engine.tell(request.at[source], SendAgain(flow, source, (stage,)))

    def _plan(self, engine: ServingEngine, request: Request) -> Plan | None:
        try:
            return engine.ahead.plan(request, engine.view(), engine.now, engine.draws)
        except NoPlaceError as error:
            engine.out.append(Refuse(request.key, str(error)))
            return None

    def _close(self, engine: ServingEngine, request: OpenRequest) -> None:
        key = request.flow.request.key
        del self.open[key]
        if self._recovers:
            for worker in sorted(request.named):
                engine.tell(worker, Forget(key))
