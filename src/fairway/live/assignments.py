"""What a controller knows of its jobs and leases besides what the engine and the store know: how the runs stand.

A run is one job under one lease. Between the engine, which thinks that what it decides happens at once, and the
processes, which take their time, stands this table: leases that are taken back stay here until their runs have ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from fairway.engine.training_messages import Grant, JobResumed
from fairway.live.job_spec import JobSpec
from fairway.store.records import JobRecord

PLANNED, RUNNING, ENDED = "planned", "running", "ended"


@dataclass(slots=True)
class LiveJob:
    """A job that has not ended.

    `attempts` and `failures` are counted as in the store. `steps_done` and `steps_per_second` (of the wall clock) are
    by the last report. `waiting` is how the job stands while it is not in the engine, to be told when its time comes.
    """

    id: str
    number: int
    spec: JobSpec
    submitted_at: float
    attempts: int = 0
    failures: int = 0
    cancelled: bool = False
    steps_done: float | None = None
    steps_per_second: float | None = None
    reported: bool = True
    waiting: JobResumed | None = None
    measured: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, record: JobRecord, spec: JobSpec) -> LiveJob:
        """A job from the store."""
        return cls(
            record.id,
            record.number,
            spec,
            record.submitted_at,
            record.attempts,
            record.failures,
            record.cancel_requested_at is not None,
        )

    def steps_left(self, steps_done: float | None) -> float | None:
        """What is left after so many steps; None if nobody knows how many there are."""
        return None if self.spec.steps is None or steps_done is None else max(self.spec.steps - steps_done, 0.0)


@dataclass(slots=True)
class LiveLease:
    """A lease whose runs have not all ended. `held` says that the store knows it to hold its workers."""

    grant: Grant
    held: bool = False
    revoked: bool = False
    runs: dict[str, str] = field(default_factory=dict)
    follows: int | None = None
    """The lease under which its job began to run, if it goes on without a stop."""

    def __post_init__(self) -> None:
        for job in self.grant.jobs:
            self.runs.setdefault(job, PLANNED)

    @property
    def over(self) -> bool:
        """Whether nothing runs under it any more, or will."""
        return all(state == ENDED for state in self.runs.values())


class Leases:
    """The leases that are not over, by number."""

    def __init__(self) -> None:
        self._leases: dict[int, LiveLease] = {}

    def __iter__(self) -> Iterator[LiveLease]:
        return iter(list(self._leases.values()))

    def __len__(self) -> int:
        return len(self._leases)

    def add(self, lease: LiveLease) -> None:
        """Take in a lease."""
        self._leases[lease.grant.lease] = lease

    def get(self, number: int) -> LiveLease | None:
        """A lease, if it is not over."""
        return self._leases.get(number)

    def drop(self, number: int) -> None:
        """A lease is over."""
        self._leases.pop(number, None)

    def of_job(self, job: str) -> list[LiveLease]:
        """Those under which a job runs or will, the oldest first."""
        return [lease for lease in self._leases.values() if lease.runs.get(job, ENDED) != ENDED]
