"""Many rows as one value, so that they are read in one go.

Python's SQLite gives up its turn among the threads for every row that it reads, and has to wait for it again: while
another thread computes, a hundred rows are a hundred waits. The database can hand all of them out as one JSON text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, Connection, Double, Select, Text, case, cast, func, select


def in_one_go(dialect: str, statement: Select[Any]) -> Select[str]:
    """A statement whose one value is the rows of another one, in any order; make it once, and use it often."""
    rows = statement.subquery()
    if dialect == "sqlite":
        return select(func.json_group_array(func.json_array(*[_exact(column) for column in rows.c])))
    return select(cast(func.json_agg(func.json_build_array(*rows.c)), Text))


def rows_of(
    connection: Connection, statement: Select[str], parameters: Mapping[str, Any] | None = None
) -> list[list[Any]]:
    """The rows that a statement made by `in_one_go` gives.

    Their values are as JSON has them: numbers with a point may be text, and what is stored as JSON is.
    """
    text = connection.execute(statement, parameters).scalar_one()
    rows: list[list[Any]] = json.loads(text or "[]")  # PostgreSQL has no value for no rows
    return rows


def _exact(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """SQLite's JSON keeps 15 digits of a number, too few for a time."""
    if isinstance(column.type, Double):
        return case((column.is_not(None), func.printf("%!.17g", column)))
    return column
