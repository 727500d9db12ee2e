"""The tables and the records that are read from them say the same: which columns there are, and which may be empty."""

from __future__ import annotations

from dataclasses import fields
from types import NoneType
from typing import get_args, get_type_hints

import pytest
from sqlalchemy import Connection, inspect

from fairway.store import Store
from fairway.store.records import Agent, Attempt, JobRecord, LeaseRecord, MeasuredRate, Worker
from fairway.store.tokens import Token

RECORDS = {
    "jobs": JobRecord,
    "attempts": Attempt,
    "leases": LeaseRecord,
    "workers": Worker,
    "agents": Agent,
    "rates": MeasuredRate,
    "tokens": Token,
}


@pytest.mark.parametrize("table", RECORDS)
def test_a_column_may_be_empty_where_its_record_says_so(store: Store, table: str) -> None:
    record = RECORDS[table]
    hints = get_type_hints(record)
    said = {field.name: NoneType in get_args(hints[field.name]) for field in fields(record)}
    columns = store.read(lambda connection: inspect(connection).get_columns(table))
    found = {column["name"]: bool(column["nullable"]) for column in columns if column["name"] in said}
    assert found == said


def test_nothing_else_may_be_empty(store: Store) -> None:
    """Of the tables that are read without a record: what is missing there would be found out much later."""

    def empty(connection: Connection) -> set[str]:
        found = inspect(connection)
        return {
            f"{table}.{column['name']}"
            for table in found.get_table_names()
            if table not in RECORDS
            for column in found.get_columns(table)
            if column["nullable"]
        }

    by_itself, not_cancelled = "journal.cause", "reservations.cancelled_at"
    assert store.read(empty) == {by_itself, not_cancelled}
