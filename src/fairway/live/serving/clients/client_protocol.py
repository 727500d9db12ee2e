"""What a client and a worker say to each other, whichever way the client waits.

A request that a worker has taken in is the client's to keep until its reply: should the worker die, the client asks
another one. So nothing that was accepted is lost, and the caller sees one answer, whatever ran twice.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from fairway.errors import FairwayError, InputError
from fairway.live.serving.seams.backend import Seams, backend_of
from fairway.live.serving.seams.transport import WireError
from fairway.live.serving.seams.values import Parcel, Values, client_owner
from fairway.live.serving.supervise.settings import ServingSettings

PATIENCE_SECONDS = 30.0
"""How long a client looks for a worker before it gives up; one that died is back after a second or two."""

MOST_LOSSES = 10
"""A request that has taken so many workers with it is not given to another one."""


class RequestFailedError(FairwayError):
    """A request has no result. `code` says why, for programs.

    `failed`: a stage raised or a model could not be loaded. `late`: its time was over. `impossible`: it would have
    been, however little else there is to do. `hopeless`: it would have been, with what waited when it came. `shed`: it
    could not be in time any more when it had its turn. `busy`: too many requests are under way. `unplaceable`: no
    worker can run one of its stages. Where the load is the reason, `retry_seconds` is how long what waited then takes.
    """

    def __init__(self, code: str, reason: str, retry_seconds: float | None = None) -> None:
        super().__init__(reason)
        self.code = code
        self.retry_seconds = retry_seconds


class NoWorkerAnswersError(FairwayError):
    """No worker of the application can be reached."""


class ClientRequest(NamedTuple):
    """What a client asks a worker for: a workflow, by number; `name` is the client's own for this request.

    `parcel` has the inputs. `seconds` is how long the client will wait. `trace` is a W3C `traceparent`, if the request
    is part of a trace. `lost` is the worker that was lost when this was last asked, which may have died of it.
    """

    name: int
    workflow: int
    parcel: Parcel
    seconds: float | None = None
    trace: str | None = None
    lost: int | None = None

    def message(self) -> tuple[Any, ...]:
        """The request as a message."""
        said = (self.name, self.workflow, tuple(self.parcel), self.seconds, self.trace)
        return ("ask", *said) if self.lost is None else ("ask-again", *said, self.lost)

    @classmethod
    def checked(cls, content: Sequence[Any], workflows: int) -> ClientRequest:
        """The request that came as a message; refuses what no client of ours would send."""
        name, workflow, parcel, seconds, trace, *rest = content
        lost = rest[0] if rest else None
        if (
            type(name) is type(workflow) is int
            and 0 <= workflow < workflows
            and type(parcel) is tuple
            and [type(part) for part in parcel] == [bytes, tuple]
            and all(isinstance(buffer, bytes | str) for buffer in parcel[1])
            and (seconds is None or isinstance(seconds, float | int))
            and (trace is None or isinstance(trace, str))
            and (lost is None or type(lost) is int)
        ):
            return cls(name, workflow, Parcel(*parcel), seconds, trace, lost)
        raise WireError("a request that is none")


class Deadline:
    """How long a client still waits, by this clock."""

    __slots__ = ("_end", "_now")

    def __init__(self, seconds: float | None, now: Callable[[], float]) -> None:
        if seconds is not None and not seconds > 0:
            raise InputError(
                f"deadline: {seconds} s from now given, which is not in the future; give more or leave it out"
            )
        self._now = now
        self._end = None if seconds is None else now() + seconds

    def left(self) -> float | None:
        """Seconds; None without end. Raises when there are none."""
        if self._end is None:
            return None
        left = self._end - self._now()
        if left <= 0:
            raise RequestFailedError("late", "its time was over before its result was there")
        return left


def pause_after(losses: int) -> float:
    """Seconds before another worker is asked: a process that dies may take connections for a moment still."""
    return 0.02 * losses


def lost(losses: int) -> RequestFailedError:
    """What a client says of a request that costs workers their lives."""
    return RequestFailedError("failed", f"the worker that took it was lost {losses} times, so it is not tried again")


@dataclass(frozen=True, slots=True)
class Site:
    """How one client reaches the workers of an application, and hands values to them."""

    settings: ServingSettings
    workflows: tuple[str, ...]
    seams: Seams
    values: Values
    draws: random.Random

    @classmethod
    def find(cls, directory: Path) -> Site:
        """The application that is served from a directory."""
        try:
            settings = ServingSettings.read(directory / "settings.json")
            names = tuple(json.loads((directory / "workflows.json").read_text()))
        except (OSError, ValueError):
            raise InputError(f"{directory}: nothing is served from here; start it with 'fairway serve'") from None
        return cls.of(settings, names, backend_of(settings))

    @classmethod
    def of(
        cls, settings: ServingSettings, workflows: tuple[str, ...], seams: Seams, draws: random.Random | None = None
    ) -> Site:
        """The application over any seams, for a new client, whose chances come from `draws`."""
        draws = random.Random() if draws is None else draws
        owner = client_owner(os.getpid(), f"{draws.getrandbits(32):08x}")
        return cls(settings, workflows, seams, seams.values(owner), draws)

    def number(self, workflow: str | None) -> int:
        """The number of a workflow; the only one may be left out."""
        if workflow is None and len(self.workflows) == 1:
            return 0
        if workflow not in self.workflows:
            raise InputError(f"workflow: {workflow!r} given, expected one of {', '.join(self.workflows)}")
        return self.workflows.index(workflow)

    def some_order(self) -> list[int]:
        """The numbers of the processes that take requests in an order of chance, so that clients spread over them.

        Those that are near come first.
        """
        doors = list(self.settings.doors)
        self.draws.shuffle(doors)
        return sorted(doors, key=lambda number: not self.seams.is_near(number))

    def opened(self, parcel: Any) -> Any:
        """The value of a parcel that a worker sent; what is kept for it is no longer needed."""
        received = Parcel(*parcel)
        value = self.values.open(received).value()
        self.values.discard(received)
        return value

    def unheard(self, kind: str, content: Sequence[Any]) -> None:
        """Let go what came with words about a request that this client does not wait for any more."""
        if kind in {"reply", "chunk"}:
            self.values.discard(Parcel(*content[-1]))
