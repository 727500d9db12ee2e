"""Jobs page by page as `queries.list_jobs` finds them, but only with what a listing shows, and read in one go.

Of what was submitted a listing shows the accelerators that are asked for; the rest may be long and is left where it is.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, Text, bindparam, cast, func, select, type_coerce
from sqlalchemy.dialects.postgresql import JSON

from fairway.errors import InputError
from fairway.store.database.columns import Whole
from fairway.store.database.in_one_go import in_one_go, rows_of
from fairway.store.database.schema import jobs
from fairway.store.states import JobState

_MOST = 1000
_LEFT_OUT = {"spec", "content", "idempotency_key", "checkpoint", "checkpoint_at"}
_COLUMNS = [column for column in jobs.columns if column.name not in _LEFT_OUT]

ASKED = "asked_accelerators"
"""Under which name the accelerators stand that a job asks for: a JSON text of what was given, or None."""

_NAMES = [*(column.name for column in _COLUMNS), ASKED]


@dataclass(frozen=True, slots=True)
class Listing:
    """Some jobs, each by the names of its fields, and where the next page begins: the `after` to ask with."""

    jobs: list[dict[str, Any]]
    after: int | None


def listing(
    connection: Connection,
    *,
    states: Collection[JobState] | None = None,
    team: str | None = None,
    after: int | None = None,
    limit: int = 100,
    newest_first: bool = True,
) -> Listing:
    """A page of the jobs in these states and of this team; numbers with a point may be text, which says the same."""
    if not 1 <= limit <= _MOST:
        raise InputError(f"limit: {limit} given, expected 1 to {_MOST}")
    asked = {"states": states and sorted(states), "team": team, "after": after}
    given = {name: value for name, value in asked.items() if value is not None}
    statement = _statement(connection.dialect.name, frozenset(given), newest_first)
    rows = rows_of(connection, statement, {**given, "count": limit + 1})
    rows.sort(key=lambda row: row[0], reverse=newest_first)
    found = [dict(zip(_NAMES, row, strict=True)) for row in rows[:limit]]
    return Listing(found, found[-1]["number"] if len(rows) > limit else None)


@cache
def _statement(dialect: str, given: frozenset[str], newest_first: bool) -> Select[str]:
    """What to ask; made once for each way to ask, since that takes longer than the answer."""
    columns = [type_coerce(column, Text) if column.name == "state" else column for column in _COLUMNS]
    statement = select(*columns, _asked(dialect).label(ASKED))
    statement = statement.order_by(jobs.c.number.desc() if newest_first else jobs.c.number).limit(bindparam("count"))
    if "states" in given:
        statement = statement.where(jobs.c.state.in_(bindparam("states")))
    if "team" in given:
        statement = statement.where(jobs.c.team == bindparam("team"))
    if "after" in given:
        after = bindparam("after", type_=Whole)
        statement = statement.where(jobs.c.number < after if newest_first else jobs.c.number > after)
    return in_one_go(dialect, statement)


def _asked(dialect: str) -> ColumnElement[Any]:
    spec = type_coerce(jobs.c.spec, Text)
    if dialect == "sqlite":
        return func.json_quote(func.json_extract(spec, "$.resources.accelerators"))
    return cast(cast(spec, JSON)[("resources", "accelerators")], Text)
