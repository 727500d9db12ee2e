"""What a backend reports by itself: that it is there or away, and what happens to accelerators and runs.

A report may get lost with a connection, or come late or twice; the status has everything that still matters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from fairway.live.backend.accelerators import Accelerator
from fairway.live.backend.status import BackendStatus, RunOutcome


@dataclass(frozen=True, slots=True)
class Connected:
    """The backend is there (again): all that it knows."""

    status: BackendStatus


@dataclass(frozen=True, slots=True)
class Disconnected:
    """The backend cannot be reached, and why; whether its runs go on is not known."""

    why: str


@dataclass(frozen=True, slots=True)
class Superseded:
    """Another controller has taken over; this one must not give commands any more."""

    why: str


@dataclass(frozen=True, slots=True)
class AcceleratorsChanged:
    """Accelerators were found or lost; these are all that there are now."""

    accelerators: tuple[Accelerator, ...]


@dataclass(frozen=True, slots=True)
class RunStarted:
    """The processes of a run run since `started`, on the machine's clock."""

    lease: int
    job: str
    time: float
    started: float


@dataclass(frozen=True, slots=True)
class RunProgressed:
    """How far a run is and how fast it goes, summed over its ranks; the rate is None until it was measured."""

    lease: int
    job: str
    time: float
    steps: int
    steps_per_second: float | None = None
    checkpoint_step: int | None = None


@dataclass(frozen=True, slots=True)
class CheckpointSaved:
    """All ranks of a run have saved a checkpoint after so many steps; the slowest took so many seconds."""

    lease: int
    job: str
    time: float
    checkpoint_step: int
    seconds: float


@dataclass(frozen=True, slots=True)
class RunEnded:
    """A run is over, and its accelerators are free."""

    lease: int
    job: str
    time: float
    outcome: RunOutcome


RunReport: TypeAlias = RunStarted | RunProgressed | CheckpointSaved | RunEnded
BackendReport: TypeAlias = Connected | Disconnected | Superseded | AcceleratorsChanged | RunReport
