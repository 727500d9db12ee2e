"""A worker's own part of the engine: which task runs next, which models are brought in for it, what runs meanwhile.

Tasks wait in a queue, and one runs at a time (Compass); where several run at once, each on its share of the worker, see
`side_by_side`. Models for the next ones are copied meanwhile, and memory is managed with a look at the queue. A task
whose turn has come takes along others that wait for the same stage of the same workflow, as many as floor 2 allows
(`batch_rule`): they are its mates, and run with it as a batch. No task waits for mates to come: a batch is made of
those that are there anyway. A task that waits for its models lets others pass that have theirs.

Where tasks come from and where their results go is not known here: that is for the engine that is made of this.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from itertools import islice

from fairway.engine.serving.messages import (
    FAILED,
    HIT,
    LATE,
    MISS,
    NO_MODEL,
    PARTIAL,
    SHED,
    UNPLACEABLE,
    Mate,
    Run,
    TakesUntil,
    TaskDone,
    TimePassed,
)
from fairway.engine.serving.residency import OwnPart, Residency
from fairway.engine.serving.task_queue import Task, TaskQueue
from fairway.engine.serving.urgent_queue import UrgentQueue
from fairway.made import made
from fairway.place.fleet import OUTSIDE
from fairway.place.memory import DoesNotFitError
from fairway.place.placer import WorkerRules
from fairway.place.state import Load as OwnLoad
from fairway.place.state import StateTable

_RUNS_AT_ONCE = frozenset((HIT, NO_MODEL))

_MOST_ASKED = 32
"""So many of the tasks that wait are looked at for one that can run while another waits for its models."""

_LEAST_OVERRUN_SECONDS = 5e-3
_LOOK_SECONDS = 2.0
"""A task that is late by less is not worth waking up for; a worker that was slow and rests looks so often."""


LATE_REASON = "its time was over before it could run"
SHED_REASON = "it could not have been in time any more"


class Station(Residency):
    """Its queue, its load and what runs."""

    __slots__ = (
        "_began",
        "_has_keep_alive",
        "_idles",
        "_overtakes",
        "_passed",
        "_patience",
        "_prefetches",
        "_ready",
        "_refuses",
        "_run",
        "_settles",
        "_shared",
        "_urgent",
        "_watches_time",
        "due",
        "load",
        "queue",
        "running",
    )

    def __init__(self, me: int, rules: WorkerRules, table: StateTable, own: OwnPart) -> None:
        super().__init__(me, rules, table, own)
        self._urgent: UrgentQueue | None = None
        if rules.by_latest_start and me != OUTSIDE:
            sheds = rules.late != "serve"
            self._urgent = UrgentQueue(len(table.fleet.models), sheds=sheds, lingers=rules.lingers)
        self.queue = TaskQueue() if self._urgent is None else self._urgent
        self._settles = rules.settles and rules.plans_stages and me != OUTSIDE
        self._refuses = rules.late == "refuse" and self._urgent is not None
        self._ready = self.queue.ready
        self.load = OwnLoad(rules.running_load)
        self.running: Task | None = None
        self.due = 0.0 if self._settles else math.inf
        self._shared = False  # whether several tasks run beside each other (`side_by_side`)
        self._watches_time = own.watches_time
        self._has_keep_alive = own.keep_alive_seconds < math.inf
        self._overtakes = rules.overtakes
        self._patience = rules.patience
        self._prefetches = rules.memory.prefetches
        self._idles = False  # whether the task that has the worker waits for its models
        self._passed: Task | None = None  # it waits for its models, too, and another one has the worker meanwhile
        self._began = -math.inf
        self._run = -1

    @abstractmethod
    def _pass_on(self, task: Task) -> None:
        """A task has ended."""

    @abstractmethod
    def _fail(self, task: Task, reason: str, code: str = FAILED, retry_seconds: float | None = None) -> None:
        """A task will have no result."""

    def _load_of(self, task: Task) -> float:
        """What a task that waits adds to the load."""
        return task.seconds

    def _enqueue(self, task: Task, ready: bool) -> None:
        self.queue.join(task, ready)
        self.load.enqueue(self._load_of(task) if self._shared else task.seconds)
        self._row_changed = True

    def _drop(self, tasks: Iterable[Task]) -> None:
        """The results of some tasks are of no use any more; those that run, or are about to, run to their end."""
        for task in tasks:
            if self.queue.discard(task):
                self.load.drop(self._load_of(task))
                self._row_changed = True
            else:
                task.dropped = True

    # Whose turn it is

    def _start_next(self) -> None:
        """Let the first task start that can run."""
        if self._passed is not None:
            self._resume(self._passed)
            return
        queue = self.queue
        now = self.now
        while (task := queue.take(now)) is not None:
            if self._start(task):
                return
        if self._urgent is not None:
            self.due = min(self.due, self._urgent.looks_at)

    def _start(self, task: Task) -> bool:
        """Give the worker to a task, and bring in the models that it lacks; False if it cannot run any more."""
        queue, memory, now = self.queue, self.memory, self.now
        if task.flow.request.deadline < now:
            self.load.drop(task.seconds)
            self._row_changed = True
            self._fail(task, LATE_REASON, LATE)
            return False
        if self._refuses and self._urgent is not None and self._urgent.is_late(task, now):
            self.load.drop(task.seconds)
            self._row_changed = True
            self._fail(task, SHED_REASON, SHED, self._work_seconds())
            return False
        if queue.waiting:
            self._gather_mates(task)
        found, models = NO_MODEL, task.models
        if models:
            held, copying = memory.held, memory.copying
            for model in models:
                if model not in held:
                    found = MISS
                elif found != MISS:
                    found = PARTIAL if model in copying or found == PARTIAL else HIT
        if found == MISS or (self._prefetches and queue.waiting):
            try:
                evict, fetch, prefetch = memory.prepare(models, queue.models)
            except DoesNotFitError as error:
                if memory.counts_use and memory.copying:  # a copy that no task has yet may go as soon as it is there
                    queue.join(task, True)
                    self.load.sum_up()
                    return True
                self.load.drop(task.seconds)
                self._fail_all(task, str(error), UNPLACEABLE)
                return False
            if evict or fetch:
                self._change_memory(evict, fetch)
            if prefetch:
                self._change_memory((), prefetch, "ahead")
        task.turn, task.found = now, found
        if task.mates:
            for mate in task.mates:
                mate.turn, mate.found = now, PARTIAL if found == MISS else found  # for them it is on its way
        if found in _RUNS_AT_ONCE:
            self._begin(task)
        else:
            self._await_models(task)
        return True

    def _begin(self, task: Task) -> None:
        """Let a task run whose models are there."""
        now, seconds, load = self.now, task.seconds, self.load
        self.running = task
        load.start(seconds, now, seconds)
        self._row_changed = True
        if self._watches_time:
            left = load.busy_until - now  # `_overdue` without a call
            self.due = now + 2.0 * (left if left > _LEAST_OVERRUN_SECONDS else _LEAST_OVERRUN_SECONDS)
        self._run_task(task)

    def _await_models(self, task: Task) -> None:
        """Give the worker to a task whose models are on their way; another one may have it until they come."""
        now, models = self.now, task.models
        there, waits_for = -math.inf, set[int]()
        for model, until in self._copies.values():
            if model in models:
                waits_for.add(model)
                there = max(there, until)
        task.waits_for = waits_for
        self.running = task
        self._idles = True
        seconds = task.seconds
        self.load.start(seconds, now, seconds + (there - now))
        self._row_changed = True
        if self._watches_time:
            self.due = self._overdue()
        if self._overtakes and self.queue.waiting:
            self._let_pass(task)

    def _let_pass(self, waiting: Task) -> None:
        """Let another task run while one waits for its models: if the times at which they end are less in sum.

        With w seconds until the models are there, tasks of a and b seconds end at w + a and w + a + b in their order,
        at b and max(b, w) + a in the other. The latter is less if b < 2 w + a.
        """
        now, held, copying = self.now, self.memory.held, self.memory.copying
        wait = max(0.0, max([until for model, until in self._copies.values() if model in waiting.waits_for]) - now)
        longest = 2.0 * wait + waiting.seconds

        def able(other: Task) -> bool:
            if other.seconds >= longest or other.flow.request.deadline < now:
                return False
            return all(model in held and model not in copying for model in other.models)

        task = self.queue.take_able(able, _MOST_ASKED)
        if task is None:
            return
        self._passed = waiting
        self.load.finish()
        self.load.enqueue(waiting.seconds)
        if self.queue.waiting:
            self._gather_mates(task)
        for each in (task, *task.mates):
            each.turn, each.found = now, HIT if task.models else NO_MODEL
        self._begin(task)

    def _resume(self, task: Task) -> None:
        """The worker is free again for a task that let another one pass."""
        self._passed = None
        if task.waits_for:
            self._await_models(task)
            return
        if self.queue.waiting:
            self._gather_mates(task)
        self._begin(task)

    def _gather_mates(self, task: Task) -> None:
        """Let others that wait for the stage of a task run with it; what they take together is then its time."""
        if self._urgent is not None:
            if not task.mates:
                more, seconds = self._urgent.mates(task, self.now)
                if more:
                    self._run_with(task, more, seconds)
            return
        batches = task.facts.batches[task.stage] if task.facts.batches is not None else None
        if batches is None:
            return
        queue, mates, now = self.queue, task.mates, self.now
        room = len(batches) - 1 - len(mates)
        in_time = (other for other in queue.alike(task) if other.flow.request.deadline >= now)
        found = tuple(islice(in_time, room))
        count, seconds = batches[len(mates) + len(found)]
        more = found[: count - 1 - len(mates)]
        if not more:
            return
        for mate in more:
            queue.drop(mate)
        self._run_with(task, more, seconds)

    def _run_with(self, task: Task, more: tuple[Task, ...], seconds: float) -> None:
        """Let others, which have left the queue, run with a task; all of them take so many seconds together."""
        load, now = self.load, self.now
        for mate in more:
            load.drop(mate.seconds)
            mate.turn, mate.found = now, HIT
        task.mates += more
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

    def _work_seconds(self) -> float:
        """How long what runs and waits here takes from now on, one after the other."""
        running = self.load.busy_until - self.now if self.running is not None else 0.0
        return max(self.load.queued, 0.0) + max(running, 0.0)

    def _overdue(self) -> float:
        """When the task that starts now has taken twice as long as expected."""
        now = self.now
        return now + 2.0 * max(self.load.busy_until - now, _LEAST_OVERRUN_SECONDS)

    def _time_passed(self, _: TimePassed) -> None:
        now, task = self.now, self.running
        if now < self.due:
            return
        if self._settles:
            self._settles = False
            self._load_homes()
        if not self._watches_time:
            self._rest()
            return
        if task is not None:
            self.load.overrun(now, task.turn)
            self.due = now + max(now - task.turn, _LEAST_OVERRUN_SECONDS)
        else:
            self.load.fade(now)
            self._rest()
        self._row_changed = True

    def _takes_until(self, event: TakesUntil) -> None:
        """Count as busy until then, so that others are placed elsewhere while a run takes as long as it may."""
        if self.running is not None and not self._shared:
            self.load.busy_until = max(self.load.busy_until, event.until)
            self.due = max(self.due, event.until) if self._watches_time else self.due
            self._row_changed = True

    def _rest(self) -> None:
        """A worker that is slow looks at its load now and then, until that is forgotten; idle copies may have to go."""
        self.due = self.now + _LOOK_SECONDS if self.load.pace.extra > 0 else math.inf
        if self._has_keep_alive:
            self.due = min(self.due, self.memory.next_expiry(self._keep_alive_seconds))

    def _run_task(self, task: Task, run: int | None = None) -> None:
        self._began = self.now
        self._idles = False
        if run is None:
            self._numbers += 1
            run = self._run = self._numbers
        mates: tuple[Mate, ...] = ()
        if task.mates:
            mates = tuple([Mate(each.flow, each.queued, each.turn, each.found) for each in task.mates])
        fields = (
            run, task.flow, task.stage, task.seconds, task.queued, task.turn, task.found, mates, task.batch,
        )  # fmt: skip
        self.out.append(made(Run, fields))

    def _task_done(self, event: TaskDone) -> None:
        task = self.running
        if task is None or event.run != self._run:
            return  # from before this worker was lost and came back
        self.running = None
        self.load.finish()
        self._row_changed = True
        if self._watches_time:
            self._note_pace(task, self._began, event)
        if event.failed or task.mates:
            self._end(task, event.failed)
        else:  # by far the most
            self._pass_on(task)

    def _note_pace(self, task: Task, began: float, event: TaskDone) -> None:
        """Take note of how long a task took, unless it raised, and rest."""
        _, failed, seconds = event
        now, pace = self.now, self.load.pace
        started = now - seconds if seconds >= 0.0 else began  # where it is not known, it is NaN
        if not failed and pace.ran(task.seconds, started, now):
            self.load.sum_up()
        if pace.extra > 0 or self._has_keep_alive:
            self._rest()
        else:  # by far the most
            self.due = math.inf

    def _end(self, task: Task, failed: Mapping[int, str]) -> None:
        """A task has ended that failed, or ran with others."""
        for position, each in enumerate((task, *task.mates)):
            if position in failed:
                self._fail(each, failed[position])
            else:
                self._pass_on(each)

    def _fail_all(self, task: Task, reason: str, code: str = FAILED) -> None:
        """A task and those that were to run with it will have no result."""
        for each in (task, *task.mates):
            self._fail(each, reason, code)

    # Its models

    def _model_came(self, model: int) -> None:
        """A task may have waited for this model."""
        task = self._passed or (self.running if self._idles else None)
        if task is None or model not in task.waits_for:
            return
        task.waits_for.remove(model)
        if not task.waits_for and task is self.running and self._idles:
            if self.queue.waiting:
                self._gather_mates(task)
                if self._watches_time:
                    self.due = self._overdue()
            self._run_task(task)

    def _model_did_not_come(self, model: int, reason: str) -> None:
        """A task that waited for this model fails."""
        task = self._passed or (self.running if self._idles else None)
        if task is None or model not in task.waits_for:
            return
        task.waits_for.clear()
        if task is self._passed:
            self._passed = None
            self.load.drop(task.seconds)
        else:
            self.running = None
            self._idles = False
            self.load.finish()
            self._rest()
        self._fail_all(task, reason)
