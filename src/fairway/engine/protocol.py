"""What every engine is: a state machine that sees no clock, no socket, no disk and no thread.

`handle(now, events)` takes in all that has happened at one moment, in order, and returns what is to be done; whoever
drives an engine, in virtual or in real time, needs nothing else. Every event names its `cause`: the thing in the world
that it comes from, such as "request 12" or "lease 3", under which a story finds it. Something that cannot have happened
raises a `TransitionError`, which carries the story of the thing that it happened to. `validate` checks what must hold
between two events; tests call it after each of them.

In a test, `like` stands for a command of which only some fields matter:

    assert engine.handle(now, [event]) == [like(Grant, jobs=("a",)), like(BeginRound)]
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, Generic, Protocol, TypeVar

from fairway.errors import FairwayError

Event_contra = TypeVar("Event_contra", contravariant=True)
Command_co = TypeVar("Command_co", covariant=True)
EventT = TypeVar("EventT", bound="Caused")

STORY_EVENTS = 10_000
"""Of how many of the last events a story is told."""


class Caused(Protocol):
    """An event: it knows what it comes from."""

    @property
    def cause(self) -> str:
        """The thing that this happened to, in a word and a number: "request 12"."""
        ...


class Engine(Protocol[Event_contra, Command_co]):
    """What drivers need of an engine, and tests."""

    def handle(self, now: float, events: Sequence[Event_contra]) -> Sequence[Command_co]:
        """Take in all that has happened at one moment, in this order, and say what is to be done now."""
        ...

    def story(self, cause: str) -> str:
        """The last events of one cause, a line each, the oldest first."""
        ...

    def validate(self) -> None:
        """Raise an `InvariantError` if the engine contradicts itself."""
        ...


class TransitionError(FairwayError):
    """Something happened that cannot have happened, such as a job finishing twice; carries the story of its cause."""


class InvariantError(FairwayError):
    """An engine contradicts itself: the fault is in the engine, not in what it was given."""


class Story(Generic[EventT]):
    """The last events of an engine with their times, from which the story of one cause can be told."""

    __slots__ = ("_past", "remember")

    def __init__(self, events: int = STORY_EVENTS) -> None:
        self._past: deque[tuple[float, EventT]] = deque(maxlen=events)
        self.remember = self._past.append
        """Takes the time of an event and the event, as a pair; called once for each event, so it is a plain append."""

    def of(self, cause: str) -> str:
        """The events of a cause, a line each, and those that say by `concerns` that they are about it as well."""
        told = [
            f"  {now:.6f} s: {event}"
            for now, event in self._past
            if event.cause == cause or cause in getattr(event, "concerns", ())
        ]
        return "\n".join(told) if told else f"  nothing is remembered of {cause}"

    def error(self, cause: str, what: str) -> TransitionError:
        """What cannot have happened, with the story of its cause."""
        return TransitionError(f"{what}:\n{self.of(cause)}")


class like:  # noqa: N801 - it reads as a word of the test that it stands in
    """Equal to every event or command of a kind whose named fields have these values."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, kind: type, **fields: Any) -> None:
        unknown = [name for name in fields if name not in _field_names(kind)]
        if unknown:
            raise TypeError(f"{kind.__name__} has no field '{unknown[0]}', but {', '.join(_field_names(kind))}")
        self._kind, self._fields = kind, fields

    def __eq__(self, other: object) -> bool:
        return type(other) is self._kind and all(getattr(other, name) == value for name, value in self._fields.items())

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self._fields.items())
        return f"like({self._kind.__name__}{', ' if fields else ''}{fields})"


def _field_names(kind: type) -> tuple[str, ...]:
    names: tuple[str, ...] | None = getattr(kind, "_fields", None)
    return names if names is not None else tuple(getattr(kind, "__dataclass_fields__", ()))
