"""What is asked and what is answered: a request for a workflow goes in, a worker for each of its tasks comes out."""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

from fairway.errors import FairwayError
from fairway.place.arrays import FloatArray, IntArray
from fairway.place.fleet import OUTSIDE
from fairway.place.graph import TaskGraph


class NoPlaceError(FairwayError):
    """No worker that is present can run a task of the request; the request has to be refused."""


class Draws(Protocol):
    """Where chance comes from; a `numpy.random.Generator` is one."""

    def random(self) -> float:
        """A number from [0, 1)."""
        ...


class Request(NamedTuple):
    """One request for a workflow.

    `key` tells it from all others. `ingress` is the worker that holds its input, `OUTSIDE` if none does. With `kept`,
    only the rest is planned, as after the loss of a worker: what has a worker there keeps it, and what has a finish too
    is done. After `deadline` its client waits no more. Of an `untimed` request, no engine asks when its tasks will
    finish. By its workflow's SLO it should be answered when it is `due`.
    """

    key: int
    graph: TaskGraph
    ingress: int = OUTSIDE
    kept: Plan | None = None
    deadline: float = math.inf
    untimed: bool = False
    due: float = math.inf


class Plan(NamedTuple):
    """The worker of each task, by the number of its stage, and when it is expected to finish.

    In a plan to keep, -1 is a task without a worker, NaN one that is not done. That of an untimed request may have no
    times.
    """

    graph: TaskGraph
    workers: IntArray
    finish: FloatArray

    @property
    def order(self) -> list[str]:
        """The names of the stages in the order in which they were planned."""
        return [self.graph.workflow.stages[number].name for number in self.graph.order.tolist()]

    @property
    def assignment(self) -> dict[str, str]:
        """The name of the worker by the name of the stage, in the order in which they were planned."""
        stages, workers = self.graph.workflow.stages, self.graph.fleet.workers
        return {stages[number].name: workers[int(self.workers[number])].name for number in self.graph.order.tolist()}

    @property
    def finish_seconds(self) -> dict[str, float]:
        """The expected finish by the name of the stage, in the order in which they were planned."""
        stages = self.graph.workflow.stages
        return {stages[number].name: float(self.finish[number]) for number in self.graph.order.tolist()}
