"""What a controller can ask of an agent, and what it gets back.

A request is `{"id": 7, "command": "start", ...}` with the fields of one of the classes here; the answer is
`{"reply": 7, "ok": true, ...}`, or `{"reply": 7, "ok": false, "code": ..., "error": ...}`. Between answers, events come
by themselves: `{"event": ..., "lease": ..., "job": ..., "time": ...}` with the name `started`, `steps`, `checkpointed`,
`exited` or `failed-to-start`. An event may get lost with its connection; `status` has everything that still matters.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from fairway.errors import FairwayError, InputError

_CLOSED = ConfigDict(extra="forbid", allow_inf_nan=False)

JobName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]
LeaseNumber = Annotated[int, Field(ge=1)]
Worker = Annotated[int, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]


class RefusedError(FairwayError):
    """The agent does not do what it was asked; `code` says why, for programs."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True, config=_CLOSED)
class Hello:
    """The first message of a connection.

    `epoch` grows with every start of the controller. Whoever has an older one than the agent has seen is refused, and
    connections of older ones are closed. Without an epoch, a connection may only look.
    """

    epoch: Annotated[int, Field(ge=0)] | None = None


@dataclass(frozen=True, slots=True, config=_CLOSED)
class Start:
    """Run a job on these workers under this lease; the second of two jobs that share has the same lease.

    Asked again for the same lease, the agent says how it stands. If former holders of the workers are ending, the run
    waits for them. `steps` and `steps_per_second` are those of the whole gang; the latter is the profile's rate, to
    which an emulated accelerator slows the job down.
    """

    lease: LeaseNumber
    job: JobName
    run: Annotated[str, Field(min_length=1)] | Annotated[list[str], Field(min_length=1)]
    accelerator: Annotated[str, Field(min_length=1)]
    workers: Annotated[list[Worker], Field(min_length=1)]
    attempt: Annotated[int, Field(ge=1)] = 1
    setup: str | None = None
    workdir: str | None = None
    envs: Mapping[str, str] = Field(default_factory=dict)
    steps: Annotated[int, Field(ge=1)] | None = None
    steps_per_second: Positive | None = None
    checkpoint_directory: str | None = None
    checkpoint_every_seconds: Positive | None = None
    until: float | None = None
    expires: bool = False
    preemptible: bool = True
    checkpoint_seconds: NotNegative = 60.0
    grace_seconds: NotNegative = 10.0


@dataclass(frozen=True, slots=True, config=_CLOSED)
class End:
    """End a lease of a job: with `save` after a checkpoint (a preemption), without at once (it is not wanted any more).

    A job that is not preemptible is not preempted.
    """

    lease: LeaseNumber
    job: JobName
    save: bool = True


@dataclass(frozen=True, slots=True, config=_CLOSED)
class Extend:
    """These leases, or all that are held, run on until then, without a stop."""

    until: float
    leases: list[LeaseNumber] | None = None


@dataclass(frozen=True, slots=True, config=_CLOSED)
class HandOver:
    """A job goes on under a new lease on the same workers, without a stop (the one it shared with has left)."""

    job: JobName
    old: LeaseNumber
    lease: LeaseNumber
    until: float | None = None
    steps_per_second: Positive | None = None


@dataclass(frozen=True, slots=True, config=_CLOSED)
class Forget:
    """The controller has written down how a run ended; the agent need not remember it, except not to run it again."""

    lease: LeaseNumber
    job: JobName


@dataclass(frozen=True, slots=True, config=_CLOSED)
class Retire:
    """The job will never come back under any lease."""

    job: JobName


@dataclass(frozen=True, slots=True, config=_CLOSED)
class Drain:
    """Take no new runs, or take them again; what runs goes on."""

    on: bool = True


@dataclass(frozen=True, slots=True, config=_CLOSED)
class Status:
    """Tell all: the accelerators, and every run that was not forgotten."""


@dataclass(frozen=True, slots=True, config=_CLOSED)
class Shutdown:
    """The agent ends; jobs run on, and the next agent of the same directory adopts them."""


Command: TypeAlias = Hello | Start | End | Extend | HandOver | Forget | Retire | Drain | Status | Shutdown

NAMES: dict[type, str] = {
    Hello: "hello",
    Start: "start",
    End: "end",
    Extend: "extend",
    HandOver: "hand-over",
    Forget: "forget",
    Retire: "retire",
    Drain: "drain",
    Status: "status",
    Shutdown: "shutdown",
}
_READERS: dict[str, TypeAdapter[Any]] = {name: TypeAdapter(kind) for kind, name in NAMES.items()}


def read_command(message: Mapping[str, Any]) -> Command:
    """The command in a message; one line on what is wrong with it otherwise."""
    name = message.get("command")
    if not isinstance(name, str) or name not in _READERS:
        raise InputError(f"command: {name!r} given, expected one of {', '.join(_READERS)}")
    fields = {key: value for key, value in message.items() if key not in {"id", "command"}}
    try:
        command: Command = _READERS[name].validate_json(json.dumps(fields), strict=True)
    except ValidationError as failure:
        problem = failure.errors(include_url=False)[0]
        where = ".".join(str(part) for part in (name, *problem["loc"]))
        raise InputError(f"{where}: {problem['msg'][0].lower()}{problem['msg'][1:]}") from None
    return command
