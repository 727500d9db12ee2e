"""A request on its way through the workers: its plan travels with everything that is sent for it (Compass, ADFG)."""

from __future__ import annotations

from dataclasses import dataclass

from fairway.place.graph import TaskGraph
from fairway.place.plan import Request


@dataclass(slots=True)
class Flow:
    """A request and the worker of each of its tasks, by stage.

    `attempt` counts how often it was planned: 0 at first, one more after each loss of a worker that it needed.
    """

    request: Request
    graph: TaskGraph
    workers: list[int]
    attempt: int = 0
