"""What a serving engine asks for: runs and copies on its worker, messages to other engines, answers to clients."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from fairway.engine.serving.flow import Flow
from fairway.engine.serving.messages.events import UNPLACEABLE, BatchArrived, Event

NO_MODEL = -1
MISS = 0
HIT = 1
PARTIAL = 2
"""What a task found in memory when its turn came: it needs no model; one had to be fetched; all were there; all were
there or on their way, and one had not arrived yet."""


class Mate(NamedTuple):
    """A task of another request, for the same stage, that runs together with the one of a `Run`."""

    flow: Flow
    queued: float
    turn: float
    found: int


class Run(NamedTuple):
    """Run a task, and its mates at once with it; their models are in memory.

    `seconds` is how long all of it is expected to take. It joined the queue at `queued`, had its turn at `turn`, and
    `found` says what it found in memory then. `batch` is what the engine that plans asked for, if it did.
    """

    run: int
    flow: Flow
    stage: int
    seconds: float
    queued: float
    turn: float
    found: int
    mates: tuple[Mate, ...] = ()
    batch: BatchArrived | None = None


class Stop(NamedTuple):
    """Run what `Run` asked for no further; what was done of it is lost."""

    run: int


Why: TypeAlias = Literal["task", "job", "ahead"]
"""Why a model is copied: a task has its turn, a job waits for it at the engine that plans, or ahead of both."""


class Load(NamedTuple):
    """Copy a model into the worker's memory, after the copies asked for before."""

    copy: int
    model: int
    why: Why = "task"


class Evict(NamedTuple):
    """Give up a copy of a model in the worker's memory, or stop it if it has not ended."""

    model: int


class Send(NamedTuple):
    """Bring a message to another engine, with the data that it speaks of."""

    worker: int
    message: Event


class PublishLoad(NamedTuple):
    """Push the load to the others, at the next push; the last one counts.

    `line` is what waits, by model, where planners ask for it (`place.lines`).
    """

    sequence: int
    queued: float
    busy_until: float
    line: tuple[float, ...] = ()


class PublishModels(NamedTuple):
    """Push which models the memory holds to the others, at the next push; the last one counts."""

    sequence: int
    models: tuple[int, ...]


class Reply(NamedTuple):
    """Answer the client: the last task of its request ended at this time."""

    key: int
    finished: float


class Refuse(NamedTuple):
    """Let the client know that its request is not served, and why, as one of the codes above and in a sentence.

    Where the load is the reason, `retry_seconds` is how long what waits now will take: a request that comes then is not
    held up by it.
    """

    key: int
    reason: str
    code: str = UNPLACEABLE
    retry_seconds: float | None = None


class Restarted(NamedTuple):
    """A request begins again with its first stages: what was made for it so far, or is being made, is of no use."""

    key: int


Command: TypeAlias = Run | Stop | Load | Evict | Send | PublishLoad | PublishModels | Reply | Refuse | Restarted
