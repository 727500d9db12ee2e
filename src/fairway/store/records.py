"""What the store tells about jobs, leases and workers: the rows of the tables, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fairway.store.states import ACTIVE, JobState


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job. Its fields are the columns of `jobs`, in their order.

    `number` is its place in the order of submission. `attempts` counts the times that its processes were started,
    `failures` those that failed. `steps` is what it was submitted with, `steps_left` what is left of them by the last
    report, `checkpoint_steps_left` what was left when its last checkpoint was saved; None where that was not reported.
    `reason_code` and `reason` say why it waits, or why it ended. Of an array, `array_id` is the id of the first job and
    `array_name` the name that they have in common.
    """

    number: int
    id: str
    name: str | None
    team: str | None
    weight: float
    spec: Mapping[str, Any]
    state: JobState
    submitted_by: str
    submitted_at: float
    changed_at: float
    started_at: float | None = None
    ended_at: float | None = None
    cancel_requested_at: float | None = None
    attempts: int = 0
    failures: int = 0
    exit_code: int | None = None
    reason_code: str | None = None
    reason: str | None = None
    steps: float | None = None
    steps_left: float | None = None
    checkpoint_steps_left: float | None = None
    checkpoint_at: float | None = None
    checkpoint: str | None = None
    idempotency_key: str | None = None
    content: str = ""
    array_id: str | None = None
    array_name: str | None = None

    @property
    def active(self) -> bool:
        """Whether a scheduler still has to do with it."""
        return self.state in ACTIVE


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a job waits, or ended: a code that stays the same over versions, and a sentence for people."""

    code: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """One start of a job's processes.

    `outcome` is `succeeded`, `failed`, `cancelled`, `preempted` or `lost` (its workers went away), None while it runs.
    `lease` is the last one that it ran under.
    """

    job: str
    attempt: int
    lease: int
    started_at: float
    ended_at: float | None = None
    outcome: str | None = None
    exit_code: int | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """A lease: planned, then held from `granted_at` on, then ended; `until` is how long it was promised for.

    From `revoked_at` on its jobs are asked to stop; it holds its workers until they have. It has a `part` of each of
    its workers, of which other leases may hold the rest.
    """

    number: int
    jobs: tuple[str, ...]
    accelerator: str
    workers: tuple[int, ...]
    until: float
    restart: bool
    spread: bool
    planned_at: float
    granted_at: float | None = None
    extended_at: float | None = None
    revoked_at: float | None = None
    ended_at: float | None = None
    reason: str | None = None
    part: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "jobs", tuple(self.jobs))
        object.__setattr__(self, "workers", tuple(self.workers))

    @property
    def held(self) -> bool:
        """Whether it holds its workers."""
        return self.granted_at is not None and self.ended_at is None


@dataclass(frozen=True, slots=True)
class MeasuredRate:
    """How fast a job was seen to run on an accelerator type, alone (`beside` is empty) or beside another job."""

    job: str
    accelerator: str
    beside: str
    steps_per_second: float
    measured_at: float


@dataclass(frozen=True, slots=True)
class Agent:
    """What runs workers on a machine."""

    name: str
    details: Mapping[str, Any]
    registered_at: float
    seen_at: float


@dataclass(frozen=True, slots=True)
class Worker:
    """One accelerator of an agent. Its number within its type is its own for ever."""

    accelerator: str
    number: int
    agent: str
    device: str
    emulated: bool
    registered_at: float
    drained_at: float | None = None
    lost_at: float | None = None
