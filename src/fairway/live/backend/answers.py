"""What a backend answers to a command, and the ways in which it does not do what it was asked."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from fairway.errors import FairwayError
from fairway.live.backend.status import RunStatus


@dataclass(frozen=True, slots=True)
class CommandAnswer:
    """The command was taken.

    `accepted`: it is carried out. `known`: it was given before, and changes nothing. `stale`: it is about an older
    lease than the job has held, of which `newest` is the last, and changes nothing. `run` is how the run stands, and
    `leases` those that were prolonged.
    """

    result: Literal["accepted", "known", "stale"]
    run: RunStatus | None = None
    newest: int | None = None
    leases: tuple[int, ...] = ()


class Refusal(StrEnum):
    """Why a backend does not do what it was asked."""

    BAD_INPUT = "bad-input"
    """The command contradicts itself; it is refused however often it is given."""
    CANNOT_START = "cannot-start"
    """What the program names cannot be used, such as a checkpoint directory that cannot be written."""
    CANNOT_PLACE = "cannot-place"
    """There are no such accelerators, or they cannot run this gang together."""
    BUSY = "busy"
    """A run that was not asked to end holds the accelerators, or is of the same job."""
    DRAINING = "draining"
    """No new runs are taken at the moment."""
    NOT_PREEMPTIBLE = "not-preemptible"
    """The job is not stopped for the sake of others; it can only be ended without saving."""
    ENDING = "ending"
    """The run was asked to end, and cannot go on under another lease."""
    ACTIVE = "active"
    """The run has not ended, so it cannot be forgotten."""
    SYSTEM = "system"
    """The machine failed, for example for want of disk space; the command can be given again."""


class RefusedError(FairwayError):
    """The backend does not do what it was asked; `code` says why: a `Refusal`, or a word of the backend's own."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class BackendGoneError(FairwayError):
    """The backend cannot be reached; what was asked may have been done or not, and can be asked again."""


class SupersededError(FairwayError):
    """Another controller has taken over."""
