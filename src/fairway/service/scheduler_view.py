"""What the service has to know of the scheduler that it speaks for; `live.training.controller.Controller` is one.

Every method may be called from any thread. Times of the engine are seconds on its own clock; `wall` turns them into
seconds since 1970.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from fairway.cluster import Cluster
from fairway.engine.training.engine import TrainingEngine
from fairway.jobs.description import JobDescription
from fairway.live.backend.accelerators import Accelerator
from fairway.live.backend.logs import LogBlock
from fairway.live.training.admission.priorities import PriorityClass
from fairway.profiles.tables import ThroughputTable
from fairway.store import Store

T = TypeVar("T")


class SettingsView(Protocol):
    """How the scheduler was started."""

    @property
    def directory(self) -> Path:
        """Where its files are."""
        ...

    @property
    def policy(self) -> str:
        """The policy's name, with its options."""
        ...

    @property
    def round_seconds(self) -> float:
        """How long a round lasts on the engine's clock."""
        ...

    @property
    def time_scale(self) -> float:
        """How many of the engine's seconds pass in one of ours."""
        ...

    def priority_of(self, spec: JobDescription, team: str | None, /) -> PriorityClass:
        """The priority class of a job; refuses one that there is not, or that its team may not use."""
        ...


class StatisticsView(Protocol):
    """What happened since the scheduler started."""

    @property
    def rounds(self) -> int:
        """Rounds begun."""
        ...

    @property
    def solves(self) -> int:
        """Decisions of the policy."""
        ...

    @property
    def decision_seconds(self) -> Sequence[float]:
        """How long the last decisions took, the newest last."""
        ...

    @property
    def preemptions_total(self) -> int:
        """Jobs stopped for the sake of others."""
        ...

    @property
    def restarts_total(self) -> int:
        """Starts of jobs that had run before."""
        ...

    @property
    def agent_restarts_total(self) -> int:
        """Times that an agent had to be started again."""
        ...

    @property
    def leases_granted_total(self) -> int:
        """Leases granted."""
        ...

    @property
    def started_at(self) -> float:
        """When the scheduler started, in seconds since 1970."""
        ...

    @property
    def round_ends_at(self) -> float | None:
        """When the round ends on the engine's clock; None while there is none."""
        ...


class SchedulerView(Protocol):
    """A scheduler of real jobs, as far as the service has to do with it."""

    @property
    def store(self) -> Store:
        """Where everything is kept."""
        ...

    @property
    def settings(self) -> SettingsView:
        """How it was started."""
        ...

    @property
    def cluster(self) -> Cluster:
        """What jobs can ask for, with drained and lost workers."""
        ...

    @property
    def table(self) -> ThroughputTable | None:
        """How fast known types of jobs run."""
        ...

    @property
    def emulated(self) -> bool:
        """Whether the accelerators are emulated."""
        ...

    @property
    def caveats(self) -> tuple[str, ...]:
        """What is not enforced or not protected here, a sentence each."""
        ...

    @property
    def healthy(self) -> bool:
        """Whether it runs and its agent answers."""
        ...

    @property
    def trouble(self) -> str | None:
        """Why it is not healthy; None while it is."""
        ...

    def notify(self, cancelled: str | None = None) -> None:
        """Say that jobs were submitted to the store, or that one of them is to be cancelled."""
        ...

    def check(self, spec: JobDescription, team: str | None = None, /) -> None:
        """Refuse a job that could never be scheduled or run here, by an `InputError` that says why."""
        ...

    def look(self, question: Callable[[TrainingEngine], T], /) -> T:
        """Ask the engine, on its own thread."""
        ...

    def now(self) -> float:
        """The engine's time."""
        ...

    def wall(self, engine_time: float, /) -> float:
        """A time of the engine in seconds since 1970."""
        ...

    def devices(self) -> Mapping[tuple[str, int], Accelerator]:
        """The accelerator behind each worker, by the type and number of the worker."""
        ...

    def read_log(self, job: str, rank: int, position: int, most: int, /) -> LogBlock:
        """What a rank of a job has written, from a byte on; nothing where there is no log. It may block."""
        ...

    def drain(self, workers: Sequence[tuple[str, int]], /, *, on: bool) -> None:
        """Let nothing new run on workers, or let them be used again; durable when it returns."""
        ...

    def statistics(self) -> StatisticsView:
        """What happened since it started."""
        ...
