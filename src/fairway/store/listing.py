"""Jobs page by page as `queries.list_jobs` finds them, but only with what a listing shows, and read in one go.

Of what was submitted a listing shows the accelerators that are asked for; the rest may be long and is left where it is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, Text, bindparam, cast, func, or_, select, type_coerce
from sqlalchemy.dialects.postgresql import JSON

from fairway.errors import InputError
from fairway.store.database.columns import Whole
from fairway.store.database.in_one_go import in_one_go, rows_of
from fairway.store.database.schema import jobs
from fairway.store.database.schema import labels as labels_table
from fairway.store.states import JobState

_MOST = 1000
_LEFT_OUT = {"spec", "content", "idempotency_key", "checkpoint", "checkpoint_at"}
_COLUMNS = [column for column in jobs.columns if column.name not in _LEFT_OUT]

ASKED = "asked_accelerators"
"""Under which name the accelerators stand that a job asks for: a JSON text of what was given, or None."""

PRIORITY_CLASS = "priority_class"
"""Under which name the priority class stands that a job names."""

NODES = "num_nodes"
"""Under which name the number of machines stands that a job may span: a number, its text, or None."""

_NAMES = [*(column.name for column in _COLUMNS), ASKED, PRIORITY_CLASS, NODES]


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
    name: str | None = None,
    labels: Mapping[str, str] | None = None,
    to_cancel: bool = False,
    after: int | None = None,
    limit: int = 100,
    newest_first: bool = True,
) -> Listing:
    """A page of the jobs in these states, of this team and name, and with all of these labels.

    An array is found by its name, too. `to_cancel` leaves out jobs that are to be stopped already.
    Numbers with a point may be text, which says the same.
    """
    if not 1 <= limit <= _MOST:
        raise InputError(f"limit: {limit} given, expected 1 to {_MOST}")
    asked = {"states": states and sorted(states), "team": team, "name": name, "after": after}
    given = {name: value for name, value in asked.items() if value is not None}
    statement = _statement(connection.dialect.name, frozenset(given), newest_first, len(labels or {}), to_cancel)
    for position, (label, value) in enumerate((labels or {}).items()):
        given |= {f"label_{position}": label, f"value_{position}": value}
    rows = rows_of(connection, statement, {**given, "count": limit + 1})
    rows.sort(key=lambda row: row[0], reverse=newest_first)
    found = [dict(zip(_NAMES, row, strict=True)) for row in rows[:limit]]
    return Listing(found, found[-1]["number"] if len(rows) > limit else None)


@cache
def _statement(
    dialect: str, given: frozenset[str], newest_first: bool, label_count: int, to_cancel: bool
) -> Select[str]:
    """What to ask; made once for each way to ask, since that takes longer than the answer."""
    columns = [type_coerce(column, Text) if column.name == "state" else column for column in _COLUMNS]
    fields = [_named(dialect, name).label(name) for name in (PRIORITY_CLASS, NODES)]
    statement = select(*columns, _asked(dialect).label(ASKED), *fields)
    statement = statement.order_by(jobs.c.number.desc() if newest_first else jobs.c.number).limit(bindparam("count"))
    if "states" in given:
        statement = statement.where(jobs.c.state.in_(bindparam("states")))
    if "team" in given:
        statement = statement.where(jobs.c.team == bindparam("team"))
    if "name" in given:
        statement = statement.where(or_(jobs.c.name == bindparam("name"), jobs.c.array_name == bindparam("name")))
    if to_cancel:
        statement = statement.where(jobs.c.cancel_requested_at.is_(None))
    for position in range(label_count):
        labelled = select(labels_table.c.job).where(
            labels_table.c.label == bindparam(f"label_{position}"),
            labels_table.c.value == bindparam(f"value_{position}"),
        )
        statement = statement.where(jobs.c.number.in_(labelled))
    if "after" in given:
        after = bindparam("after", type_=Whole)
        statement = statement.where(jobs.c.number < after if newest_first else jobs.c.number > after)
    return in_one_go(dialect, statement)


def _named(dialect: str, name: str) -> ColumnElement[Any]:
    spec = type_coerce(jobs.c.spec, Text)
    if dialect == "sqlite":
        return func.json_extract(spec, f"$.{name}")
    named: ColumnElement[Any] = cast(spec, JSON)[name].astext
    return named


def _asked(dialect: str) -> ColumnElement[Any]:
    spec = type_coerce(jobs.c.spec, Text)
    if dialect == "sqlite":
        return func.json_quote(func.json_extract(spec, "$.resources.accelerators"))
    return cast(cast(spec, JSON)[("resources", "accelerators")], Text)
