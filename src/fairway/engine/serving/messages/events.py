"""What a serving engine takes in: what clients, drivers and other engines tell it.

What engines say to each other is an event for the one that gets it, so `Send` carries one. The time comes with the
events, as the driver hands them over: a message does not know when it will arrive. Runs, copies and batches go by
numbers that are never used again, so that late news of an old one can be recognised.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from fairway.configure.configuration import Configuration
from fairway.configure.queues import Kind
from fairway.engine.serving.flow import Flow
from fairway.engine.serving.messages.news import (
    PeerCopies,
    PeerJoined,
    PeerLoad,
    PeerLost,
    PeerModels,
    RowAsked,
    RowTold,
    TasksWanted,
)
from fairway.place.graph import TaskGraph

UNPLACEABLE = "unplaceable"
IMPOSSIBLE = "impossible"
HOPELESS = "hopeless"
SHED = "shed"
LATE = "late"
FAILED = "failed"
"""Why a request is refused: no worker can run one of its tasks; it would not be done in time even if it were alone; nor
with what waits, as far as one can tell when it arrives; nor any more, when a task has its turn, since too much else had
come; its time was over before a task could run; a task raised, or a model could not be loaded."""


class RequestArrived(NamedTuple):
    """A client asks this engine for a workflow; `key` tells the request from all others.

    After `deadline` the client does not wait any more; the answer is `due` earlier, by the workflow's SLO.
    """

    key: int
    graph: TaskGraph
    deadline: float = math.inf
    due: float = math.inf

    @property
    def cause(self) -> str:
        """The request."""
        return f"request {self.key}"


class Cancelled(NamedTuple):
    """The client of a request that came to this engine has gone, or has changed its mind."""

    key: int

    @property
    def cause(self) -> str:
        """The request."""
        return f"request {self.key}"


class TimePassed(NamedTuple):
    """It is the time at which the engine wanted to look again (`ServingEngine.due`)."""

    @property
    def cause(self) -> str:
        """The clock."""
        return "time"


class TakesUntil(NamedTuple):
    """What has just begun to run here may take until then, whatever was expected of its stage."""

    until: float

    @property
    def cause(self) -> str:
        """The clock."""
        return "time"


class Pin(NamedTuple):
    """Before the first request: load a model, and keep it."""

    model: int

    @property
    def cause(self) -> str:
        """The model."""
        return f"model {self.model}"


class InputsArrived(NamedTuple):
    """Outputs of the tasks `sources` are there as inputs of a task; without sources, the input of the request is.

    `gathered` says that the task was placed after all of its inputs had come together: how often it has moved since
    they were first on their way.
    """

    flow: Flow
    stage: int
    sources: tuple[int, ...] = ()
    gathered: int = 0

    @property
    def cause(self) -> str:
        """The request."""
        return f"request {self.flow.request.key}"


class BatchArrived(NamedTuple):
    """From the engine that plans: run a stage for these requests at once, on this share of the worker.

    By the profile it takes so many seconds; `kind` is why floor 2 chose the configuration.
    """

    number: int
    planner: int
    flows: tuple[Flow, ...]
    stage: int
    configuration: Configuration
    seconds: float
    kind: Kind = "planned"

    @property
    def cause(self) -> str:
        """The batch."""
        return f"batch {self.number}"


class BatchStopped(NamedTuple):
    """From the engine that plans: another batch has the place of this one, which is run no further."""

    number: int

    @property
    def cause(self) -> str:
        """The batch."""
        return f"batch {self.number}"


class BatchDone(NamedTuple):
    """To the engine that plans: a batch has ended, after its stage ran for so many seconds.

    `failed` has, by position, the requests for which there is no result, and why.
    """

    number: int
    worker: int
    seconds: float
    failed: Mapping[int, str]

    @property
    def cause(self) -> str:
        """The batch."""
        return f"batch {self.number}"


NONE_FAILED: Mapping[int, str] = MappingProxyType({})


class TaskDone(NamedTuple):
    """The task that `Run` asked for has ended, and those that ran with it; `run` is its number.

    `failed` are those of them that have no result, and why: 0 is the task itself, 1 the first that ran with it.
    `seconds` is how long the stage itself ran, without what it waited for before; NaN if that is not known.
    """

    run: int
    failed: Mapping[int, str] = NONE_FAILED
    seconds: float = math.nan

    @property
    def cause(self) -> str:
        """The run."""
        return f"run {self.run}"


class ModelLoaded(NamedTuple):
    """The copy that `Load` asked for has ended; `copy` is its number."""

    copy: int
    model: int

    @property
    def cause(self) -> str:
        """The model."""
        return f"model {self.model}"


class ModelFailed(NamedTuple):
    """The copy that `Load` asked for has failed for good: the model is not here."""

    copy: int
    model: int
    reason: str

    @property
    def cause(self) -> str:
        """The model."""
        return f"model {self.model}"


class Warm(NamedTuple):
    """From the engine that plans: have one more copy of a model, `ahead` of any job that needs it or for one.

    `number` rises with each of these that the worker gets for the model.
    """

    model: int
    ahead: bool
    number: int

    @property
    def cause(self) -> str:
        """The model."""
        return f"model {self.model}"


class StageDone(NamedTuple):
    """To the ingress: a worker has finished a task of an attempt at a request, at this time.

    It hears of those whose outputs the reply needs when they end, and of all others when it asks.
    """

    key: int
    stage: int
    worker: int
    attempt: int
    finished: float

    @property
    def cause(self) -> str:
        """The request."""
        return f"request {self.key}"


class ProgressAsked(NamedTuple):
    """From the ingress, after a loss: which tasks of the request have ended here?"""

    key: int
    ingress: int

    @property
    def cause(self) -> str:
        """The request."""
        return f"request {self.key}"


class ProgressTold(NamedTuple):
    """To the ingress: a `StageDone` has been sent for every task of the request that has ended at this worker."""

    key: int
    worker: int

    @property
    def cause(self) -> str:
        """The request."""
        return f"request {self.key}"


class StageMoved(NamedTuple):
    """To the ingress: a task was sent elsewhere than planned; `alone` says that not all of its inputs went with it.

    `moves` is how often the task has moved with all of its inputs, this time included: of two messages the one with
    more is the later one, whichever comes first.
    """

    key: int
    stage: int
    worker: int
    attempt: int
    alone: bool = False
    moves: int = 0

    @property
    def cause(self) -> str:
        """The request."""
        return f"request {self.key}"


class StageStuck(NamedTuple):
    """To the ingress: a task of the request has no result, and will have none; all but the key is as in `Refuse`."""

    key: int
    reason: str
    code: str = UNPLACEABLE
    retry_seconds: float | None = None

    @property
    def cause(self) -> str:
        """The request."""
        return f"request {self.key}"


class OutputGone(NamedTuple):
    """To the ingress: a worker has not, or not any more, what a task put out, and no such task that is still to end."""

    key: int
    stage: int
    worker: int
    attempt: int

    @property
    def cause(self) -> str:
        """The request."""
        return f"request {self.key}"


class Replanned(NamedTuple):
    """From the ingress: what is still to run of a request goes by this plan."""

    flow: Flow

    @property
    def cause(self) -> str:
        """The request."""
        return f"request {self.flow.request.key}"


class SendAgain(NamedTuple):
    """From the ingress: send what `source` put out to these tasks, where the plan has them."""

    flow: Flow
    source: int
    stages: tuple[int, ...]

    @property
    def cause(self) -> str:
        """The request."""
        return f"request {self.flow.request.key}"


class Forget(NamedTuple):
    """From the ingress: the request is over."""

    key: int

    @property
    def cause(self) -> str:
        """The request."""
        return f"request {self.key}"


Event: TypeAlias = (
    RequestArrived
    | Cancelled
    | TakesUntil
    | TimePassed
    | Pin
    | InputsArrived
    | BatchArrived
    | BatchDone
    | BatchStopped
    | TaskDone
    | ModelLoaded
    | ModelFailed
    | Warm
    | PeerCopies
    | PeerLoad
    | PeerModels
    | RowAsked
    | RowTold
    | TasksWanted
    | PeerLost
    | PeerJoined
    | StageDone
    | ProgressAsked
    | ProgressTold
    | StageMoved
    | StageStuck
    | OutputGone
    | Replanned
    | SendAgain
    | Forget
)
