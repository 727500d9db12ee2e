"""Which ends of jobs were told to the addresses that asked for them, so that none is forgotten over a restart."""

from __future__ import annotations

from sqlalchemy import Connection, Text, delete, insert, select, type_coerce

from fairway.store.database.schema import jobs, standing
from fairway.store.records import JobRecord
from fairway.store.states import ACTIVE

_NAME = "notified"


def ended_jobs(connection: Connection, *, since: float, everything: bool, limit: int) -> list[JobRecord]:
    """The jobs that ended at this moment or later, the first ones first; only those that name an address if not all."""
    statement = select(jobs).where(jobs.c.changed_at >= since, jobs.c.state.not_in(sorted(ACTIVE)))
    if not everything:
        statement = statement.where(type_coerce(jobs.c.spec, Text).like('%"notify":%'))
    return [JobRecord(*row) for row in connection.execute(statement.order_by(jobs.c.changed_at).limit(limit))]


def save_notified(connection: Connection, until: float) -> None:
    """All that ended before this moment was told."""
    connection.execute(delete(standing).where(standing.c.name == _NAME))
    connection.execute(insert(standing).values(name=_NAME, at=until, body={}))


def load_notified(connection: Connection) -> float | None:
    """The moment that was saved last; None before the first time."""
    at: float | None = connection.execute(select(standing.c.at).where(standing.c.name == _NAME)).scalar_one_or_none()
    return at
