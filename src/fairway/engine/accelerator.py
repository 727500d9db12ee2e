"""One accelerator of a worker: whose turn it is, which models are brought in for it, and who runs meanwhile (Compass).

Tasks wait in a queue, and one runs at a time; models for the next ones are copied meanwhile, and memory is managed with
a look at the queue. A task whose turn has come takes along others that wait for the same stage of the same workflow, as
many as floor 2 allows (`batch_rule`): they are its mates, and run with it as a batch. Nobody waits for mates to come: a
batch is made of those that are there anyway. A task that waits for its models lets others pass that have theirs.

Where tasks come from and where their results go is not known here: that is for the engine that is made of this.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from itertools import islice

from fairway.engine.serving_messages import (
    FAILED,
    HIT,
    LATE,
    MISS,
    NO_MODEL,
    PARTIAL,
    UNPLACEABLE,
    Command,
    Evict,
    Load,
    Mate,
    ModelFailed,
    ModelLoaded,
    Pin,
    Run,
    TaskDone,
    TimePassed,
)
from fairway.engine.task_queue import Task, TaskQueue
from fairway.made import made
from fairway.place.fleet import OUTSIDE
from fairway.place.memory import DeviceMemory, DoesNotFitError
from fairway.place.scheduler import WorkerRules
from fairway.place.state import Load as OwnLoad
from fairway.place.state import StateTable

_RUNS_AT_ONCE = frozenset((HIT, NO_MODEL))

_MOST_ASKED = 32
"""So many of the tasks that wait are looked at for one that can run while another waits for its models."""

_LEAST_OVERRUN_SECONDS = 5e-3
_LOOK_SECONDS = 2.0
"""A task that is late by less is not worth waking up for; a worker that was slow and rests looks so often."""


class Accelerator(ABC):
    """Its queue, its load, its memory and what runs. Commands go to `out`; `now` is the time of what is happening.

    If it `watches_time`, it compares how long tasks take with what was expected, and wants to be told when it is `due`.
    `_row_changed` and `_models_changed` say that others should hear of it.
    """

    __slots__ = (
        "_began",
        "_copied_until",
        "_copies",
        "_fetch_seconds",
        "_idles",
        "_models_changed",
        "_numbers",
        "_overtakes",
        "_passed",
        "_patience",
        "_prefetches",
        "_row_changed",
        "_run",
        "_table",
        "_waits_for",
        "_watches_time",
        "due",
        "load",
        "me",
        "memory",
        "now",
        "out",
        "queue",
        "running",
    )

    def __init__(self, me: int, rules: WorkerRules, table: StateTable, *, watches_time: bool, epoch: int) -> None:
        self.me = me
        self.queue = TaskQueue()
        self.load = OwnLoad(rules.running_load)
        capacity = 0.0 if me == OUTSIDE else table.fleet.memory[me]
        self.memory = DeviceMemory(capacity, table.model_bytes, rules.memory, table.homes_at(me))
        self.running: Task | None = None
        self.now = -math.inf
        self.due = math.inf
        self.out: list[Command] = []
        self._watches_time = watches_time
        self._overtakes = rules.overtakes
        self._patience = rules.patience
        self._prefetches = rules.memory.prefetches
        self._table = table
        self._fetch_seconds = table.fetch_seconds
        self._copies: dict[int, tuple[int, float]] = {}  # by model, the number of its copy and when it should end
        self._copied_until = -math.inf
        self._waits_for: set[int] = set()
        self._idles = False  # whether the task that has the accelerator waits for its models
        self._passed: Task | None = None  # it waits for its models, too, and another one has the accelerator meanwhile
        self._began = -math.inf
        self._numbers = epoch << 40
        self._run = -1
        self._row_changed = False
        self._models_changed = False

    @abstractmethod
    def _pass_on(self, task: Task) -> None:
        """A task has ended."""

    @abstractmethod
    def _fail(self, task: Task, reason: str, code: str = FAILED) -> None:
        """A task will have no result."""

    def _enqueue(self, task: Task, ready: bool) -> None:
        self.queue.join(task, ready)
        self.load.enqueue(task.seconds)
        self._row_changed = True

    def _drop(self, tasks: Iterable[Task]) -> None:
        """Nobody waits for some tasks any more; those that run, or are about to, run to their end, for nothing."""
        for task in tasks:
            if self.queue.discard(task):
                self.load.drop(task.seconds)
                self._row_changed = True
            else:
                task.dropped = True

    # Whose turn it is

    def _start_next(self) -> None:
        """Give the accelerator to the first task that can run."""
        if self._passed is not None:
            self._resume(self._passed)
            return
        queue = self.queue
        while (task := queue.take()) is not None:
            if self._start(task):
                return

    def _start(self, task: Task) -> bool:
        """Give the accelerator to a task, and bring in the models that it lacks; False if it cannot run any more."""
        queue, memory, copies, now = self.queue, self.memory, self._copies, self.now
        if task.flow.request.deadline < now:
            self.load.drop(task.seconds)
            self._row_changed = True
            self._fail(task, "its time was over before it could run", LATE)
            return False
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
                evict, fetch, prefetch = memory.prepare(task.models, queue.models)
            except DoesNotFitError as error:
                self.load.drop(task.seconds)
                for each in (task, *task.mates):
                    self._fail(each, str(error), UNPLACEABLE)
                return False
            if evict or fetch or prefetch:
                self._change_memory(evict, fetch + prefetch)
        task.turn, task.found = now, found
        for mate in task.mates:
            mate.turn, mate.found = now, PARTIAL if found == MISS else found  # for them it is on its way
        if found in _RUNS_AT_ONCE:
            self._begin(task)
        else:
            self._await_models(task)
        return True

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

    # Its memory

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
