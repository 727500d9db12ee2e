"""What a worker has of each request that comes by: tasks that wait or run here, and what has ended here.

An output is kept until the reply, since it may be needed again when another worker is lost; or, where workers are not
told of replies, until others have taken its place. Of the requests that are over, the last few are remembered: a
message about one of them may still be on its way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from fairway.engine.serving.flow import Flow
from fairway.engine.serving.task_queue import Task

KEPT_OUTPUTS = 64
"""Of so many requests a worker keeps outputs, where it does not hear which of them are over."""

_MOST_OVER = 4096
_NOTHING: dict[int, Flow] = {}


class TasksHere:
    """Tasks and outputs, by the key of their request and the number of their stage."""

    __slots__ = ("_ended", "_most_ended", "_over", "_tasks")

    def __init__(self, most_ended: float = math.inf) -> None:
        self._most_ended = most_ended
        self._tasks: dict[int, dict[int, Task]] = {}
        self._ended: dict[int, dict[int, Flow]] = {}
        self._over: dict[int, None] = {}

    def __bool__(self) -> bool:
        return bool(self._tasks or self._ended)

    def get(self, key: int, stage: int) -> Task | None:
        """The task of a stage, if it waits or runs here."""
        tasks = self._tasks.get(key)
        return None if tasks is None else tasks.get(stage)

    def of(self, key: int) -> Iterable[Task]:
        """All tasks of a request that wait or run here."""
        return self._tasks.get(key, {}).values()

    def add(self, task: Task) -> None:
        """A task has come."""
        key = task.flow.request.key
        tasks = self._tasks.get(key)
        if tasks is None:
            self._tasks[key] = {task.stage: task}
        else:
            tasks[task.stage] = task

    def remove(self, task: Task) -> None:
        """A task is here no more, if it was."""
        key = task.flow.request.key
        tasks = self._tasks.get(key)
        if tasks is not None and tasks.pop(task.stage, None) is not None and not tasks:
            del self._tasks[key]

    def end(self, task: Task) -> None:
        """A task has ended here: its output stays, unless nobody waits for it."""
        self.remove(task)
        if not task.dropped:
            ended = self._ended
            ended.setdefault(task.flow.request.key, {})[task.stage] = task.flow
            if len(ended) > self._most_ended:
                del ended[next(iter(ended))]

    def ended(self, key: int, stage: int) -> Flow | None:
        """The plan by which a task has ended here; its output is here, too."""
        return self._ended.get(key, _NOTHING).get(stage)

    def is_over(self, key: int) -> bool:
        """Whether a request is known to be over."""
        return key in self._over

    def close(self, key: int) -> Iterable[Task]:
        """A request is over: nothing of it stays. Its tasks, which are nobody's now."""
        self._over[key] = None
        if len(self._over) > _MOST_OVER:
            del self._over[next(iter(self._over))]
        return self._let_go(key)

    def let_go(self, concerned: Callable[[Flow], bool]) -> list[Task]:
        """Let go of all that is here of some requests; their tasks."""
        keys = [key for key, outputs in self._ended.items() if any(map(concerned, outputs.values()))]
        keys += [key for key, tasks in self._tasks.items() if any(concerned(task.flow) for task in tasks.values())]
        return [task for key in dict.fromkeys(keys) for task in self._let_go(key)]

    def _let_go(self, key: int) -> Iterable[Task]:
        self._ended.pop(key, None)
        return self._tasks.pop(key, {}).values()
