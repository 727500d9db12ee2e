"""Tasks that run beside each other on one worker, each on its share of the CPUs and slices (ESG's machine model).

The next task starts as soon as its share is free and memory has a copy of its models for it alone; none behind it goes
first, so that a large one is not held up for ever. It holds its share while a copy is on its way. A worker's load is
what its tasks take of the whole worker: a task of s seconds on a seventh of it adds s / 7.

A batch that an engine has planned (`desk`) comes as one task with its mates, and ends as one: that engine hears of it.
Workers that run such batches all count copies and shares; on one that is not divided, a batch has all of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

from fairway.engine.serving.flow import Flow
from fairway.engine.serving.messages import (
    FAILED,
    HIT,
    LATE,
    MISS,
    NO_MODEL,
    PARTIAL,
    UNPLACEABLE,
    BatchArrived,
    BatchDone,
    BatchStopped,
    Stop,
    TaskDone,
    TimePassed,
)
from fairway.engine.serving.residency import OwnPart
from fairway.engine.serving.station import LATE_REASON, Station
from fairway.engine.serving.task_queue import Task
from fairway.made import made
from fairway.place.fleet import OUTSIDE
from fairway.place.memory import DoesNotFitError
from fairway.place.placer import WorkerRules
from fairway.place.state import NEVER, StateTable

_MOST_STOPPED = 64
"""So many batches are remembered whose end was heard of before they came."""


class Beside(NamedTuple):
    """A task that runs, or waits for its models, beside others: on so many CPUs and slices, since then, until then.

    `part` is the part of the worker that these are.
    """

    task: Task
    cpu: int
    gpu: int
    part: float
    began: float
    until: float


class SideBySide(Station):
    """A worker that may be shared; `beside` are the tasks that hold shares of it, by the numbers of their runs.

    `awaiting` are those of them that wait for copies of their models, the one that has waited longest first.
    """

    __slots__ = ("_shares", "_stopped_early", "awaiting", "beside", "cpus", "free_cpu", "free_gpu", "slices")

    def __init__(self, me: int, rules: WorkerRules, table: StateTable, own: OwnPart) -> None:
        super().__init__(me, rules, table, own)
        worker = None if me == OUTSIDE else table.fleet.workers[me]
        self._shared = worker is not None and self.memory.counts_use
        self.cpus, self.slices = (0, 0) if worker is None else (worker.cpus, worker.slices)
        self.free_cpu, self.free_gpu = self.cpus, self.slices
        self._shares: dict[tuple[int, int], tuple[int, int, float]] = {}
        self.beside: dict[int, Beside] = {}
        self.awaiting: list[Task] = []
        self._stopped_early: list[int] = []

    def _share(self, task: Task) -> tuple[int, int, float]:
        """The CPUs and slices that a task holds, and the part of the worker that they are.

        They are as planned, as floor 2 fixed it for its stage, or the whole worker.
        """
        if task.batch is not None:
            size = task.batch.configuration[1:]
        else:
            shares = task.facts.shares
            size = (self.cpus, self.slices) if shares is None else shares[task.stage]
        share = self._shares.get(size)
        if share is None:
            cpu, gpu = size
            part = max(cpu / self.cpus if self.cpus else 0.0, gpu / self.slices if self.slices else 0.0)
            share = self._shares[size] = (cpu, gpu, part)
        return share

    def _load_of(self, task: Task) -> float:
        return task.seconds * self._share(task)[2] if self._shared else task.seconds

    # Tasks start

    def _start_beside_each_other(self) -> None:
        """Let the first tasks start whose shares are free, one after the other."""
        while (task := self.queue.first()) is not None and self._start_beside(task):
            self.queue.take()
            self.load.drop(self._load_of(task))
            self._row_changed = True

    def _start_beside(self, task: Task) -> bool:
        """Let a task have its share, or fail; False if it has to wait for a share, or until a copy of a model can go.

        No task that is not before it in the queue may wait there.
        """
        cpu, gpu, part = self._share(task)
        if cpu > self.free_cpu or gpu > self.free_gpu:
            return False
        memory, now = self.memory, self.now
        if task.batch is None and task.flow.request.deadline < now:
            self._fail(task, LATE_REASON, LATE)
            return True
        found = self._lacks(task) if task.models else NO_MODEL
        if found == MISS or self._prefetches:
            try:
                evict, fetch, prefetch = memory.prepare(task.models, self.queue.models)
            except DoesNotFitError as error:
                if self.beside or memory.copying:
                    return False
                self._fail_all(task, str(error), UNPLACEABLE)
                return True
            if evict or fetch:
                self._change_memory(evict, fetch)
            if prefetch:
                self._change_memory((), prefetch, "ahead")
        self.free_cpu -= cpu
        self.free_gpu -= gpu
        task.waits_for = {model for model in task.models if not memory.claim(model)} if task.models else set()
        task.turn, task.found = now, found
        for mate in task.mates:
            mate.turn, mate.found = now, PARTIAL if found == MISS else found  # for them it is on its way
        self._numbers += 1
        run = task.run = self._numbers
        there = now
        if task.waits_for:
            there = max(until for model, until in self._copies.values() if model in task.waits_for)
        self.beside[run] = made(Beside, (task, cpu, gpu, part, now, there + task.seconds))
        self._sum_up()
        self._row_changed = True
        if task.waits_for:
            self.awaiting.append(task)
        else:
            self._run_task(task, run)
        return True

    def _begin_beside(self, task: Task) -> None:
        """Let a task run that has waited for its models."""
        now = self.now
        self.beside[task.run] = self.beside[task.run]._replace(began=now, until=now + task.seconds)
        self._sum_up()
        self._row_changed = True
        self._run_task(task, task.run)

    def _lacks(self, task: Task) -> int:
        """What a task finds in memory, where each needs a copy of its models to itself."""
        memory, found = self.memory, NO_MODEL
        for model in task.models:
            if not memory.available(model):
                return MISS
            found = PARTIAL if found == PARTIAL or not memory.idle(model) else HIT
        return found

    def _sum_up(self) -> None:
        """What is left of the tasks that hold shares, as parts of the whole worker."""
        now, left = self.now, 0.0
        for _, _, _, part, _, until in self.beside.values():
            if until > now:
                left += (until - now) * part
        self.load.busy_until = now + left if self.beside else NEVER

    # Tasks end

    def _task_beside_done(self, event: TaskDone) -> None:
        """A task that ran on a share of the worker has ended, and those that ran with it."""
        ended = self.beside.pop(event.run, None)
        if ended is None:
            return  # from before this worker was lost and came back
        task, now = ended.task, self.now
        self._vacate(ended)
        if self._watches_time:
            self._note_pace(task, ended.began, event)
        for model in task.models:
            self.memory.release(model, now)
        self._rest()
        if task.batch is not None:
            known = event.seconds == event.seconds
            self._batch_done(task, event.seconds if known else now - ended.began, event.failed)
        else:
            self._end(task, event.failed)

    def _vacate(self, ended: Beside) -> None:
        self.free_cpu += ended.cpu
        self.free_gpu += ended.gpu
        self._sum_up()
        self._row_changed = True

    def _batch_done(self, task: Task, seconds: float, failed: Mapping[int, str]) -> None:
        """Let the engine that has planned a batch know that it has ended."""
        batch = task.batch
        assert batch is not None
        self.tell(batch.planner, made(BatchDone, (batch.number, self.me, seconds, failed)))

    def _fail_all(self, task: Task, reason: str, code: str = FAILED) -> None:
        if task.batch is None:
            super()._fail_all(task, reason, code)
        else:
            self._batch_done(task, 0.0, dict.fromkeys(range(1 + len(task.mates)), reason))

    def _drop_batches(self, concerned: Callable[[Flow], bool]) -> None:
        """The results of some requests in planned batches are of no use; a batch that waits for those alone goes."""
        for task in (*[each.task for each in self.beside.values()], *self.queue):
            if task.batch is None:
                continue
            members = (task, *task.mates)
            for each in members:
                if concerned(each.flow):
                    each.dropped = True
            if all(each.dropped for each in members) and self.queue.discard(task):
                self.load.drop(self._load_of(task))
                self._row_changed = True
                self._batch_done(task, 0.0, dict.fromkeys(range(len(members)), "its requests are over"))

    # Batches are stopped

    def _stop_batch(self, event: BatchStopped) -> None:
        """The engine that planned a batch has another one for its place: it gives up its share, and runs no further."""
        for run, each in self.beside.items():
            if each.task.batch is not None and each.task.batch.number == event.number:
                del self.beside[run]
                self._vacate(each)
                self._let_models_go(each.task)
                return
        for task in self.queue:
            if task.batch is not None and task.batch.number == event.number:
                self.queue.discard(task)
                self.load.drop(self._load_of(task))
                self._row_changed = True
                return
        self._stopped_early.append(event.number)  # it has ended, or is still to come, with more to carry than this news
        del self._stopped_early[:-_MOST_STOPPED]

    def _was_stopped(self, batch: BatchArrived) -> bool:
        """Whether a batch that arrives now was stopped before."""
        if batch.number not in self._stopped_early:
            return False
        self._stopped_early.remove(batch.number)
        return True

    def _let_models_go(self, task: Task) -> None:
        """A task that ran, or waited for its models, has no use for them any more."""
        if task in self.awaiting:
            self.awaiting.remove(task)
        else:
            self.out.append(Stop(task.run))
        for model in task.models:
            if model in task.waits_for:
                self.memory.disclaim(model)
            else:
                self.memory.release(model, self.now)

    # Models and time

    def _model_came(self, model: int) -> None:
        if not self._shared:
            Station._model_came(self, model)  # as `super()`, which takes three times as long
            return
        self._rest()
        for task in self.awaiting:  # the one that has waited longest has it
            if model in task.waits_for:
                task.waits_for.discard(model)
                if not task.waits_for:
                    self.awaiting.remove(task)
                    self._begin_beside(task)
                return

    def _model_did_not_come(self, model: int, reason: str) -> None:
        if not self._shared:
            super()._model_did_not_come(model, reason)
            return
        for task in self.awaiting:
            if model in task.waits_for:
                self.awaiting.remove(task)
                self._vacate(self.beside.pop(task.run))
                for other in task.models:
                    if other not in task.waits_for:
                        self.memory.release(other, self.now)
                    elif other != model:
                        self.memory.disclaim(other)
                self._fail_all(task, reason)
                return

    def _time_passed(self, event: TimePassed) -> None:
        if self._keep_alive_seconds < math.inf and self.now >= self.due:
            gone = self.memory.expired(self.now, self._keep_alive_seconds)
            if gone:
                self._change_memory(gone, ())
        super()._time_passed(event)
