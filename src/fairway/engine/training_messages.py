"""What the training engine is told and what it asks for.

Events carry the time at which they happened, in seconds on the driver's clock; times never go back. Jobs go by their
ids, leases by numbers that grow and are never used again, so that a late message about an old lease can be recognised.
A worker is named by its accelerator type and its number within it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from fairway.jobs import Job


@dataclass(frozen=True, slots=True)
class JobArrived:
    """A job was submitted; `deadline` is the time by which it should finish."""

    time: float
    job: Job
    deadline: float | None = None


@dataclass(frozen=True, slots=True)
class JobResumed:
    """A job is back that another engine, or this one, had before; it keeps its place and what it is owed.

    `arrived` is when it first came, `isolated_seconds` what its work so far would have taken on an equal share, and
    `shares` and `owed` (seconds) are as the rounds had them, by accelerator type.
    """

    time: float
    job: Job
    arrived: float
    deadline: float | None = None
    isolated_seconds: float = 0.0
    shares: Mapping[str, float] = field(default_factory=dict)
    owed: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LeaseResumed:
    """A lease that another engine granted is still held; told after its jobs, and before the first round."""

    time: float
    lease: int
    jobs: tuple[str, ...]
    accelerator: str
    workers: tuple[int, ...]
    spread: bool = False


@dataclass(frozen=True, slots=True)
class JobFinished:
    """A job has done all of its steps."""

    time: float
    job: str


@dataclass(frozen=True, slots=True)
class JobFailed:
    """An attempt of a job failed. With `retry` it waits for its next turn, otherwise it is gone."""

    time: float
    job: str
    retry: bool = False


@dataclass(frozen=True, slots=True)
class JobCancelled:
    """A job was taken back by its owner."""

    time: float
    job: str


@dataclass(frozen=True, slots=True)
class WorkersJoined:
    """More workers of one type; they are numbered on from those before and form nodes of the type's size."""

    time: float
    accelerator: str
    count: int


@dataclass(frozen=True, slots=True)
class WorkersLeft:
    """Workers are gone, and whatever ran on them has stopped.

    With `drain` they are still there, but nothing is to run on them any more: jobs save and stop, except those that
    are not preemptible, which keep their workers to their end.
    """

    time: float
    accelerator: str
    workers: tuple[int, ...]
    drain: bool = False


@dataclass(frozen=True, slots=True)
class WorkersReturned:
    """Workers that had left are back, under their old numbers."""

    time: float
    accelerator: str
    workers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RoundBegan:
    """The time that `BeginRound` asked for has come."""

    time: float


@dataclass(frozen=True, slots=True)
class RateMeasured:
    """A job, or two that share, were seen to run at so many steps per second on a type."""

    time: float
    jobs: tuple[str, ...]
    accelerator: str
    steps_per_second: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class StepsCounted:
    """A job reports how many steps it has left."""

    time: float
    job: str
    steps_left: float


@dataclass(frozen=True, slots=True)
class PricesChanged:
    """From now on workers cost so much: dollars per hour, for every accelerator type."""

    time: float
    prices: Mapping[str, float]


Event: TypeAlias = (
    JobArrived
    | JobResumed
    | LeaseResumed
    | JobFinished
    | JobFailed
    | JobCancelled
    | WorkersJoined
    | WorkersLeft
    | WorkersReturned
    | RoundBegan
    | RateMeasured
    | StepsCounted
    | PricesChanged
)


@dataclass(frozen=True, slots=True)
class Grant:
    """Let one job, or two that share, run on these workers.

    `restart` says that the job starts from its checkpoint; otherwise it runs on without a stop (its partner left).
    `spread` says that the workers sit on more than one node.
    """

    lease: int
    jobs: tuple[str, ...]
    accelerator: str
    workers: tuple[int, ...]
    until: float
    restart: bool = True
    spread: bool = False


@dataclass(frozen=True, slots=True)
class Extend:
    """All leases that are held run on until then, without a stop."""

    until: float


@dataclass(frozen=True, slots=True)
class Revoke:
    """The lease ends now.

    With `restart` its jobs are to save a checkpoint and stop, to be started again later. Without, there is nothing to
    save: they have ended, or their workers are gone, or a new lease on the same workers follows for one of them.
    """

    lease: int
    jobs: tuple[str, ...]
    restart: bool = True


@dataclass(frozen=True, slots=True)
class Refuse:
    """The job can never run on this cluster."""

    job: str
    reason: str


@dataclass(frozen=True, slots=True)
class BeginRound:
    """Tell the engine when this time has come, after everything else that happens at that time."""

    at: float


@dataclass(frozen=True, slots=True)
class Retire:
    """The engine has let go of a job; on an equal share of the cluster its work would have taken so many seconds."""

    job: str
    isolated_seconds: float


Command: TypeAlias = Grant | Extend | Revoke | Refuse | BeginRound | Retire
