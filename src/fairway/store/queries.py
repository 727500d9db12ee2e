"""Questions about the store: jobs page by page, counts, one job with its past, all that a restart needs.

Pages follow the order of submission and go on from the last number seen, so that jobs that come in meanwhile neither
repeat nor hide others.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from fairway.errors import InputError
from fairway.store import counters
from fairway.store.database.schema import attempts, jobs, lease_jobs, leases, rates
from fairway.store.job_changes import job_named
from fairway.store.journal import last_sequence
from fairway.store.leases import last_lease, open_leases
from fairway.store.records import Agent, Attempt, JobRecord, LeaseRecord, MeasuredRate, Worker
from fairway.store.states import ACTIVE, HOLDING, JobState
from fairway.store.workers import all_agents, all_workers

_MOST = 1000


@dataclass(frozen=True, slots=True)
class Page:
    """Some jobs, and where the next page begins: the `after` to ask with, None behind the last job."""

    jobs: list[JobRecord]
    after: int | None


@dataclass(frozen=True, slots=True)
class JobHistory:
    """A job with everything that is known of its past, the oldest first."""

    job: JobRecord
    attempts: list[Attempt]
    leases: list[LeaseRecord]
    rates: list[MeasuredRate]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a controller needs to go on after a restart.

    Jobs that have not ended, in order of submission, with their attempts that run and the rates that were measured;
    leases that have not ended, planned ones too; workers and agents; the last numbers of jobs and leases that were
    used, and of the journal.
    """

    jobs: list[JobRecord]
    attempts: list[Attempt]
    rates: list[MeasuredRate]
    leases: list[LeaseRecord]
    workers: list[Worker]
    agents: list[Agent]
    last_job: int
    last_lease: int
    last_sequence: int


def list_jobs(
    connection: Connection,
    *,
    states: Collection[JobState] | None = None,
    team: str | None = None,
    submitted_by: str | None = None,
    after: int | None = None,
    limit: int = 100,
    newest_first: bool = True,
) -> Page:
    """A page of the jobs in these states, of this team and submitter; `after` is from the page before."""
    if not 1 <= limit <= _MOST:
        raise InputError(f"limit: {limit} given, expected 1 to {_MOST}")
    statement = select(jobs).order_by(jobs.c.number.desc() if newest_first else jobs.c.number).limit(limit + 1)
    if states is not None:
        statement = statement.where(jobs.c.state.in_(sorted(states)))
    if team is not None:
        statement = statement.where(jobs.c.team == team)
    if submitted_by is not None:
        statement = statement.where(jobs.c.submitted_by == submitted_by)
    if after is not None:
        statement = statement.where(jobs.c.number < after if newest_first else jobs.c.number > after)
    found = [JobRecord(*row) for row in connection.execute(statement)]
    return Page(found[:limit], found[limit - 1].number if len(found) > limit else None)


def jobs_since(connection: Connection, number: int) -> list[JobRecord]:
    """The jobs that were submitted after the one of this number, in order, ended ones too."""
    return [
        JobRecord(*row)
        for row in connection.execute(select(jobs).where(jobs.c.number > number).order_by(jobs.c.number))
    ]


def jobs_taken_back(connection: Connection, *, since: float) -> list[str]:
    """The jobs that are to be stopped, and those that were cancelled at this moment or later, by id."""
    to_stop = select(jobs.c.id).where(jobs.c.state.in_(sorted(HOLDING)), jobs.c.cancel_requested_at.is_not(None))
    # The state is looked at here: asked for both, SQLite would go through all that were ever cancelled.
    changed = connection.execute(select(jobs.c.id, jobs.c.state).where(jobs.c.changed_at >= since))
    cancelled = [job for job, state in changed if state is JobState.CANCELLED]
    return [*connection.execute(to_stop).scalars(), *cancelled]


def count_jobs(connection: Connection) -> dict[tuple[str | None, JobState], int]:
    """How many jobs there are, by team and state."""
    statement = select(jobs.c.team, jobs.c.state, func.count()).group_by(jobs.c.team, jobs.c.state)
    return {(team, state): count for team, state, count in connection.execute(statement)}


def job_history(connection: Connection, job: str) -> JobHistory:
    """A job with its attempts, its leases and its measured rates."""
    record = job_named(connection, job)
    of_leases = (
        select(leases).join(lease_jobs, lease_jobs.c.lease == leases.c.number).where(lease_jobs.c.job == job)
    ).order_by(leases.c.number)
    of_attempts = select(attempts).where(attempts.c.job == job).order_by(attempts.c.attempt)
    of_rates = select(rates).where(rates.c.job == job).order_by(*rates.primary_key)
    return JobHistory(
        record,
        [Attempt(*row) for row in connection.execute(of_attempts)],
        [LeaseRecord(*row) for row in connection.execute(of_leases)],
        [MeasuredRate(*row) for row in connection.execute(of_rates)],
    )


def snapshot(connection: Connection) -> Snapshot:
    """All that a controller needs to go on after a restart, as of one moment."""
    active = jobs.c.state.in_(sorted(ACTIVE))
    unfinished = select(jobs).where(active).order_by(jobs.c.number)
    running = select(attempts).where(attempts.c.ended_at.is_(None)).order_by(attempts.c.job)
    measured = select(rates).join(jobs, jobs.c.id == rates.c.job).where(active).order_by(*rates.primary_key)
    return Snapshot(
        jobs=[JobRecord(*row) for row in connection.execute(unfinished)],
        attempts=[Attempt(*row) for row in connection.execute(running)],
        rates=[MeasuredRate(*row) for row in connection.execute(measured)],
        leases=open_leases(connection),
        workers=all_workers(connection),
        agents=all_agents(connection),
        last_job=counters.last(connection, counters.JOBS),
        last_lease=last_lease(connection),
        last_sequence=last_sequence(connection),
    )
