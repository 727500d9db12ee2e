"""What a client does, as steps: to send, to wait, to read on, to give a result.

The flows in `calls`, `patience` and `streams` are generators of such steps and hold all the logic; they open no
connection and do not wait themselves. `Client` and `AsyncClient` carry the steps out, each in its own way, and send
back what came of it.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request.

    `repeatable` says that sending it twice does no harm, so that it may be sent again when it is not known whether it
    arrived. `silence_seconds` is how long the server may say nothing.
    """

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    repeatable: bool = True
    silence_seconds: float = 30.0


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer; of a stream, its head. `kind` is its media type."""

    status: int
    kind: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """Why there is none.

    `arrived` says that the request may have reached the server all the same. Where to try again would not help, as with
    a certificate that cannot be trusted, `remedy` says what would.
    """

    why: str
    arrived: bool
    remedy: str | None = None


@dataclass(frozen=True, slots=True)
class Send:
    """Send a request and bring its whole answer: an `Answer`, or `NoAnswer`."""

    request: Request


@dataclass(frozen=True, slots=True)
class Open:
    """The same, but only begin to read if the answer is good: `Read` brings its body piece by piece."""

    request: Request


@dataclass(frozen=True, slots=True)
class Read:
    """Bring the next piece of what was opened: bytes, None at the end, or `NoAnswer` if it broke off."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait; `why` is for the user, who may wonder."""

    seconds: float
    why: str = ""


@dataclass(frozen=True, slots=True)
class Give(Generic[T_co]):
    """Hand a result to the caller."""

    value: T_co


Step: TypeAlias = Send | Open | Read | Pause | Give[T]
Steps: TypeAlias = Generator[Step[T], Any, None]
"""A flow that gives results of one type."""

Part: TypeAlias = Generator[Send | Open | Read | Pause, Any, T]
"""A part of flows, which gives nothing itself but returns something to the flow."""
