"""What a client and a worker say to each other, whichever way the client waits.

A request that a worker has taken in is the client's to keep until its reply: should the worker die, the client asks
another one. So nothing that was accepted is lost, and the caller sees one answer, whatever ran twice.
"""

from __future__ import annotations

import json
import os
import random
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from fairway.errors import FairwayError, InputError
from fairway.live.serving.data import Parcel, SharedBuffers
from fairway.live.serving.settings import ServingSettings
from fairway.live.serving.wire import WireError

PATIENCE_SECONDS = 30.0
"""How long a client looks for a worker before it gives up; one that died is back after a second or two."""

MOST_LOSSES = 10
"""A request that has taken so many workers with it is not given to another one."""


class RequestFailedError(FairwayError):
    """A request has no result. `code` says why, for programs.

    `failed`: a stage raised or a model could not be loaded. `late`: its time was over. `hopeless`: it would have been.
    `busy`: too many requests are under way. `unplaceable`: no worker can run one of its stages.
    """

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class NobodyAnswersError(FairwayError):
    """No worker of the application can be reached."""


class Asked(NamedTuple):
    """What a client asks for: a workflow, by number; `name` is the client's own for this request.

    `seconds` is how long it will wait. `trace` is a W3C `traceparent`, if the request is part of a trace.
    """

    name: int
    workflow: int
    parcel: Parcel
    seconds: float | None = None
    trace: str | None = None

    def message(self) -> tuple[Any, ...]:
        """As it goes over a socket."""
        return ("ask", self.name, self.workflow, tuple(self.parcel), self.seconds, self.trace)

    @classmethod
    def checked(cls, content: Sequence[Any], workflows: int) -> Asked:
        """What came over a socket; refuses what no client of ours would say."""
        name, workflow, parcel, seconds, trace = content
        if (
            type(name) is type(workflow) is int
            and 0 <= workflow < workflows
            and type(parcel) is tuple
            and [type(part) for part in parcel] == [bytes, tuple]
            and all(isinstance(buffer, bytes | str) for buffer in parcel[1])
            and (seconds is None or isinstance(seconds, float | int))
            and (trace is None or isinstance(trace, str))
        ):
            return cls(name, workflow, Parcel(*parcel), seconds, trace)
        raise WireError("a request that is none")


class Deadline:
    """How long a client still waits."""

    __slots__ = ("_end",)

    def __init__(self, seconds: float | None) -> None:
        if seconds is not None and not seconds > 0:
            raise InputError(
                f"deadline: {seconds} s from now given, which is not in the future; give more or leave it out"
            )
        self._end = None if seconds is None else time.monotonic() + seconds

    def left(self) -> float | None:
        """Seconds; None without end. Raises when there are none."""
        if self._end is None:
            return None
        left = self._end - time.monotonic()
        if left <= 0:
            raise RequestFailedError("late", "its time was over before its result was there")
        return left


def pause_after(losses: int) -> float:
    """Seconds before a request is given to another one: a process that dies may take connections for a moment still."""
    return 0.02 * losses


def lost(losses: int) -> RequestFailedError:
    """What a client says of a request that costs workers their lives."""
    return RequestFailedError("failed", f"the worker that took it was lost {losses} times, so it is not tried again")


@dataclass(frozen=True, slots=True)
class Site:
    """Where the workers of an application are, and how to hand values to them."""

    settings: ServingSettings
    workflows: tuple[str, ...]
    buffers: SharedBuffers

    @classmethod
    def find(cls, directory: Path) -> Site:
        """The application that is served from a directory."""
        try:
            settings = ServingSettings.read(directory / "settings.json")
            names = tuple(json.loads((directory / "workflows.json").read_text()))
        except (OSError, ValueError):
            raise InputError(f"{directory}: nothing is served from here; start it with 'fairway serve'") from None
        prefix = f"c{os.getpid()}-{uuid.uuid4().hex[:8]}-"
        return cls(settings, names, SharedBuffers(settings.memory_directory, prefix))

    def number(self, workflow: str | None) -> int:
        """The number of a workflow; the only one may be left out."""
        if workflow is None and len(self.workflows) == 1:
            return 0
        if workflow not in self.workflows:
            raise InputError(f"workflow: {workflow!r} given, expected one of {', '.join(self.workflows)}")
        return self.workflows.index(workflow)

    def some_order(self) -> list[int]:
        """The numbers of those who take requests in an order of chance, so that clients spread over them."""
        doors = list(self.settings.doors)
        random.shuffle(doors)
        return doors

    def opened(self, parcel: Any) -> Any:
        """The value of a parcel that a worker sent; its files are no longer needed."""
        received = Parcel(*parcel)
        value = self.buffers.unpack(received)
        self.buffers.discard(received)
        return value

    def unheard(self, kind: str, content: Sequence[Any]) -> None:
        """A worker says something of a request that nobody waits for any more: remove what came with it."""
        if kind in {"reply", "chunk"}:
            self.buffers.discard(Parcel(*content[-1]))
