"""Makes the tables in an empty database, and brings those of an older version up to date.

All of it happens in the one transaction that the caller holds: a store is of one version or of another, never between.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlalchemy import Connection, insert, inspect, select, text, update

from fairway.errors import InputError
from fairway.store.counters import ALL
from fairway.store.database import schema

Step = Callable[[Connection], None]


def _add_expiry_and_use_of_tokens(connection: Connection) -> None:
    for column in ("expires_at", "used_at"):
        connection.execute(text(f"ALTER TABLE tokens ADD COLUMN {column} DOUBLE PRECISION"))


def _add_what_jobs_are_found_by_and_wait_for(connection: Connection) -> None:
    for column in ("array_id", "array_name"):
        connection.execute(text(f"ALTER TABLE jobs ADD COLUMN {column} TEXT"))
    for column in ("name", "array_name"):
        connection.execute(text(f"CREATE INDEX jobs_by_{column} ON jobs ({column}, number)"))
    schema.labels.create(connection)
    schema.dependencies.create(connection)


def _add_reservations(connection: Connection) -> None:
    schema.reservations.create(connection)


def _add_parts_of_workers(connection: Connection) -> None:
    connection.execute(text("ALTER TABLE leases ADD COLUMN part DOUBLE PRECISION DEFAULT 1 NOT NULL"))
    schema.held_parts.create(connection)


STEPS: Mapping[int, Step] = {
    2: _add_expiry_and_use_of_tokens,
    3: _add_what_jobs_are_found_by_and_wait_for,
    4: _add_reservations,
    5: _add_parts_of_workers,
}
"""By version: what turns the tables of the version before into those of this one."""


def version_of(connection: Connection) -> int | None:
    """The version of the tables; None in a database that has none at all."""
    names = inspect(connection).get_table_names()
    if schema.schema_version.name in names:
        version: int = connection.execute(select(schema.schema_version.c.version)).scalar_one()
        return version
    if names:
        raise InputError(f"holds tables of another program ({', '.join(sorted(names)[:3])}); give an empty database")
    return None


def is_current(connection: Connection, version: int = schema.VERSION) -> bool:
    """Whether the tables are of the version that this program knows; refuses newer ones."""
    found = version_of(connection)
    if found is not None and found > version:
        raise InputError(f"was written by a newer Fairway (schema {found}, this one knows {version}); upgrade Fairway")
    return found == version


def prepare(connection: Connection, version: int = schema.VERSION, steps: Mapping[int, Step] = STEPS) -> None:
    """Make the tables, or bring them up to date."""
    if is_current(connection, version):
        return
    found = version_of(connection)
    if found is None:
        schema.metadata.create_all(connection, checkfirst=False)
        connection.execute(insert(schema.schema_version).values(version=version))
        connection.execute(insert(schema.counters), [{"name": name, "value": 0} for name in ALL])
        return
    for number in range(found + 1, version + 1):
        steps[number](connection)
        connection.execute(update(schema.schema_version).values(version=number))
