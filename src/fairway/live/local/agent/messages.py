"""What passes between a local backend and its agent: the commands and reports of every backend, and a few of its own.

A request is `{"id": 7, "command": "start-run", …}`. The answer is `{"reply": 7, "ok": true, "answer": …}`, or
`{"reply": 7, "ok": false, "code": …, "error": …}`. Between answers, reports come by themselves: `{"report": …}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, TypeAlias

from pydantic import ConfigDict, Field, TypeAdapter

from fairway.live.backend.answers import CommandAnswer
from fairway.live.backend.codec import COMMAND_KINDS, Codec, read_as
from fairway.live.backend.commands import CLOSED, RunCommand
from fairway.live.backend.status import BackendStatus

SUPERSEDED = "superseded"
"""The code of a refusal: a newer controller gives the commands."""


@dataclass(frozen=True, slots=True)
class Hello:
    """The first message of a connection.

    `epoch` grows with every start of the controller. A connection with an older one than the agent has seen is refused,
    and those of older epochs are closed. Without an epoch, a connection may only look.
    """

    __pydantic_config__: ClassVar[ConfigDict] = CLOSED

    epoch: Annotated[int, Field(ge=0)] | None = None


@dataclass(frozen=True, slots=True)
class AskStatus:
    """Tell the status."""

    __pydantic_config__: ClassVar[ConfigDict] = CLOSED


@dataclass(frozen=True, slots=True)
class Ping:
    """Give a sign of life."""

    __pydantic_config__: ClassVar[ConfigDict] = CLOSED


@dataclass(frozen=True, slots=True)
class Drain:
    """Take no new runs, or take them again; what runs goes on."""

    __pydantic_config__: ClassVar[ConfigDict] = CLOSED

    on: bool = True


@dataclass(frozen=True, slots=True)
class Shutdown:
    """The agent ends; jobs run on, and the next agent of the same directory adopts them."""

    __pydantic_config__: ClassVar[ConfigDict] = CLOSED


@dataclass(frozen=True, slots=True)
class Greeting:
    """The answer to `Hello`: how fast emulated accelerators run, and how things stand."""

    time_scale: float
    status: BackendStatus


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """The answer where there is nothing to say but that it is done."""


AgentRequest: TypeAlias = RunCommand | Hello | AskStatus | Ping | Drain | Shutdown
AgentReply: TypeAlias = CommandAnswer | Greeting | BackendStatus | Acknowledged

REQUESTS: Codec[AgentRequest] = Codec(
    "command",
    {"hello": Hello, "ask-status": AskStatus, "drain": Drain, "shutdown": Shutdown, **COMMAND_KINDS, "ping": Ping},
)
_REPLIES: dict[type, TypeAdapter[Any]] = {
    kind: TypeAdapter(kind) for kind in (CommandAnswer, Greeting, BackendStatus, Acknowledged)
}
_REPLY_TO: dict[type, type] = {
    Hello: Greeting,
    AskStatus: BackendStatus,
    Ping: Acknowledged,
    Drain: Acknowledged,
    Shutdown: Acknowledged,
}


def reply_document(reply: AgentReply) -> Any:
    """An answer as an object for JSON."""
    return _REPLIES[type(reply)].dump_python(reply, mode="json")


def read_reply(request: AgentRequest, document: Mapping[str, Any]) -> Any:
    """The answer in an object, of the type that belongs to what was asked."""
    return read_as(_REPLIES[_REPLY_TO.get(type(request), CommandAnswer)], document, "answer")
