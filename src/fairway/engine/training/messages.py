"""What happens to the training engine, and what it asks for.

The time of an event comes with the call of `handle`, in seconds on the driver's clock; times never go back. Jobs go by
their ids, leases by numbers that grow and are never used again, so that a late message about an old lease can be
recognised. A worker is named by its accelerator type and its number within it.

Every message names its `cause`, the thing that it is about, as in "job a", "lease 3", "v100 workers" or "rounds". What
else it is about are its `concerns`: the jobs and workers of a lease, as in "job a" and "worker v100/2". Stories are
found by either.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from fairway.jobs import Job


def _jobs(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"job {name}" for name in names)


def _workers(accelerator: str, numbers: Iterable[int]) -> tuple[str, ...]:
    return tuple(f"worker {accelerator}/{number}" for number in numbers)


class _OfNewJob:
    __slots__ = ()
    job: Job

    @property
    def cause(self) -> str:
        """The job."""
        return f"job {self.job.id}"


class _OfJob:
    __slots__ = ()
    job: str

    @property
    def cause(self) -> str:
        """The job."""
        return f"job {self.job}"


class _OfLease:
    __slots__ = ()
    lease: int

    @property
    def cause(self) -> str:
        """The lease."""
        return f"lease {self.lease}"


class _OfHeldLease(_OfLease):
    __slots__ = ()
    jobs: tuple[str, ...]
    accelerator: str
    workers: tuple[int, ...]

    @property
    def concerns(self) -> tuple[str, ...]:
        """Its jobs and workers."""
        return _jobs(self.jobs) + _workers(self.accelerator, self.workers)


class _OfWorkers:
    __slots__ = ()
    accelerator: str

    @property
    def cause(self) -> str:
        """The workers of the type."""
        return f"{self.accelerator} workers"


class _OfNumberedWorkers(_OfWorkers):
    __slots__ = ()
    workers: tuple[int, ...]

    @property
    def concerns(self) -> tuple[str, ...]:
        """Each of the workers."""
        return _workers(self.accelerator, self.workers)


class _OfRounds:
    __slots__ = ()

    @property
    def cause(self) -> str:
        """The rounds."""
        return "rounds"


@dataclass(frozen=True, slots=True)
class JobArrived(_OfNewJob):
    """A job was submitted; `deadline` is the time by which it should finish."""

    job: Job
    deadline: float | None = None


@dataclass(frozen=True, slots=True)
class JobResumed(_OfNewJob):
    """A job is back that another engine, or this one, had before; it keeps its place and what it is owed.

    `arrived` is when it first came, `isolated_seconds` what its work so far would have taken on an equal share, and
    `shares` and `owed` (seconds) are as the rounds had them, by accelerator type. `steps_done` is all it has done.
    """

    job: Job
    arrived: float
    deadline: float | None = None
    isolated_seconds: float = 0.0
    shares: Mapping[str, float] = field(default_factory=dict)
    owed: Mapping[str, float] = field(default_factory=dict)
    steps_done: float = 0.0


@dataclass(frozen=True, slots=True)
class LeaseResumed(_OfHeldLease):
    """A lease that another engine granted is still held; it comes after its jobs, and before the first round."""

    lease: int
    jobs: tuple[str, ...]
    accelerator: str
    workers: tuple[int, ...]
    spread: bool = False
    part: float = 1.0


@dataclass(frozen=True, slots=True)
class ArrivalsResumed:
    """What another engine has learned of the jobs that keep coming; it comes before all jobs.

    By class: job type, gang size, steps per second by accelerator type, and how many jobs, and how many seconds of work
    at their fastest, came in `span_seconds`, all fading with age. `seen` counts all jobs that were ever learned from.
    `lengths` are those of jobs by type and team, either None for any: how many were in which class of length.
    """

    types: tuple[str, ...]
    classes: tuple[tuple[str, int, tuple[float, ...], float, float], ...]
    span_seconds: float
    seen: int
    lengths: tuple[tuple[str | None, str | None, tuple[tuple[int, float], ...]], ...] = ()

    @property
    def cause(self) -> str:
        """The jobs that keep coming."""
        return "arrivals"


@dataclass(frozen=True, slots=True)
class JobFinished(_OfJob):
    """A job has done all of its steps."""

    job: str


@dataclass(frozen=True, slots=True)
class JobFailed(_OfJob):
    """An attempt of a job failed. With `retry` it waits for its next turn, otherwise it is gone."""

    job: str
    retry: bool = False


@dataclass(frozen=True, slots=True)
class JobCancelled(_OfJob):
    """A job was taken back by its owner."""

    job: str


@dataclass(frozen=True, slots=True)
class WorkersJoined(_OfWorkers):
    """More workers of one type; they are numbered on from those before and form nodes of the type's size."""

    accelerator: str
    count: int


@dataclass(frozen=True, slots=True)
class WorkersLeft(_OfNumberedWorkers):
    """Workers are gone, and whatever ran on them has stopped.

    With `drain` they are still there, but nothing is to run on them any more: jobs save and stop, except those that
    are not preemptible, which keep their workers to their end.
    """

    accelerator: str
    workers: tuple[int, ...]
    drain: bool = False


@dataclass(frozen=True, slots=True)
class WorkersReturned(_OfNumberedWorkers):
    """Workers that had left are back, under their old numbers."""

    accelerator: str
    workers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RoundBegan(_OfRounds):
    """The time that `BeginRound` asked for has come."""


@dataclass(frozen=True, slots=True)
class RateMeasured:
    """A job, or two that share, were seen to run at so many steps per second on a type.

    With `expected` they were not seen there, but what was seen elsewhere lets one guess so.
    """

    jobs: tuple[str, ...]
    accelerator: str
    steps_per_second: tuple[float, ...]
    expected: bool = False

    @property
    def cause(self) -> str:
        """The first of the jobs."""
        return f"job {self.jobs[0]}"

    @property
    def concerns(self) -> tuple[str, ...]:
        """Both jobs, where two share."""
        return _jobs(self.jobs)


@dataclass(frozen=True, slots=True)
class StepsCounted(_OfJob):
    """A job reports how many steps it has left."""

    job: str
    steps_left: float


@dataclass(frozen=True, slots=True)
class CheckpointKept(_OfJob):
    """A job was seen to keep checkpoints: started again, it goes on from the last one."""

    job: str


@dataclass(frozen=True, slots=True)
class PricesChanged:
    """From now on workers cost so much: dollars per hour, for every accelerator type."""

    prices: Mapping[str, float]

    @property
    def cause(self) -> str:
        """The prices."""
        return "prices"


class _OfReservation:
    __slots__ = ()
    reservation: str

    @property
    def cause(self) -> str:
        """The reservation."""
        return f"reservation {self.reservation}"


@dataclass(frozen=True, slots=True)
class Reserved(_OfReservation):
    """So many workers, by type, are a team's alone from one time to another."""

    reservation: str
    team: str
    workers: Mapping[str, int]
    begins: float
    ends: float


@dataclass(frozen=True, slots=True)
class ReservationCancelled(_OfReservation):
    """A reservation is not wanted any more."""

    reservation: str


Event: TypeAlias = (
    JobArrived
    | JobResumed
    | LeaseResumed
    | ArrivalsResumed
    | JobFinished
    | JobFailed
    | JobCancelled
    | WorkersJoined
    | WorkersLeft
    | WorkersReturned
    | RoundBegan
    | RateMeasured
    | StepsCounted
    | CheckpointKept
    | PricesChanged
    | Reserved
    | ReservationCancelled
)


@dataclass(frozen=True, slots=True)
class Grant(_OfHeldLease):
    """Let one job, or two that share, run on these workers.

    `restart` says that the job starts from its checkpoint; otherwise it runs on without a stop (its partner left).
    `spread` says that the workers sit on more than one node. The job has a `part` of each worker; others may have the
    rest.
    """

    lease: int
    jobs: tuple[str, ...]
    accelerator: str
    workers: tuple[int, ...]
    until: float
    restart: bool = True
    spread: bool = False
    part: float = 1.0


@dataclass(frozen=True, slots=True)
class Extend(_OfRounds):
    """All leases that are held run on until then, without a stop."""

    until: float


@dataclass(frozen=True, slots=True)
class Revoke(_OfLease):
    """The lease ends now.

    With `restart` its jobs are to save a checkpoint and stop, to be started again later. Without, there is nothing to
    save: they have ended, or their workers are gone, or a new lease on the same workers follows for one of them.
    """

    lease: int
    jobs: tuple[str, ...]
    restart: bool = True

    @property
    def concerns(self) -> tuple[str, ...]:
        """Its jobs."""
        return _jobs(self.jobs)


@dataclass(frozen=True, slots=True)
class Refuse(_OfJob):
    """The job can never run on this cluster."""

    job: str
    reason: str


@dataclass(frozen=True, slots=True)
class BeginRound(_OfRounds):
    """Hand the engine a `RoundBegan` when this time has come, after everything else that happens at that time."""

    at: float


@dataclass(frozen=True, slots=True)
class Undecided(_OfRounds):
    """The policy has not decided, so that the last decision stays in force and is tried anew in the next round.

    `newcomers` are the jobs about which nothing was decided before, in order of arrival: the reason may be one of them.
    """

    reason: str
    newcomers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Retire(_OfJob):
    """The engine has let go of a job; on an equal share of the cluster its work would have taken so many seconds."""

    job: str
    isolated_seconds: float


Command: TypeAlias = Grant | Extend | Revoke | Refuse | BeginRound | Undecided | Retire
