"""Bringing a store of an older version up to date, all of it or nothing."""

from __future__ import annotations

import pytest
from sqlalchemy import Connection, inspect, text

from fairway.errors import InputError
from fairway.store import Store
from fairway.store.database import schema
from fairway.store.database.migrations import STEPS, prepare, version_of
from fairway.store.listing import listing
from fairway.store.queries import list_jobs
from fairway.store.tokens import Role, create_token, find_token
from tests.store.making import submitted

NEXT = schema.VERSION + 1


def add_column(connection: Connection) -> None:
    connection.execute(text("ALTER TABLE jobs ADD COLUMN colour TEXT"))


def fill_column(connection: Connection) -> None:
    connection.execute(text("UPDATE jobs SET colour = 'red'"))


def columns(connection: Connection) -> set[str]:
    return {column["name"] for column in inspect(connection).get_columns("jobs")}


def test_there_is_a_step_to_every_version() -> None:
    assert sorted(STEPS) == list(range(2, schema.VERSION + 1))


def test_steps_run_in_order_once_and_keep_what_is_there(store: Store) -> None:
    ids = submitted(store, 2)
    for _ in range(2):
        store.write(prepare, version=NEXT + 1, steps={NEXT: add_column, NEXT + 1: fill_column})
    assert store.read(version_of) == NEXT + 1
    colours = store.read(lambda connection: connection.execute(text("SELECT id, colour FROM jobs")).all())
    assert {tuple(row) for row in colours} == {(name, "red") for name in ids}


def test_a_step_that_fails_leaves_the_old_version(store: Store) -> None:
    submitted(store)

    def fail(connection: Connection) -> None:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        store.write(prepare, version=NEXT + 1, steps={NEXT: add_column, NEXT + 1: fail})
    assert store.read(version_of) == schema.VERSION
    assert "colour" not in store.read(columns)
    assert len(store.read(list_jobs).jobs) == 1


def test_a_newer_version_is_not_touched(store: Store) -> None:
    store.write(prepare, version=NEXT, steps={NEXT: add_column})
    with pytest.raises(InputError, match="newer"):
        store.write(prepare)
    assert store.read(version_of) == NEXT


def back_to_the_first(connection: Connection) -> None:
    for column in ("expires_at", "used_at"):
        connection.execute(text(f"ALTER TABLE tokens DROP COLUMN {column}"))
    for index in ("jobs_by_name", "jobs_by_array_name"):
        connection.execute(text(f"DROP INDEX {index}"))
    for column in ("array_id", "array_name"):
        connection.execute(text(f"ALTER TABLE jobs DROP COLUMN {column}"))
    connection.execute(text("ALTER TABLE leases DROP COLUMN part"))
    for table in ("labels", "dependencies", "reservations", "held_parts"):
        connection.execute(text(f"DROP TABLE {table}"))
    connection.execute(text("UPDATE fairway_schema SET version = 1"))


def test_a_store_of_the_first_version_gets_all_that_a_new_one_has(store: Store) -> None:
    def shape(connection: Connection) -> object:
        inspector = inspect(connection)
        return {
            table: (
                {column["name"] for column in inspector.get_columns(table)},
                {index["name"] for index in inspector.get_indexes(table)},
            )
            for table in inspector.get_table_names()
        }

    [old] = submitted(store, name="old")
    new = store.read(shape)
    store.write(back_to_the_first)
    assert store.read(shape) != new
    store.write(prepare)
    assert store.read(shape) == new
    assert [job["id"] for job in store.read(listing, name="old").jobs] == [old]
    assert submitted(store, labels={"a": "b"})


def test_tokens_of_the_first_version_are_kept_and_never_expire(store: Store) -> None:
    secret, token = store.write(create_token, Role.ADMIN, at=1.0)
    store.write(back_to_the_first)
    store.write(prepare)
    assert store.read(find_token, secret, 1e12) == token
    assert store.read(version_of) == schema.VERSION
