"""How tasks that wait come to a worker that would be done with them sooner.

Where a task goes is decided when its inputs are there, by rows that say how much waits at each worker. A batch that
begins on one worker makes another the better one for what still waits. So a worker looks around when a batch begins and
now and then while it runs, and sends on what would be done sooner elsewhere, as many as are planned to run together.

Shortly before its run ends, a worker also fetches: what has to start soonest of all that waits anywhere for models that
it has; or, if that waits here, others of its kind that fill the batch. So what waits is served as if it stood in one
queue for each model, wherever it stands.

Rows may be old. Where they are older than `OLD_SECONDS`, a task stays where its inputs are, and the worker asks others
for their rows before it sends on or fetches anything: a message takes far less time than old news does harm.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from fairway.engine.serving.forwarding import Forwarding
from fairway.engine.serving.messages import RowAsked, RowTold, Send, StageMoved, TasksWanted
from fairway.engine.serving.urgent_queue import latest_start
from fairway.errors import InputError
from fairway.made import made
from fairway.place.fleet import OUTSIDE
from fairway.place.lines import COUNT, LATEST, SECONDS
from fairway.place.placer import BatchPlacer, MovingPlacer
from fairway.place.state import ABSENT, OLD_SECONDS, View

if TYPE_CHECKING:
    from fairway.engine.serving.urgent_queue import Group, UrgentQueue

_LOOKS = 24
_LEAST_LOOK_SECONDS = 1e-3
"""While a batch runs, a worker looks so often whether what waits would be done sooner elsewhere; not all the time."""

_LEAD_SECONDS = 2e-3
"""So long before its run ends, a worker asks for what it could run next: inputs are on their way for a part of that."""

_ANSWER_SECONDS = 2e-3
_MOST_ASKED = 16
"""A worker waits so long for the rows of others, and asks so many of them at most."""


class Sharing(Forwarding):
    """Sends on what waits, and fetches what waits elsewhere."""

    __slots__ = (
        "_asked",
        "_asked_until",
        "_asks",
        "_fetches",
        "_looks_at",
        "_mover",
        "_moves",
        "_survey",
        "_told",
        "_wants",
        "_wants_at",
    )

    def _use_mover(self, placer: BatchPlacer) -> None:
        """Take note of whether what waits may move, and who says where."""
        rules = placer.rules
        self._mover: MovingPlacer | None = None
        if rules.moves and self.me != OUTSIDE:
            if not isinstance(placer, MovingPlacer):
                raise InputError(f"{placer.name}: its rules say that tasks move, but it has no method place_again")
            self._mover = placer
        self._moves = self._mover is not None and self._urgent is not None
        self._fetches = self._moves and rules.fetches
        self._asks = self._moves and rules.asks and self._table.age > OLD_SECONDS
        if self._asks and self._urgent is not None:
            self._urgent.lingers = 0.0  # tasks stay where they come, so that none is sent to a batch that waits
        self._looks_at = math.inf
        self._wants_at = math.inf
        self._wants = False
        self._survey = 0  # the number of the last time that others were asked
        self._asked: set[int] = set()
        self._asked_until = math.inf
        self._told: list[RowTold] = []

    # When

    def _next_look(self) -> float:
        """When to look around, fetch, or do without answers that have not come."""
        if self.running is None:
            return self._asked_until
        soonest = min(self._wants_at, self._asked_until)
        return min(soonest, self._looks_at) if self._ready else soonest

    def _run_began(self) -> None:
        """A run has begun: look around for what still waits, and fetch before it ends."""
        if self._fetches and self.running is not None:
            self._wants_at = max(self.load.busy_until - _LEAD_SECONDS, self.now)
        if self._ready:
            self._look(wants=False)

    def _look_when_due(self) -> None:
        now = self.now
        if now >= self._asked_until:
            self._act_on_answers()
        if now >= self._wants_at:
            self._wants_at = math.inf
            if self.running is not None:
                self._look(wants=True)
        elif now >= self._looks_at:
            self._looks_at = math.inf
            if self._ready and self.running is not None:
                self._look(wants=False)

    def _look(self, *, wants: bool) -> None:
        """Look around, and fetch if this worker `wants` that; where rows are old, when others have told theirs."""
        if self._asks:
            self._wants |= wants
            self._ask_others()
            self._look_again_later(_LOOKS // 4)
            return
        view = self.view()
        self._look_around(view)
        if wants:
            self._fetch(view)

    def _look_again_later(self, looks: int) -> None:
        seconds = 0.0 if self.running is None else self.running.seconds
        self._looks_at = self.now + max(seconds / looks, _LEAST_LOOK_SECONDS)

    # News by messages

    def _ask_others(self) -> None:
        """Ask others for their rows, unless they have been asked and have yet to answer."""
        if self._asked:
            return
        me = self.me
        others = [worker for worker in self.workers_present() if worker != me]
        if len(others) > _MOST_ASKED:
            first = int(self.draws.random() * len(others))
            others = (others + others)[first : first + _MOST_ASKED]
        if not others:
            return
        self._survey += 1
        self._asked, self._told = set(others), []
        self._asked_until = self.now + _ANSWER_SECONDS
        asked = RowAsked(me, self._survey)
        for worker in others:
            self.out.append(made(Send, (worker, asked)))

    def _row_asked(self, event: RowAsked) -> None:
        """Another worker wants to know the row of this one as it is now."""
        line: tuple[float, ...] = ()
        if self._urgent is not None:
            line = tuple(self._urgent.row().ravel().tolist())
        load = self.load
        self.tell(
            event.worker,
            RowTold(self.me, event.number, load.queued, load.busy_until, self.memory.resident, line),
        )

    def _row_told(self, event: RowTold) -> None:
        if event.number != self._survey or event.worker not in self._asked:
            return
        self._asked.discard(event.worker)
        self._told.append(event)
        if not self._asked:
            self._act_on_answers()

    def _no_answer_from(self, worker: int) -> None:
        """A worker that is lost does not answer any more."""
        if worker in self._asked:
            self._asked.discard(worker)
            if not self._asked:
                self._act_on_answers()

    def _act_on_answers(self) -> None:
        """Those that were asked have told their rows, or have taken too long."""
        view, wants = self._as_told(), self._wants
        self._asked, self._told, self._asked_until, self._wants = set(), [], math.inf, False
        if self.running is None:
            return
        self._look_around(view)
        if wants:
            self._fetch(view)

    def _as_told(self) -> View:
        """What this worker knows of itself, and of the others by their answers; those without one are left out."""
        view = self.view()
        queued, busy_until = np.full_like(view.queued, ABSENT), view.busy_until.copy()
        cached, free, lines = view.cached.copy(), view.free.copy(), view.lines.copy()
        sizes, memory = self._table.model_bytes, self._table.fleet.memory
        for told in self._told:
            worker, models = told.worker, list(told.models)
            if not self.is_present(worker):
                continue
            queued[worker], busy_until[worker] = told.queued, told.busy_until
            cached[:, worker] = False
            cached[models, worker] = True
            free[worker] = memory[worker] - sum([sizes[model] for model in models])
            if len(told.line) == lines[:, :, worker].size:
                lines[:, :, worker] = np.reshape(told.line, lines.shape[:2])
        return view._replace(queued=queued, busy_until=busy_until, cached=cached, free=free, lines=lines, age=0.0)

    # What waits here

    def _look_around(self, view: View) -> None:
        """Send what waits elsewhere if that is better by now, and do so again before long."""
        queue = self._urgent
        assert queue is not None
        for group in list(queue.ready):
            while not group.late and group.entries:
                target = self._better(queue, group, view)
                if target == self.me:
                    break
                first = group.entries[0][2]
                view = _joined(view, group, target, min(len(group.entries), first.facts.sizes[first.stage]))
                self._send_on(group, min(len(group.entries), first.facts.sizes[first.stage]), target)
        self._look_again_later(_LOOKS)

    def _better(self, queue: UrgentQueue, group: Group, view: View) -> int:
        """The worker that is best for the batch of those that wait, which may be this one."""
        first = group.entries[0][2]
        together = min(len(group.entries), first.facts.sizes[first.stage])
        row = queue.row()
        row[:, group.row] = 0.0
        assert self._mover is not None
        return self._mover.place_again(
            first.flow.request, first.stage, together, view._replace(own_line=row), self.now, self.draws
        )

    def _send_on(self, group: Group, together: int, target: int) -> None:
        """Send so many of a group to another worker, which its ingresses hear."""
        queue = self._urgent
        assert queue is not None
        for _, _, task in group.entries[:together]:
            queue.drop(task)
            self.load.drop(task.seconds)
            self._row_changed = True
            self.here.remove(task)
            flow, moves = task.flow, task.moves + 1
            if self._recovers:
                moved = StageMoved(flow.request.key, task.stage, target, flow.attempt, moves=moves)
                self.tell(flow.request.ingress, moved)
            before = flow.graph.workflow.predecessors[task.stage]
            self.send(flow, task.stage, target, before, gathered=moves)

    # What waits elsewhere

    def _fetch(self, view: View) -> None:
        """Ask for what has to start soonest of all that waits, or for what fills the batch that is next here."""
        queue, held, lines = self._urgent, self.memory.held, view.lines
        assert queue is not None
        counts = np.where(view.queued == ABSENT, 0.0, lines[COUNT])
        counts[:, self.me] = 0.0
        for model in range(len(counts) - 1):
            if model not in held:
                counts[model] = 0.0
        if not counts.any():
            return
        latest = np.where(counts > 0, lines[LATEST], np.inf)
        row = int(latest.argmin()) // latest.shape[1]
        own, size = queue.next(self.now), _MOST_ASKED
        if own is not None and latest_start(own) <= latest.min():
            row, size = queue.row_of(own), own.facts.sizes[own.stage]
        there = queue.waiting_for(row)
        for worker in np.argsort(latest[row], kind="stable")[:_MOST_ASKED].tolist():
            if there >= size or not counts[row, worker]:
                return
            self.out.append(made(Send, (worker, TasksWanted(self.me, row, there))))
            there += int(counts[row, worker])

    def _tasks_wanted(self, event: TasksWanted) -> None:
        """Another worker is about to be free: it gets what waits here for a model, as many as fill its batch."""
        worker, row, there = event
        queue = self._urgent
        if queue is None or self.running is None or not self._moves or not self.is_present(worker):
            return
        group = queue.group_of(row)
        if group is None:
            return
        first = group.entries[0][2]
        facts, stage = first.facts, first.stage
        together = min(len(group.entries), facts.sizes[stage] - there)
        if together > 0:
            self._send_on(group, together, worker)


def _joined(view: View, group: Group, target: int, together: int) -> View:
    """The view once so many of a group wait at another worker as well."""
    latest, _, first = group.entries[0]
    facts, stage, row = first.facts, first.stage, group.row
    lines = view.lines.copy()
    if not lines[COUNT, row, target] or latest < lines[LATEST, row, target]:
        lines[LATEST, row, target] = latest
    lines[COUNT, row, target] += together
    lines[SECONDS, row, target] += facts.times[stage][together - 1]
    return view._replace(lines=lines)
