"""What a worker has of each request that comes by: tasks that wait or run here, and what has ended here.

An output is kept until the reply, since it may be needed again when another worker is lost; or, where workers do not
hear of replies, until others have taken its place. Of the requests that are over, the last few are remembered: a
message about one of them may still be on its way. So is the newest plan of a request that was planned again, since
inputs that were sent by an older one may still come.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from fairway.engine.serving.flow import Flow
from fairway.engine.serving.task_queue import Task

KEPT_REQUESTS = 64
"""Of so many requests a worker keeps outputs, or twice as many, where it does not hear which of them are over."""

_MOST_OVER = 4096


class TasksHere:
    """`tasks` has one task of each request by its key, and through it all others; ended ones stand for their outputs.

    `over` are requests that are over, `plans` the newest plans of those that were planned again. `has_let_go` says that
    outputs went whose requests may still need them. As long as it is not `is_wary`, no worker was lost and no request
    has ended before its tasks, so that whatever comes is wanted.
    """

    __slots__ = ("_kept", "_most", "has_let_go", "is_wary", "over", "plans", "tasks")

    def __init__(self, kept: float = math.inf) -> None:
        self.over: dict[int, None] = {}
        self.plans: dict[int, Flow] = {}
        self.tasks: dict[int, Task] = {}
        self.has_let_go = False
        self.is_wary = False
        self._kept = kept
        self._most = 2 * kept

    def __bool__(self) -> bool:
        return bool(self.tasks or self.plans)

    def get(self, key: int, stage: int) -> Task | None:
        """The task of a stage, if it waits or runs here, or has ended here and its output is here."""
        task = self.tasks.get(key)
        while task is not None and task.stage != stage:
            task = task.sibling
        return task

    def of(self, key: int) -> list[Task]:
        """All tasks of a request, those that have ended too."""
        return list(_siblings(self.tasks.get(key)))

    def add(self, key: int, task: Task, sibling: Task | None) -> None:
        """A task of a request has come; `sibling` is the one that `tasks` has of it."""
        tasks = self.tasks
        task.sibling = sibling
        tasks[key] = task
        if len(tasks) > self._most:
            self._let_go_of_ended()
            self._most = 2 * max(self._kept, len(tasks))  # so that it is rare, however many tasks wait here

    def remove(self, task: Task) -> None:
        """A task is here no more, if it was."""
        key = task.flow.request.key
        left = [other for other in self.of(key) if other is not task]
        self.tasks.pop(key, None)
        for other in reversed(left):
            self.add(key, other, self.tasks.get(key))

    def follow(self, flow: Flow) -> None:
        """Take note of the newest plan of a request."""
        key = flow.request.key
        known = self.plans.get(key)
        if key not in self.over and (known is None or flow.attempt > known.attempt):
            self.plans[key] = flow
            self.is_wary = True

    def newest(self, flow: Flow) -> Flow:
        """A plan, or the one that has taken its place since."""
        known = self.plans.get(flow.request.key)
        return flow if known is None or known.attempt <= flow.attempt else known

    def close(self, key: int) -> list[Task]:
        """A request is over: nothing of it stays; the tasks of it that were here."""
        self.is_wary = True
        self.over[key] = None
        if len(self.over) > _MOST_OVER:
            del self.over[next(iter(self.over))]
        return self._let_go(key)

    def let_go(self, concerned: Callable[[Flow], bool]) -> list[Task]:
        """Let go of all that is here of some requests; their tasks."""
        flows = {key: task.flow for key, task in self.tasks.items()}
        keys = [key for key, flow in {**self.plans, **flows}.items() if concerned(flow)]
        return [task for key in keys for task in self._let_go(key)]

    def _let_go_of_ended(self) -> None:
        """Let go of the requests that came first, if all of their tasks here have ended."""
        excess = len(self.tasks) - self._kept
        ended = [key for key, first in self.tasks.items() if all(task.ended is not None for task in _siblings(first))]
        for key in ended[: int(excess)]:
            del self.tasks[key]
            self.has_let_go = True

    def _let_go(self, key: int) -> list[Task]:
        self.plans.pop(key, None)
        return list(_siblings(self.tasks.pop(key, None)))


def _siblings(task: Task | None) -> Iterator[Task]:
    """A task, and those that are found through it."""
    while task is not None:
        yield task
        task = task.sibling
