"""What a controller knows of its jobs and leases besides what the engine and the store know: how the runs stand.

A run is one job under one lease. Between the engine, which thinks that what it decides happens at once, and the
processes, which take their time, stands this table: leases that are taken back stay here until their runs have ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from fairway.engine.training.messages import Grant, JobResumed
from fairway.jobs.description import JobDescription
from fairway.live.training.engine_job import says_it_resumes
from fairway.store.records import JobRecord


@dataclass(slots=True)
class LiveJob:
    """A job that has not ended.

    `attempts` and `failures` are counted as in the store. `steps_done` and `steps_per_second` (of the wall clock) are
    by the last report, which `reported` says is in the store; `steps_saved` are those of the last checkpoint. `waiting`
    is how the job stands while it is not in the engine, to go back there when its time comes. `measured` are the rates
    that were seen of it alone, by accelerator type, in steps per second of the engine's clock. A job that `resumes`
    keeps checkpoints, by its description or by what it reported; any other begins from zero when it is started again.
    `array_id` is the first job of its array.
    """

    id: str
    spec: JobDescription
    team: str | None = None
    attempts: int = 0
    failures: int = 0
    cancelled: bool = False
    steps_done: float | None = None
    steps_saved: float = 0.0
    steps_per_second: float | None = None
    reported: bool = True
    waiting: JobResumed | None = None
    measured: dict[str, float] = field(default_factory=dict)
    resumes: bool = False
    array_id: str | None = None

    @classmethod
    def of(cls, record: JobRecord, spec: JobDescription) -> LiveJob:
        """A job from the store."""
        job = cls(record.id, spec, record.team, record.attempts, record.failures)
        job.array_id = record.array_id
        job.resumes = says_it_resumes(spec) or record.checkpoint_at is not None
        if spec.steps is not None and record.checkpoint_steps_left is not None:
            job.steps_saved = max(spec.steps - record.checkpoint_steps_left, 0.0)
        return job

    def steps_left(self, steps_done: float | None) -> float | None:
        """What is left after so many steps; None if the job does not say how many there are."""
        return None if self.spec.steps is None or steps_done is None else max(self.spec.steps - steps_done, 0.0)


@dataclass(slots=True)
class LiveRun:
    """One job under one lease: `planned` until its processes run.

    `known_as` are the numbers of leases under which the backend may know it, the newest last: more than one where it
    was handed over, of which the backend hears later.
    """

    known_as: tuple[int, ...]
    state: Literal["planned", "running", "ended"] = "planned"

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.state == "ended"


@dataclass(slots=True)
class LiveLease:
    """A lease whose runs have not all ended. `revoked` says that the engine has taken it back.

    `follows` is the lease that still holds its workers in the store, from which its job was handed over. `believed` are
    the rates of its jobs that the engine learnt of last, `recorded` those that the store knows.
    """

    grant: Grant
    revoked: bool = False
    runs: dict[str, LiveRun] = field(default_factory=dict)
    follows: int | None = None
    believed: tuple[float, ...] = ()
    recorded: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for job in self.grant.jobs:
            self.runs.setdefault(job, LiveRun((self.grant.lease,)))

    @property
    def number(self) -> int:
        """The number of the lease."""
        return self.grant.lease

    @property
    def over(self) -> bool:
        """Whether nothing runs under it any more, or will."""
        return all(run.over for run in self.runs.values())


class Leases:
    """The leases that are not over."""

    def __init__(self) -> None:
        self._leases: dict[int, LiveLease] = {}
        self._of_job: dict[str, list[LiveLease]] = {}

    def __iter__(self) -> Iterator[LiveLease]:
        return iter(list(self._leases.values()))

    def __len__(self) -> int:
        return len(self._leases)

    def add(self, lease: LiveLease) -> None:
        """Take in a lease, newer than all before it."""
        self._leases[lease.number] = lease
        for job in lease.grant.jobs:
            self._of_job.setdefault(job, []).append(lease)

    def get(self, number: int) -> LiveLease | None:
        """A lease, if it is not over."""
        return self._leases.get(number)

    def drop(self, lease: LiveLease) -> None:
        """A lease is over."""
        if self._leases.pop(lease.number, None) is not None:
            for job in lease.grant.jobs:
                self._of_job[job].remove(lease)
                if not self._of_job[job]:
                    del self._of_job[job]

    def of_job(self, job: str) -> list[LiveLease]:
        """Those under which a job runs or will, the oldest first."""
        return [lease for lease in self._of_job.get(job, ()) if not lease.runs[job].over]

    def holding(self, number: int, job: str) -> LiveLease | None:
        """The lease under which a run goes on that the backend knows by this number, if it has not ended."""
        return next((lease for lease in self.of_job(job) if number in lease.runs[job].known_as), None)

    def following(self, number: int) -> LiveLease | None:
        """The lease that takes over the workers of another when that is over."""
        old = self._leases.get(number)
        jobs = old.grant.jobs if old is not None else ()
        return next((lease for job in jobs for lease in self._of_job.get(job, ()) if lease.follows == number), None)
