"""The tasks that wait at a worker in the order in which they have to start, and which of them run together.

A task has to start by `latest`: when its request is due, less the planned batches of its own stage and of what follows
(`place.stage_plan`). The next task is the one with the least of these; without an SLO its place goes by its arrival and
its rank. With it run others of its group, in that order, as many as

    the n with the least t(n) / n,   of those with   now + t(n) <= the time by which the first of them has to end

A task that would not be in time with so many that wait behind it, up to the planned batch, is late: were it served, it
would make the batch smaller and those behind it late as well, which is how a scheduler collapses under load. It runs
when nothing else waits, or not at all.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Iterator

import numpy as np

from fairway.engine.serving.task_queue import Task, TaskQueue
from fairway.place.arrays import FloatArray
from fairway.place.lines import FIELDS

Entry = tuple[float, int, Task]
"""When a task has to start, its place, and the task."""


class Group:
    """Tasks that may run together, the one that has to start soonest first; those of a `late` group run last."""

    __slots__ = ("entries", "late", "number", "row")

    def __init__(self, number: int, row: int, *, late: bool) -> None:
        self.entries: list[Entry] = []
        self.number = number
        self.row = row
        self.late = late


class UrgentQueue(TaskQueue):
    """`ready` are the groups that have tasks; of a worker that has `models` rows for what waits (`lines`).

    With `sheds`, tasks that cannot be in time are late. A batch that is not full waits for others `lingers` times as
    long as it would waste, but starts in time; `looks_at` is when the first of those that wait now will.
    """

    __slots__ = ("_groups", "_late", "_rows", "_sheds", "lingers", "looks_at")

    ready: list[Group]  # type: ignore[assignment]

    def __init__(self, models: int, *, sheds: bool, lingers: float = 0.0) -> None:
        super().__init__()
        self.looks_at = math.inf
        self.lingers = lingers
        self.ready = []
        self._groups: dict[int, Group] = {}
        self._late: dict[int, Group] = {}
        self._rows = models + 1
        self._sheds = sheds

    def ready_tasks(self) -> Iterator[Task]:
        """The tasks that can run, in no order."""
        return (task for group in self.ready for _, _, task in group.entries)

    def join(self, task: Task, ready: bool) -> None:
        """Give a task the next place; `ready` says that all of its inputs are there."""
        place = task.place = self._next_place
        self._next_place += 1
        self.waiting[place] = task
        if ready:
            self.complete(task)

    def complete(self, task: Task) -> None:
        """All inputs of a task are there."""
        self._insert(self._groups, task, late=False)

    def _insert(self, groups: dict[int, Group], task: Task, *, late: bool) -> None:
        facts, stage = task.facts, task.stage
        number = facts.groups[stage]
        group = groups.get(number)
        if group is None:
            group = groups[number] = Group(number, self.row_of(task), late=late)
        if not group.entries:
            self.ready.append(group)
        insort(group.entries, (latest_start(task), task.place, task))

    def take(self, now: float = -math.inf) -> Task | None:
        """The next task that can run, which leaves the queue."""
        task = self.next(now, lingers=True)
        if task is not None:
            self.drop(task)
        return task

    def first(self) -> Task | None:
        """The next task that can run, which stays in the queue."""
        return self.next(-math.inf)

    def next(self, now: float, *, lingers: bool = False) -> Task | None:
        """The task that has to start soonest; those that are late by now step back, and batches may wait for more."""
        ready = self.ready
        self.looks_at = math.inf
        if lingers and self.lingers:
            ready = [group for group in ready if not self._waits_for_more(group, now)]
        while ready:
            group = ready[0]
            if len(ready) > 1:
                group = min(ready, key=_urgency)
            task = group.entries[0][2]
            if group.late or not self._sheds or not self.is_late(task, now, len(group.entries)):
                return task
            self._remove(group, 0)
            self._insert(self._late, task, late=True)
            if ready is not self.ready:
                return self.next(now, lingers=lingers)
        return None

    def _waits_for_more(self, group: Group, now: float) -> bool:
        """Whether a batch that is not full had better wait a little; `looks_at` is when that will be over.

        It waits as long as it would waste if it started now: n take t(n) where they would take n / s of a full batch's
        t(s). Whenever the next task comes then, no more time is lost than twice what could not be helped.
        """
        latest, _, first = group.entries[0]
        facts, stage = first.facts, first.stage
        size = facts.sizes[stage]
        if group.late or len(group.entries) >= size or first.flow.request.due == math.inf:
            return False
        times, waiting = facts.times[stage], len(group.entries)
        wasted = times[waiting - 1] - times[size - 1] * waiting / size
        until = min(latest, first.queued + self.lingers * wasted)
        if now >= until:
            return False
        self.looks_at = min(self.looks_at, until)
        return True

    def is_late(self, task: Task, now: float, waiting: int = 1) -> bool:
        """Whether a task would not be in time with the planned batch behind it.

        Where stages before it have run, that work would be lost: then those that wait, so many, are enough.
        """
        facts, stage = task.facts, task.stage
        planned = facts.sizes[stage]
        together = min(waiting, planned) if facts.inputs[stage] else planned
        return now + facts.times[stage][together - 1] > self._ends_by(task)

    def is_lost(self, task: Task, now: float) -> bool:
        """Whether a task would not be in time even if it ran alone, now."""
        return now + task.facts.times[task.stage][0] > self._ends_by(task)

    def _ends_by(self, task: Task) -> float:
        return task.flow.request.due - task.facts.kept_after[task.stage]

    def mates(self, task: Task, now: float) -> tuple[tuple[Task, ...], float]:
        """Those that run with a task that has left the queue, which leave it too, and what all take together."""
        facts, stage = task.facts, task.stage
        times, number = facts.times[stage], facts.groups[stage]
        most, groups = facts.largest[stage], self._groups
        late = self._sheds and self.is_late(task, now)
        if late:
            groups = self._late
        group = groups.get(number)
        if group is None or not group.entries or most == 1:
            return (), times[0]
        entries = group.entries
        most = min(most, 1 + len(entries))
        end_by = math.inf
        if late:
            most = min(most, facts.sizes[stage])
        else:
            end_by = min(self._ends_by(task), self._ends_by(entries[0][2]))
        count, least_each = 1, times[0]
        for more in range(2, most + 1):
            seconds = times[more - 1]
            if now + seconds > end_by:
                break
            if seconds / more < least_each:
                count, least_each = more, seconds / more
        found = tuple([entry[2] for entry in entries[: count - 1]])
        for mate in found:
            del self.waiting[mate.place]
        del entries[: count - 1]
        if not entries:
            self.ready.remove(group)
        return found, times[count - 1]

    def drop(self, task: Task) -> None:
        """Let a task leave before its turn."""
        del self.waiting[task.place]
        self._leave(task)

    def discard(self, task: Task) -> bool:
        """Let a task leave, if it waits here."""
        if self.waiting.pop(task.place, None) is None:
            return False
        self._leave(task)
        return True

    def alike(self, task: Task) -> Iterator[Task]:
        """The others of its group that can run, in order."""
        group = self._groups.get(task.facts.groups[task.stage])
        return iter(()) if group is None else (entry[2] for entry in group.entries)

    def row_of(self, task: Task) -> int:
        """The row of what waits in which a task counts: that of its first model."""
        return task.models[0] if task.models else self._rows - 1

    def waiting_for(self, row: int) -> int:
        """How many that are in time wait in a row."""
        return sum([len(group.entries) for group in self.ready if group.row == row and not group.late])

    def group_of(self, row: int) -> Group | None:
        """Of the groups of a row, the one with the task that has to start soonest; None if none is in time."""
        return min([each for each in self.ready if each.row == row and not each.late], key=_urgency, default=None)

    def row(self) -> FloatArray:
        """What waits and is in time, by model: how many, the least latest start, and what they take."""
        row = np.zeros((FIELDS, self._rows))
        for group in self.ready:
            if group.late:
                continue
            latest, _, task = group.entries[0]
            facts, stage, at = task.facts, task.stage, group.row
            times, size = facts.times[stage], facts.sizes[stage]
            full, rest = divmod(len(group.entries), size)
            row[1, at] = latest if row[0, at] == 0 else min(row[1, at], latest)
            row[0, at] += len(group.entries)
            row[2, at] += full * times[size - 1] + (times[rest - 1] if rest else 0.0)
        return row

    def _leave(self, task: Task) -> None:
        number, place = task.facts.groups[task.stage], task.place
        for groups in (self._groups, self._late):
            group = groups.get(number)
            if group is None:
                continue
            for position, entry in enumerate(group.entries):
                if entry[1] == place:
                    self._remove(group, position)
                    return

    def _remove(self, group: Group, position: int) -> None:
        del group.entries[position]
        if not group.entries:
            self.ready.remove(group)


def latest_start(task: Task) -> float:
    """When a task has to start; where its request is never due, that goes by its arrival and its rank."""
    due = task.flow.request.due
    return task.priority if due == math.inf else due - task.facts.kept[task.stage]


def _urgency(group: Group) -> tuple[bool, float, int]:
    latest, place, _ = group.entries[0]
    return (group.late, latest, place)
