"""Numbers that only grow: of jobs, leases, journal entries and starts of the controller.

Databases have sequences for this, but those leave gaps after a rollback, and SQLite's start again when a table is
emptied. Writers take turns, so a plain row is enough.
"""

from __future__ import annotations

from sqlalchemy import Connection, bindparam, select, update

from fairway.store.database.schema import counters

JOBS, LEASES, JOURNAL, EPOCHS = "jobs", "leases", "journal", "epochs"
ALL = (JOBS, LEASES, JOURNAL, EPOCHS)

COMMITS = "commits"
"""Counted in SQLite alone, from the first write on (`sqlite_files`)."""

TAKE = (
    update(counters)
    .where(counters.c.name == bindparam("counter"))
    .values(value=counters.c.value + bindparam("count"))
    .returning(counters.c.value)
)
_RAISE = update(counters).where(counters.c.name == bindparam("counter")).values(value=bindparam("to"))
_LAST = select(counters.c.value).where(counters.c.name == bindparam("counter"))


def take(connection: Connection, counter: str, count: int) -> int:
    """Take so many numbers; returns the first of them."""
    last: int = connection.execute(TAKE, {"counter": counter, "count": count}).scalar_one()
    return last - count + 1


def last(connection: Connection, counter: str) -> int:
    """The last number taken, 0 before the first."""
    value: int = connection.execute(_LAST, {"counter": counter}).scalar_one()
    return value


def raise_to(connection: Connection, counter: str, value: int) -> None:
    """Count on from a number that was chosen elsewhere; it has to be above the last."""
    connection.execute(_RAISE, {"counter": counter, "to": value})
