"""The tasks that wait at a worker: first come, first served, but a task without all of its inputs holds nobody up.

A task that takes the outputs of several others has its place from the first of them on; the next task to run is the
first whose inputs are all there (Compass, dispatcher). Memory management looks at all of them in order, complete or
not.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

from fairway.engine.flow import Flow
from fairway.engine.stage_facts import StageFacts


class Task:
    """One task of a request at this worker: what it takes, which inputs have come, and its place in the queue.

    Inputs are bits of a whole number, by the stage that they come from. `turn` is when it got the accelerator, and
    `found` what it found in memory then (`serving_messages`).
    """

    __slots__ = (
        "arrived",
        "dropped",
        "facts",
        "flow",
        "found",
        "models",
        "place",
        "queued",
        "seconds",
        "stage",
        "turn",
    )
    found: int
    turn: float

    def __init__(self, flow: Flow, stage: int, facts: StageFacts, queued: float) -> None:
        self.flow = flow
        self.stage = stage
        self.facts = facts
        self.seconds = facts.seconds[stage]
        self.models = facts.models[stage]
        self.arrived = 0
        self.queued = queued
        self.place = -1
        self.dropped = False


class TaskQueue:
    """The waiting tasks in the order of their places; `ready` are those that can run, the first of them on top."""

    __slots__ = ("_next_place", "_waiting", "ready")

    def __init__(self) -> None:
        self._waiting: dict[int, Task] = {}
        self.ready: list[tuple[int, Task]] = []
        self._next_place = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Task]:
        return iter(self._waiting.values())

    def join(self, task: Task, ready: bool) -> None:
        """Give a task the next place; `ready` says that all of its inputs are there."""
        place = task.place = self._next_place
        self._next_place += 1
        self._waiting[place] = task
        if ready:
            heappush(self.ready, (place, task))

    def complete(self, task: Task) -> None:
        """All inputs of a task are there."""
        heappush(self.ready, (task.place, task))

    def take(self) -> Task | None:
        """The first task that can run, which leaves the queue."""
        ready = self.ready
        while ready:
            place, task = heappop(ready)
            if not task.dropped:
                del self._waiting[place]
                return task
        return None

    def drop(self, task: Task) -> None:
        """Let a task leave without running."""
        task.dropped = True
        del self._waiting[task.place]

    def models(self) -> Iterator[tuple[int, ...]]:
        """The models of each task in order, for memory that looks ahead."""
        return (task.models for task in self._waiting.values())
