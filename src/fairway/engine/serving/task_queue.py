"""The tasks that wait at a worker, in the order in which they came, and those among them that can run.

A task that takes the outputs of several others has its place from the first of them on, but holds no task up: the next
task to run is the first whose inputs are all there (Compass, dispatcher). With `patience`, one with much work before
its request's end lets others pass, as if it had come later by so many times that work; so none waits forever.
Memory management looks at all of them in the order in which they came, complete or not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from itertools import islice

from fairway.engine.serving.flow import Flow
from fairway.engine.serving.messages import BatchArrived
from fairway.engine.serving.stage_facts import StageFacts


class Task:
    """One task of a request at this worker: what it takes, which inputs have come, and its place in the queue.

    Inputs are bits of a whole number, by the stage that they come from. `turn` is when it got the accelerator, and
    `found` what it found in memory then (`messages`). `mates` are tasks that run together with this one; `seconds` is
    then the time of all of them. One that is `dropped` runs for nothing. `ended` is when it ended, once it has. `batch`
    is what an engine has planned, with its share of the worker. `sibling` is another task of its request here
    (`tasks_here`). `moves` is how often it has moved since all of its inputs were there. From its turn on, `waits_for`
    are models that have not come yet, and `run` is the number of its run.
    """

    __slots__ = (
        "arrived",
        "batch",
        "dropped",
        "ended",
        "facts",
        "flow",
        "found",
        "mates",
        "models",
        "moves",
        "place",
        "priority",
        "queued",
        "run",
        "seconds",
        "sibling",
        "stage",
        "turn",
        "waits_for",
    )
    found: int
    run: int
    sibling: Task | None
    turn: float
    waits_for: set[int]

    def __init__(self, flow: Flow, stage: int, facts: StageFacts, queued: float, patience: float = 0.0) -> None:
        self.flow = flow
        self.stage = stage
        self.facts = facts
        self.seconds = facts.seconds[stage]
        self.models = facts.models[stage]
        self.arrived = 0
        self.moves = 0
        self.queued = queued
        self.place = -1
        self.priority = queued + patience * facts.ranks[stage] if patience else 0.0
        self.dropped = False
        self.ended: float | None = None
        self.mates: tuple[Task, ...] = ()
        self.batch: BatchArrived | None = None

    @property
    def is_ready(self) -> bool:
        """Whether all inputs of a task that waits have come; one that takes only one waits for none."""
        return self.arrived < 0 or not self.flow.graph.is_join[self.stage]


class _Models:
    """The models of the tasks that wait at the time of looking."""

    __slots__ = ("_waiting",)

    def __init__(self, waiting: dict[int, Task]) -> None:
        self._waiting = waiting

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        return (task.models for task in self._waiting.values())


class TaskQueue:
    """The `waiting` tasks by their places, in that order; `ready` are those that can run, the next of them on top.

    `models` are those of each task in order, for memory that looks ahead.
    """

    __slots__ = ("_next_place", "models", "ready", "waiting")

    def __init__(self) -> None:
        self.waiting: dict[int, Task] = {}
        self.models = _Models(self.waiting)
        self.ready: list[tuple[float, int, Task]] = []
        self._next_place = 0

    def ready_tasks(self) -> Iterator[Task]:
        """The tasks that can run, in no order."""
        return (task for _, _, task in self.ready)

    def __len__(self) -> int:
        return len(self.waiting)

    def __iter__(self) -> Iterator[Task]:
        return iter(self.waiting.values())

    def join(self, task: Task, ready: bool) -> None:
        """Give a task the next place; `ready` says that all of its inputs are there."""
        place = task.place = self._next_place
        self._next_place += 1
        self.waiting[place] = task
        if ready:
            heappush(self.ready, (task.priority, place, task))

    def complete(self, task: Task) -> None:
        """All inputs of a task are there."""
        heappush(self.ready, (task.priority, task.place, task))

    def take(self, now: float = 0.0) -> Task | None:  # noqa: ARG002 - other orders ask what time it is
        """The next task that can run, which leaves the queue."""
        ready, waiting = self.ready, self.waiting
        while ready:
            task = waiting.pop(heappop(ready)[1], None)
            if task is not None:  # else it has left before its turn
                return task
        return None

    def first(self) -> Task | None:
        """The next task that can run, which stays in the queue."""
        ready, waiting = self.ready, self.waiting
        while ready:
            task = waiting.get(ready[0][1])
            if task is not None:
                return task
            heappop(ready)  # it has left before its turn
        return None

    def take_able(self, able: Callable[[Task], bool], most: int) -> Task | None:
        """The first task that can run and is able to do something, which leaves the queue; only so many are asked."""
        for task in islice(self.waiting.values(), most):
            if task.is_ready and able(task):
                self.drop(task)
                return task
        return None

    def drop(self, task: Task) -> None:
        """Let a task leave before its turn: it runs together with another one, or not at all."""
        del self.waiting[task.place]

    def discard(self, task: Task) -> bool:
        """Let a task leave, if it waits here."""
        return self.waiting.pop(task.place, None) is not None

    def alike(self, task: Task) -> Iterator[Task]:
        """The others that can run and are for the same stage of the same workflow, in order."""
        stage, graph = task.stage, task.flow.graph
        for other in self.waiting.values():
            if other.stage == stage and other.flow.graph is graph and other.is_ready:
                yield other
