"""Sums over all jobs, added up by the database: how long they waited and took, how often they failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, case, func, select

from fairway.store.database.schema import jobs
from fairway.store.states import ACTIVE, JobState


@dataclass(frozen=True, slots=True)
class Spread:
    """How values are spread: how many there are, their sum, and how many are at most as large as each bound."""

    count: int
    sum: float
    at_most: tuple[int, ...]


def failure_count(connection: Connection) -> int:
    """How many attempts have failed, of all jobs that ever were."""
    return int(connection.execute(select(func.coalesce(func.sum(jobs.c.failures), 0))).scalar_one())


def waits(connection: Connection, bounds: Sequence[float]) -> Spread:
    """Seconds from submission to the first start, of jobs that started."""
    (row,) = _spread(connection, jobs.c.started_at - jobs.c.submitted_at, jobs.c.started_at.is_not(None), bounds, ())
    return row[1]


def durations(connection: Connection, bounds: Sequence[float]) -> dict[JobState, Spread]:
    """Seconds from submission to the end, of jobs that ended, by how they did."""
    ended = jobs.c.state.not_in(sorted(ACTIVE))
    value = func.coalesce(jobs.c.ended_at, jobs.c.changed_at) - jobs.c.submitted_at
    return {key[0]: spread for key, spread in _spread(connection, value, ended, bounds, (jobs.c.state,))}


def _spread(
    connection: Connection,
    value: ColumnElement[float],
    which: ColumnElement[bool],
    bounds: Sequence[float],
    by: Sequence[ColumnElement[JobState]],
) -> list[tuple[tuple[JobState, ...], Spread]]:
    value = case((value < 0, 0.0), else_=value)  # the clock was set back in between
    sums = [func.coalesce(func.sum(case((value <= bound, 1), else_=0)), 0) for bound in bounds]
    statement = select(*by, func.count(), func.coalesce(func.sum(value), 0.0), *sums).where(which)
    rows = connection.execute(statement.group_by(*by) if by else statement)
    size = len(by)
    return [
        (tuple(row[:size]), Spread(int(row[size]), float(row[size + 1]), tuple(int(one) for one in row[size + 2 :])))
        for row in rows
    ]
