"""Replays the journal of the live system: decides every decision again, and hands a new engine the same events.

A decision in the journal holds its problem, so it can be made again by itself. From the last start on, the journal
holds every event that the engine took in and every command that it answered with; an engine made alike must answer
the same again. Numbers count as the same within 1e-6.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import ValidationError

from fairway.allocate.allocation import Allocation
from fairway.allocate.decision_document import problem_of
from fairway.allocate.policy import Policy, UndecidedError
from fairway.allocate.problem import Problem
from fairway.allocate.registry import policy_of
from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.messages import Command, Event, Undecided
from fairway.errors import FairwayError, InputError
from fairway.profiles import ThroughputTable
from fairway.profiles.catalog import builtin
from fairway.profiles.files import read_table
from fairway.store import Store
from fairway.store.engine_start import EngineStart
from fairway.store.journal import Entry, Kind, last_entry, read_journal
from fairway.store.messages import command_document

SAME = 1e-6

_BUILTIN = "builtin"
_PART = 200
"""Entries that are read at once: a decision of many jobs is large."""


@dataclass(frozen=True, slots=True)
class ReplayedDecision:
    """A decision made again: the largest difference between a share then and now, None if it could not be made."""

    sequence: int
    at: float
    policy: str
    jobs: int
    difference: float | None
    problem: str | None = None

    @property
    def same(self) -> bool:
        """Whether it was decided as before."""
        return self.difference is not None and self.difference <= SAME


@dataclass(frozen=True, slots=True)
class ReplayedEngine:
    """The events since the last start, taken in again; `problem` says where the answers first differed, and how."""

    start: int
    policy: str
    events: int
    commands: int
    problem: str | None = None

    @property
    def same(self) -> bool:
        """Whether all commands were the same again."""
        return self.problem is None


def replay_decisions(store: Store, *, after: int = 0) -> Iterator[ReplayedDecision]:
    """Make the decisions of the journal again, those after an entry of this number, in order."""
    for entry in _entries(store, after, ["decision"]):
        yield decide_again(entry.sequence, entry.at, entry.name, entry.body)


def replay_engine(store: Store, *, table: ThroughputTable | None = None) -> ReplayedEngine | None:
    """Hand a new engine all events since the last one's start; None if the journal holds no start.

    `table` are the profiles by which jobs shared, where those that the start names are not at hand.
    """
    start = store.read(last_entry, "start")
    if start is None:
        return None
    engine, policy = engine_of(start, table)
    events = commands = 0
    for happened, said in _steps(_entries(store, start.sequence, ["event", "command"])):
        problem = _handled_again(engine, happened, said)
        if problem is not None:
            return ReplayedEngine(start.sequence, policy, events, commands, problem)
        events, commands = events + len(happened), commands + len(said)
    return ReplayedEngine(start.sequence, policy, events, commands)


def engine_of(start: Entry, table: ThroughputTable | None = None) -> tuple[TrainingEngine, str]:
    """An engine made from what a `start` entry says, with the events that brought it there, and its policy's name."""
    try:
        described = EngineStart.of_document(start.body)
    except InputError as error:
        raise InputError(f"journal entry {start.sequence}: {error}") from None
    if table is None and described.asked().space_sharing:
        table = table_named(described.profiles)
    return described.engine(table)[0], described.policy


def table_named(profiles: str | None) -> ThroughputTable | None:
    """The profiles of that name: the built-in catalog or a file."""
    if profiles is None:
        return None
    if profiles in {_BUILTIN, builtin().source}:
        return builtin()
    try:
        return read_table(profiles)
    except InputError:
        raise InputError(f"profiles: jobs shared by '{profiles}', which cannot be read; give the file") from None


def _entries(store: Store, after: int, kinds: Sequence[Kind]) -> Iterator[Entry]:
    while part := store.read(read_journal, after=after, limit=_PART, kinds=kinds):
        yield from part
        after = part[-1].sequence


def _steps(entries: Iterator[Entry]) -> Iterator[tuple[list[Entry], list[Entry]]]:
    """The events of a moment with the commands that they caused, which follow them.

    Events of the same moment that caused nothing are taken together with the next: it makes no difference.
    """
    events: list[Entry] = []
    said: list[Entry] = []
    for entry in entries:
        if entry.kind == "event":
            if events and (said or entry.body.get("time") != events[-1].body.get("time")):
                yield events, said
                events, said = [], []
            events.append(entry)
        elif events and entry.cause == events[-1].sequence:
            said.append(entry)
        else:
            raise InputError(f"journal entry {entry.sequence}: its cause, entry {entry.cause}, is not the event before")
    if events:
        yield events, said


def _handled_again(engine: TrainingEngine, entries: Sequence[Entry], said: Sequence[Entry]) -> str | None:
    """Hand an engine the events of a moment; what is wrong with the answer, if anything is."""
    happened = [entry.happened for entry in entries]
    now, last = happened[-1]
    before_it = f", with {len(happened) - 1} before it at that moment," if len(happened) > 1 else ""
    where = f"entry {entries[-1].sequence}: {_short(last)}{before_it}"
    before: list[Any] = [entry.message for entry in said]
    policy = engine.policy
    given_up = next((command.reason for command in before if isinstance(command, Undecided)), None)
    if given_up is not None:  # for want of time, which need not be so again
        engine.policy = _GivesUp(given_up)
    try:
        answer = engine.handle(now, [event for _, event in happened])
    except FairwayError as error:
        return f"{where} is refused now: {' '.join(str(error).split())}"
    finally:
        engine.policy = policy
    for number in range(max(len(before), len(answer))):
        then, again = (commands[number] if number < len(commands) else None for commands in (before, answer))
        if then is None or again is None or not _alike(command_document(then), command_document(again)):
            return f"{where} was answered by {_short(then)}, is now by {_short(again)}"
    return None


@dataclass(frozen=True, slots=True)
class _GivesUp(Policy):
    """Stands for a policy that has not decided."""

    name: ClassVar[str] = "undecided"
    reason: str

    def allocate(self, problem: Problem) -> Allocation:  # noqa: ARG002
        raise UndecidedError(self.reason)


def _short(message: Event | Command | None) -> str:
    text = "nothing" if message is None else str(message)
    return text if len(text) <= 200 else f"{text[:200]}…"


def _alike(then: Any, now: Any) -> bool:
    if isinstance(then, dict) and isinstance(now, dict):
        return then.keys() == now.keys() and all(_alike(value, now[name]) for name, value in then.items())
    if isinstance(then, list) and isinstance(now, list):
        return len(then) == len(now) and all(map(_alike, then, now))
    if isinstance(then, float) and isinstance(now, float):
        return math.isclose(then, now, rel_tol=SAME, abs_tol=SAME)
    return bool(then == now)


def decide_again(number: int, at: float, policy: str, body: Mapping[str, Any]) -> ReplayedDecision:
    """Make a decision again that was written as JSON."""
    jobs = 0
    try:
        problem = problem_of(body)
        jobs = len(problem)
        again = policy_of(str(body["policy"])).allocate(problem)
        difference = _difference(body["decided"], again)
    except (FairwayError, KeyError, TypeError, ValidationError) as error:
        why = " ".join(str(error).split()) if isinstance(error, FairwayError) else f"not a decision ({error!r})"
        return ReplayedDecision(number, at, policy, jobs, None, why)
    return ReplayedDecision(number, at, policy, jobs, difference)


def _difference(decided: Mapping[str, Any], again: Allocation) -> float:
    """The largest difference of a share, of a job or a pair on a type."""
    shares: dict[tuple[tuple[str, ...], str], float] = {}
    for members, row in zip(decided["jobs"], decided["shares"], strict=True):
        for name, share in zip(decided["types"], row, strict=True):
            shares[tuple(members), name] = shares.get((tuple(members), name), 0.0) - share
    ids = again.ids
    for first, second, row in zip(again.first.tolist(), again.second.tolist(), again.shares.tolist(), strict=True):
        members = (ids[first],) if second < 0 else (ids[first], ids[second])
        for name, share in zip(again.types, row, strict=True):
            shares[members, name] = shares.get((members, name), 0.0) + share
    return max(map(abs, shares.values()), default=0.0)
