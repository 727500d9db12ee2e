"""What a worker's serving engine is told and what it asks for.

What workers tell each other is an event for the one that gets it, so `Send` carries one. The time comes with the event,
as the driver hands it over: a message does not know when it will arrive. Runs and copies go by numbers that are never
used again, so that late news of an old one can be recognised. Events and commands are tuples: they are made by the
million in a simulation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from fairway.engine.flow import Flow
from fairway.place.graph import TaskGraph

NO_MODEL = -1
MISS = 0
HIT = 1
PARTIAL = 2
"""What a task found in memory when its turn came: it needs no model; one had to be fetched; all were there; all were
there or on their way, and one had not arrived yet."""


UNPLACEABLE = "unplaceable"
HOPELESS = "hopeless"
LATE = "late"
FAILED = "failed"
"""Why a request is refused: no worker can run one of its tasks; it would not be done in time, as far as one can tell
when it arrives; its time was over before a task could run; a task raised, or a model could not be loaded."""


class RequestArrived(NamedTuple):
    """A client asks this worker for a workflow; `key` tells the request from all others.

    After `deadline` the client does not wait any more.
    """

    key: int
    graph: TaskGraph
    deadline: float = math.inf


class Cancelled(NamedTuple):
    """The client of a request that came to this worker has gone, or has changed its mind."""

    key: int


class TimePassed(NamedTuple):
    """It is the time at which the engine wanted to look at its load again (`ServingEngine.due`)."""


class Pin(NamedTuple):
    """Before the first request: load a model, and keep it."""

    model: int


class InputsArrived(NamedTuple):
    """Outputs of the tasks `sources` are there as inputs of a task; without sources, the input of the request is.

    `gathered` says that the task was placed after all of its inputs had come together, and stays here.
    """

    flow: Flow
    stage: int
    sources: tuple[int, ...] = ()
    gathered: bool = False


NONE_FAILED: Mapping[int, str] = MappingProxyType({})


class TaskDone(NamedTuple):
    """The task that `Run` asked for has ended, and those that ran with it; `run` is its number.

    `failed` are those of them that have no result, and why: 0 is the task itself, 1 the first that ran with it.
    """

    run: int
    failed: Mapping[int, str] = NONE_FAILED


class ModelLoaded(NamedTuple):
    """The copy that `Load` asked for has ended; `copy` is its number."""

    copy: int
    model: int


class ModelFailed(NamedTuple):
    """The copy that `Load` asked for has failed for good: the model is not here."""

    copy: int
    model: int
    reason: str


class PeerLoad(NamedTuple):
    """Another worker has pushed its load."""

    worker: int
    sequence: int
    queued: float
    busy_until: float


class PeerModels(NamedTuple):
    """Another worker has pushed which models its memory holds."""

    worker: int
    sequence: int
    models: tuple[int, ...]


class PeerLost(NamedTuple):
    """Another worker is gone, with all that it held."""

    worker: int


class PeerJoined(NamedTuple):
    """Another worker is there, or back: idle, with empty memory."""

    worker: int


class StageDone(NamedTuple):
    """To the ingress: a worker has finished a task of an attempt at a request, at this time."""

    key: int
    stage: int
    worker: int
    attempt: int
    finished: float


class StageMoved(NamedTuple):
    """To the ingress: a task was sent elsewhere than planned; `alone` says that not all of its inputs went with it."""

    key: int
    stage: int
    worker: int
    attempt: int
    alone: bool = False


class StageStuck(NamedTuple):
    """To the ingress: a task of the request has no result, and will have none; `code` is as in `Refuse`."""

    key: int
    reason: str
    code: str = UNPLACEABLE


class Replanned(NamedTuple):
    """From the ingress: what is still to run of a request goes by this plan."""

    flow: Flow


class SendAgain(NamedTuple):
    """From the ingress: send what `source` put out to these tasks, where the plan has them."""

    flow: Flow
    source: int
    stages: tuple[int, ...]


class Forget(NamedTuple):
    """From the ingress: the request is over."""

    key: int


Event: TypeAlias = (
    RequestArrived
    | Cancelled
    | TimePassed
    | Pin
    | InputsArrived
    | TaskDone
    | ModelLoaded
    | ModelFailed
    | PeerLoad
    | PeerModels
    | PeerLost
    | PeerJoined
    | StageDone
    | StageMoved
    | StageStuck
    | Replanned
    | SendAgain
    | Forget
)


class Mate(NamedTuple):
    """A task of another request, for the same stage, that runs together with the one of a `Run`."""

    flow: Flow
    queued: float
    turn: float
    found: int


class Run(NamedTuple):
    """Run a task, and its mates at once with it; their models are in memory.

    `seconds` is how long all of it is expected to take. It joined the queue at `queued`, had its turn at `turn`, and
    `found` says what it found in memory then.
    """

    run: int
    flow: Flow
    stage: int
    seconds: float
    queued: float
    turn: float
    found: int
    mates: tuple[Mate, ...] = ()


class Load(NamedTuple):
    """Copy a model into the accelerator's memory, after the copies asked for before."""

    copy: int
    model: int


class Evict(NamedTuple):
    """Give up a model in the accelerator's memory, or stop its copy if that has not ended."""

    model: int


class Send(NamedTuple):
    """Bring a message to another worker, with the data that it speaks of."""

    worker: int
    message: Event


class PublishLoad(NamedTuple):
    """Tell the others the load, at the next push; the last one counts."""

    sequence: int
    queued: float
    busy_until: float


class PublishModels(NamedTuple):
    """Tell the others which models the memory holds, at the next push; the last one counts."""

    sequence: int
    models: tuple[int, ...]


class Reply(NamedTuple):
    """Answer the client: the last task of its request ended at this time."""

    key: int
    finished: float


class Refuse(NamedTuple):
    """Tell the client that its request is not served, and why, as one of the codes above and in a sentence."""

    key: int
    reason: str
    code: str = UNPLACEABLE


Command: TypeAlias = Run | Load | Evict | Send | PublishLoad | PublishModels | Reply | Refuse
