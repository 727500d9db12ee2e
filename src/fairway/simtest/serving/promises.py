"""What a served application has promised its clients, checked against what came of a history.

This knows nothing of workers, engines or messages beyond what a client sees, and what was done to the system: which
processes died when, and which other faults took effect. The promises are those of docs/serve.md, "What happens when
something goes wrong": each request has one outcome, an answer is the right one, and a request that does no harm fails
only for a reason that stands there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

MOST_SECONDS = 75.0
"""So long after the last fault at the latest, or after it was asked, a request has its outcome."""

_HARM_SECONDS = 3.0
"""So much longer for each request that does harm: it may hold a worker for its limit, and the worker may start anew."""

_KILLED = "-9"
_KILLED_DEATHS, _OWN_DEATHS, _SET_ASIDE_DEATHS = 3, 2, 2
_LOAD_TRIES = 3
_STOPPING = ("pause", "hang", "harm-hang", "harm-keep", "harm-load-hang", "harm-slow", "harm-load-slow")
"""What keeps a worker from going on, so that what runs there takes longer than it may."""
_REMOVING = ("restart",)
"""What takes values away that requests need."""


@dataclass(slots=True)
class Asked:
    """A request: `expected` is the right answer, and `harm` what it does instead of being answered, if it does any.

    `left` says that its client did not wait for the outcome.
    """

    number: int
    workflow: str
    at: float
    expected: Any
    deadline: float | None = None
    harm: str = ""
    left: bool = False
    ended_at: float | None = None
    answer: Any = None
    code: str | None = None
    reason: str = ""

    def __str__(self) -> str:
        kind = f", which does '{self.harm}'," if self.harm else ""
        return f"request {self.number} for {self.workflow}{kind} asked at {self.at:.4f} s"


@dataclass(slots=True)
class Record:
    """What a simulation has seen: requests by number, deaths of workers with their status, and all other faults."""

    most_open: int = 1000
    requests: dict[int, Asked] = field(default_factory=dict)
    deaths: list[tuple[float, int, str]] = field(default_factory=list)
    faults: list[tuple[float, str]] = field(default_factory=list)
    said: dict[tuple[str, str, Any], list[int]] = field(default_factory=dict)
    last_fault_at: float = 0.0
    all_gone_at: list[float] = field(default_factory=list)

    @property
    def most_seconds(self) -> float:
        """How long after the last fault a request may take to its outcome, with so many that do harm."""
        return MOST_SECONDS + _HARM_SECONDS * sum(bool(asked.harm) for asked in self.requests.values())

    def heard(self, worker: str, client: str, name: Any, *, ask: bool) -> None:
        """A client has asked, or a worker has said the last word about a request."""
        counts = self.said.setdefault((worker, client, name), [0, 0])
        counts[0 if ask else 1] += 1


def broken(record: Record) -> Iterator[str]:
    """The promises that a history has broken, a sentence each."""
    for asked in record.requests.values():
        yield from _outcome(record, asked)
    for (worker, client, name), (asks, ends) in record.said.items():
        if ends > asks:
            yield f"{worker} has ended request {name} of {client} {ends} times, which was asked {asks} times"


def _outcome(record: Record, asked: Asked) -> Iterator[str]:
    if asked.left:
        return
    if asked.ended_at is None:
        yield f"{asked} has no outcome"
        return
    late = asked.ended_at - max(record.last_fault_at, asked.at)
    if late > record.most_seconds:
        yield f"{asked} has its outcome {late:.1f} s after the last fault"
    if asked.code is None:
        if asked.harm not in {"", "slow"}:
            yield f"{asked} was answered"
        elif asked.answer != asked.expected:
            yield f"{asked} was answered by {str(asked.answer)[:60]}, expected {str(asked.expected)[:60]}"
    elif not asked.harm and not _may_fail(record, asked, asked.ended_at):
        why = f"{asked.code}: {asked.reason[:200]}"
        yield f"{asked} failed at {asked.ended_at:.4f} s without need ({why})"


def _may_fail(record: Record, asked: Asked, ended_at: float) -> bool:
    """Whether the documentation allows that a request failed which does no harm."""
    during = [kind for at, kind in record.faults if asked.at - 1.0 <= at <= ended_at]
    before = [kind for at, kind in record.faults if at <= ended_at]
    statuses = [status for at, _, status in record.deaths if asked.at <= at <= ended_at]
    dead_before = [status for at, _, status in record.deaths if at <= ended_at]
    match asked.code:
        case "busy":
            return record.most_open < len(record.requests)
        case "late":
            return asked.deadline is not None and ended_at >= asked.at + asked.deadline - 1e-9
        case "hopeless" | "impossible" | "shed":
            return asked.deadline is not None
        case "failed":
            needed = _KILLED_DEATHS if all(status == _KILLED for status in statuses) else _OWN_DEATHS
            return (
                len(statuses) >= needed
                or any(kind in _STOPPING or kind in _REMOVING for kind in during)
                or sum(kind.startswith("harm-load-raise") for kind in before) >= _LOAD_TRIES
            )
        case "unplaceable":
            all_gone = any(asked.at <= at <= ended_at for at in record.all_gone_at)
            return len(dead_before) >= _SET_ASIDE_DEATHS or all_gone
    return False
