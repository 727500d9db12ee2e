"""What a controller needs of whatever runs its jobs: the processes of this machine, or those of many.

A backend is told what should run where, and reports what happens. It may go away and come back at any time; when it is
there again it reports all that it knows, and commands can be given twice without harm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from fairway.errors import FairwayError
from fairway.live.local.agent_messages import Command


@dataclass(frozen=True, slots=True)
class Connected:
    """The backend is there (again): its accelerators, and every run that it knows."""

    status: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Gone:
    """The backend cannot be reached, and why; whether its runs go on is not known."""

    why: str


@dataclass(frozen=True, slots=True)
class Superseded:
    """Another controller has taken over; this one must not give commands any more."""

    why: str


@dataclass(frozen=True, slots=True)
class Happened:
    """Something happened to a run; see `agent_messages` for the forms that it takes."""

    event: Mapping[str, Any]


Report: TypeAlias = Connected | Gone | Superseded | Happened


class BackendGoneError(FairwayError):
    """The backend cannot be reached; what was asked may have been done or not, and can be asked again."""


class SupersededError(FairwayError):
    """Another controller has taken over."""


class Backend(Protocol):
    """Runs jobs."""

    async def run(self, epoch: int, report: Callable[[Report], None]) -> None:
        """Keep in touch with what runs the jobs, as the controller of this epoch, until cancelled or superseded."""

    async def ask(self, command: Command) -> Mapping[str, Any]:
        """Give a command and wait for its answer; raises `RefusedError`, `BackendGoneError` or `SupersededError`."""

    async def shut_down(self) -> None:
        """Let what runs the jobs end; jobs that still run go on by themselves."""
