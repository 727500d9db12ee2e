"""The journal: what happened to the engine, what it answered and how it decided, in one sequence that only grows.

A step of the engine is written as the events of one moment and then the commands that it answered with, each of which
names the last of those events as its cause. From a `start` entry on, the events alone bring a new engine to the same
state; a `decision` holds its problem and can be decided again by itself. Entries are never changed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from sqlalchemy import Connection, delete, insert, select

from fairway.engine.training.messages import Command, Event
from fairway.errors import InputError
from fairway.store import counters
from fairway.store.database.schema import journal
from fairway.store.messages import command_document, command_of, event_document, event_of

Kind: TypeAlias = Literal["start", "event", "command", "decision"]
_Entry: TypeAlias = tuple[Kind, str, int | None, Mapping[str, Any]]

_MOST = 10_000


class Step(NamedTuple):
    """One call of the engine: the events of a moment, on the engine's clock, and the commands that it answered with."""

    now: float
    events: Sequence[Event]
    commands: Sequence[Command]


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: `name` is the type of the message or of what began, `cause` the number of the event behind it."""

    sequence: int
    at: float
    kind: Kind
    name: str
    cause: int | None
    body: Mapping[str, Any]

    @property
    def message(self) -> Event | Command:
        """The engine's message that it holds, if it is one of an event or a command."""
        if self.kind == "event":
            return self.happened[1]
        if self.kind == "command":
            return command_of(self.body)
        raise InputError(f"journal entry {self.sequence} is a {self.kind} and holds no message")

    @property
    def happened(self) -> tuple[float, Event]:
        """The time on the engine's clock, and the event, if it holds one."""
        if self.kind != "event":
            raise InputError(f"journal entry {self.sequence} is a {self.kind} and holds no event")
        return event_of(self.body)


def record_start(connection: Connection, name: str, body: Mapping[str, Any], *, at: float) -> int:
    """An engine starts, with all that it was made from; returns the number of the entry."""
    return _append(connection, [("start", name, None, body)], at)


def record_step(
    connection: Connection, now: float, events: Sequence[Event], commands: Sequence[Command], *, at: float
) -> int:
    """The engine took in the events of a moment, and answered; returns the number of the first event."""
    return record_steps(connection, [Step(now, events, commands)], at=at)


def record_steps(connection: Connection, steps: Sequence[Step], *, at: float) -> int:
    """The engine was called many times; returns the number of the first event."""
    number = sum(len(step.events) + len(step.commands) for step in steps)
    first = counters.take(connection, counters.JOURNAL, number)
    entries: list[_Entry] = []
    for step in steps:
        entries += [("event", type(event).__name__, None, event_document(step.now, event)) for event in step.events]
        cause = first + len(entries) - 1
        entries += [("command", type(command).__name__, cause, command_document(command)) for command in step.commands]
    if entries:
        _insert(connection, first, entries, at)
    return first


def record_decision(connection: Connection, decision: Mapping[str, Any], *, at: float, cause: int | None = None) -> int:
    """A policy decided (`allocate.decision_document`), because of an event; returns the number of the entry."""
    return _append(connection, [("decision", str(decision["policy"]), cause, decision)], at)


def read_journal(
    connection: Connection, *, after: int = 0, limit: int = 1000, kinds: Collection[Kind] | None = None
) -> list[Entry]:
    """The next entries after a number, in order; fewer than `limit` only at the end."""
    if not 1 <= limit <= _MOST:
        raise InputError(f"limit: {limit} given, expected 1 to {_MOST}")
    statement = select(journal).where(journal.c.sequence > after).order_by(journal.c.sequence).limit(limit)
    if kinds is not None:
        statement = statement.where(journal.c.kind.in_(sorted(kinds)))
    return [Entry(*row) for row in connection.execute(statement)]


def last_entry(connection: Connection, kind: Kind) -> Entry | None:
    """The newest entry of a kind, such as the last start."""
    statement = select(journal).where(journal.c.kind == kind).order_by(journal.c.sequence.desc()).limit(1)
    row = connection.execute(statement).one_or_none()
    return None if row is None else Entry(*row)


def last_sequence(connection: Connection) -> int:
    """The number of the newest entry, 0 in an empty journal."""
    return counters.last(connection, counters.JOURNAL)


def trim_journal(connection: Connection, *, before: int) -> int:
    """Forget the entries before a number, to keep the store small; returns how many. Numbers go on as they were."""
    return connection.execute(delete(journal).where(journal.c.sequence < before)).rowcount


def trim_decisions(connection: Connection, *, keep: int) -> int:
    """Forget all decisions but the newest, which are large where there are many jobs; returns how many."""
    newest = select(journal.c.sequence).where(journal.c.kind == "decision").order_by(journal.c.sequence.desc())
    oldest = connection.execute(newest.offset(keep).limit(1)).scalar_one_or_none()
    if oldest is None:
        return 0
    old = delete(journal).where(journal.c.kind == "decision", journal.c.sequence <= oldest)
    return connection.execute(old).rowcount


def _append(connection: Connection, entries: Sequence[_Entry], at: float) -> int:
    first = counters.take(connection, counters.JOURNAL, len(entries))
    _insert(connection, first, entries, at)
    return first


def _insert(connection: Connection, first: int, entries: Sequence[_Entry], at: float) -> None:
    rows = [
        {"sequence": first + place, "at": at, "kind": kind, "name": name, "cause": cause, "body": body}
        for place, (kind, name, cause, body) in enumerate(entries)
    ]
    connection.execute(insert(journal), rows)
