"""What those ask who watch: which jobs changed lately, how jobs stand, where they run and how fast.

`changed_at` alone does not say what is new. A change is durable some time after the moment that it carries, and others
with a later moment may be durable before; two changes of a job may carry the same moment. Who watches therefore looks
back a few seconds each time, and compares with what it has seen: `Change` is equal where nothing happened.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from sqlalchemy import Connection, Select, Text, bindparam, select, type_coerce

from fairway.store.database.in_one_go import in_one_go, rows_of
from fairway.store.database.parts import in_parts
from fairway.store.database.schema import jobs, lease_jobs, leases, rates
from fairway.store.records import JobRecord
from fairway.store.states import JobState

_CHANGES = (
    select(jobs.c.number, jobs.c.changed_at, jobs.c.state, jobs.c.attempts, jobs.c.failures, jobs.c.cancel_requested_at)
    .where(jobs.c.changed_at >= bindparam("since"))
    .order_by(jobs.c.changed_at, jobs.c.number)
    .limit(bindparam("most"))
)
_BY_NUMBER = select(jobs).where(jobs.c.number.in_(bindparam("values")))
_BY_ID = select(jobs).where(jobs.c.id.in_(bindparam("values")))
_HELD = (
    select(
        lease_jobs.c.job,
        leases.c.number,
        leases.c.accelerator,
        type_coerce(leases.c.workers, Text).label("workers"),
        type_coerce(leases.c.jobs, Text).label("jobs"),
    )
    .join(leases, leases.c.number == lease_jobs.c.lease)
    .where(lease_jobs.c.held, lease_jobs.c.job.in_(bindparam("values")))
)
_RATES = select(rates.c.job, rates.c.accelerator, rates.c.beside, rates.c.steps_per_second).where(
    rates.c.job.in_(bindparam("values"))
)

_MOST = 100_000


@dataclass(frozen=True, slots=True)
class Change:
    """That a job changed: what tells one of its changes from another."""

    number: int
    changed_at: float
    state: JobState
    attempts: int
    failures: int
    cancel_requested_at: float | None


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """Where a job runs: under which lease, on which workers, and how fast it was seen to run there, if it was."""

    lease: int
    accelerator: str
    workers: tuple[int, ...]
    steps_per_second: float | None


def changes_since(connection: Connection, since: float, *, limit: int = _MOST) -> list[Change]:
    """The last change of every job that changed at this moment or later, the oldest first."""
    rows = connection.execute(_CHANGES, {"since": since, "most": limit})
    return [Change(*row) for row in rows]


def change_of(job: JobRecord) -> Change:
    """The last change of a job."""
    return Change(job.number, job.changed_at, job.state, job.attempts, job.failures, job.cancel_requested_at)


def jobs_numbered(connection: Connection, numbers: Sequence[int]) -> list[JobRecord]:
    """The jobs with these numbers, those that there are, in the order of submission."""
    rows = [row for some in in_parts(numbers) for row in connection.execute(_BY_NUMBER, {"values": some})]
    return sorted((JobRecord(*row) for row in rows), key=lambda job: job.number)


def jobs_named(connection: Connection, names: Sequence[str]) -> dict[str, JobRecord]:
    """The jobs with these ids, those that there are, by id."""
    rows = [row for some in in_parts(names) for row in connection.execute(_BY_ID, {"values": some})]
    return {job.id: job for job in (JobRecord(*row) for row in rows)}


def whereabouts(connection: Connection, names: Sequence[str]) -> dict[str, Whereabouts]:
    """Where those of these jobs run that hold a lease, by id."""
    held_rows, rate_rows = _statements(connection.dialect.name)
    held = [row for some in in_parts(names) for row in rows_of(connection, held_rows, {"values": some})]
    running = [job for job, *_ in held]
    seen = {
        (job, accelerator, beside): float(rate)
        for some in in_parts(running)
        for job, accelerator, beside, rate in rows_of(connection, rate_rows, {"values": some})
    }
    found = {}
    for job, lease, accelerator, workers, members in held:
        beside = next((member for member in json.loads(members) if member != job), "")
        rate = seen.get((job, accelerator, beside))
        found[job] = Whereabouts(lease, accelerator, tuple(json.loads(workers)), rate)
    return found


@cache
def _statements(dialect: str) -> tuple[Select[str], Select[str]]:
    return in_one_go(dialect, _HELD), in_one_go(dialect, _RATES)
