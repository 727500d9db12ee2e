"""What jobs have used: accelerator seconds by team, submitter and type, added up by the database from all leases.

A lease counts from when it was granted to its end, or up to now, as far as that lies within the time that is asked for.
Jobs that share a lease count an equal part of it each, and a lease on parts of workers counts as these parts. Seconds
are those of the wall clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Text, case, cast, distinct, func, select, type_coerce
from sqlalchemy.dialects.postgresql import JSON

from fairway.store.database.schema import jobs, lease_jobs, leases


@dataclass(frozen=True, slots=True)
class Used:
    """What the jobs of one submitter in one team have used, in seconds by accelerator type, and how many they are."""

    team: str | None
    submitted_by: str
    jobs: int
    seconds: dict[str, float]


def usage(connection: Connection, *, since: float, until: float, team: str | None = None) -> list[Used]:
    """Who has used what between two moments, of one team only if so asked; in the order of names."""
    begin = case((leases.c.granted_at < since, since), else_=leases.c.granted_at)
    ended = func.coalesce(leases.c.ended_at, until)
    end = case((ended > until, until), else_=ended)
    dialect = connection.dialect.name
    share = leases.c.part * _length(dialect, leases.c.workers) / _length(dialect, leases.c.jobs)
    within = [leases.c.granted_at < until, func.coalesce(leases.c.ended_at, until) > since]
    if team is not None:
        within.append(jobs.c.team == team)
    joined = leases.join(lease_jobs, lease_jobs.c.lease == leases.c.number).join(jobs, jobs.c.id == lease_jobs.c.job)
    who = jobs.c.team, jobs.c.submitted_by
    counts = select(*who, func.count(distinct(jobs.c.number))).select_from(joined).where(*within).group_by(*who)
    found = {(row[0], row[1]): Used(row[0], row[1], int(row[2]), {}) for row in connection.execute(counts)}
    seconds = func.sum((end - begin) * share)
    sums = select(*who, leases.c.accelerator, seconds).select_from(joined).where(*within)
    for row in connection.execute(sums.group_by(*who, leases.c.accelerator).order_by(leases.c.accelerator)):
        found[row[0], row[1]].seconds[row[2]] = max(float(row[3]), 0.0)
    return sorted(found.values(), key=lambda used: (used.team or "", used.submitted_by))


def _length(dialect: str, column: ColumnElement[Any]) -> ColumnElement[Any]:
    text = type_coerce(column, Text)
    return func.json_array_length(text if dialect == "sqlite" else cast(text, JSON))
