"""The files through which an agent, the keeper of a run and the job itself speak to each other.

A run is one attempt of one job under a lease. It has a directory of its own, in which each file has one writer:

    order.json       agent    what to run; never changes
    lease.json       agent    the lease as it stands: until when, whether to stop, how fast an emulated job may go
    claim.json       keeper   which process keeps the run; whoever writes it first, and nobody after
    ranks.json       keeper   that the job's processes have started
    progress-R.json  job      the steps that rank R has done, how fast, and its last checkpoint
    gang             job      what the ranks of a gang have agreed on
    exit.json        keeper   how it ended

Files outlive whoever is killed, which a connection would not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fairway.live.durable_file import create_json, read_json, write_json

STOPPED = 75
"""The exit code of a cooperative job that stopped because its lease ended (EX_TEMPFAIL: not yet done, try again)."""


@dataclass(frozen=True, slots=True)
class Order:
    """What a keeper runs. `run` is text for a shell, or a command and its arguments; `ranks` what each rank adds."""

    job: str
    lease: int
    title: str
    run: str | list[str]
    setup: str | None
    workdir: str | None
    environment: Mapping[str, str]
    ranks: list[dict[str, str]]
    logs: list[str]
    checkpoint_seconds: float
    grace_seconds: float


@dataclass(frozen=True, slots=True)
class LeaseState:
    """A lease as a job sees it.

    `until` is when it would end on the clock of the machine; only one that `expires` ends then by itself. `stop` is
    "save" for a stop after a checkpoint and "now" for one without. `pace` are the steps per second that one rank may do
    at most, on an emulated accelerator.
    """

    lease: int
    until: float | None = None
    expires: bool = False
    stop: str | None = None
    pace: float | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far one rank is. Steps count from the first attempt on; `since` is where this attempt began.

    The rate was measured under `lease`, 0 if the job does not say: beside another job it is not what it is alone.
    """

    rank: int
    step: int
    since: int
    steps_per_second: float | None = None
    checkpoint_step: int | None = None
    checkpoint_seconds: float = 0.0
    stopped: bool = False
    time: float = 0.0
    lease: int = 0

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Progress:
        """From what a job has written, with its own Fairway, newer or older, or without; raises if that is nonsense."""
        rate, saved = content.get("steps_per_second"), content.get("checkpoint_step")
        told = cls(
            rank=int(content["rank"]),
            step=int(content["step"]),
            since=int(content["since"]),
            steps_per_second=None if rate is None else float(rate),
            checkpoint_step=None if saved is None else int(saved),
            checkpoint_seconds=float(content.get("checkpoint_seconds", 0.0)),
            stopped=content.get("stopped") is True,
            time=float(content.get("time", 0.0)),
            lease=int(content.get("lease", 0)),
        )
        if not all(
            math.isfinite(value) for value in (told.steps_per_second or 0.0, told.checkpoint_seconds, told.time)
        ):
            raise ValueError("a number that is none")
        return told


@dataclass(frozen=True, slots=True)
class Exit:
    """How a run ended.

    `codes` has one exit code per rank, negative for a signal; it is empty when nothing was started, and `error` says
    why. `first` is the rank that first ended with a code other than 0, `failed` whether it did so by itself. `asked` is
    how the job was asked to stop, `terminated` and `killed` whether SIGTERM and SIGKILL followed.
    """

    codes: list[int]
    first: int | None = None
    failed: bool = False
    error: str | None = None
    asked: str | None = None
    terminated: bool = False
    killed: bool = False
    time: float = 0.0


@dataclass(frozen=True, slots=True)
class RunFiles:
    """The directory of a run."""

    directory: Path

    @property
    def lease_path(self) -> Path:
        """Where the lease stands."""
        return self.directory / "lease.json"

    @property
    def gang_path(self) -> Path:
        """Where the ranks agree."""
        return self.directory / "gang"

    def write_order(self, order: Order) -> None:
        """For the agent, before anything is started."""
        write_json(self.directory / "order.json", asdict(order))

    def order(self) -> Order | None:
        """What to run."""
        content = read_json(self.directory / "order.json")
        return Order(**content) if content else None

    def write_lease(self, lease: LeaseState) -> None:
        """For the agent; not synced, since the agent writes it again when it comes back."""
        write_json(self.lease_path, asdict(lease), durable=False)

    def lease(self) -> LeaseState | None:
        """The lease as it stands."""
        content = read_json(self.lease_path)
        return LeaseState(**content) if content else None

    def claim(self, keeper: Mapping[str, Any]) -> bool:
        """For a keeper: True for the first one only. A run is never run twice, because this is never taken back."""
        return create_json(self.directory / "claim.json", keeper)

    def claimed_by(self) -> dict[str, Any] | None:
        """The keeper, if there is one."""
        return read_json(self.directory / "claim.json")

    def write_started(self, time: float) -> None:
        """For the keeper, once all ranks run."""
        write_json(self.directory / "ranks.json", {"time": time}, durable=False)

    def started(self) -> float | None:
        """When the ranks were started."""
        content = read_json(self.directory / "ranks.json")
        return float(content["time"]) if content else None

    def write_progress(self, progress: Progress) -> None:
        """For the job; not synced: the checkpoint is what counts after a crash."""
        write_json(self.directory / f"progress-{progress.rank}.json", asdict(progress), durable=False)

    def progress(self, ranks: int) -> list[Progress] | None:
        """How far the ranks are; None until every one of them has told; a plain command never does."""
        told = [read_json(self.directory / f"progress-{rank}.json") for rank in range(ranks)]
        try:
            return [Progress.of(content) for content in told if content] if all(told) else None
        except (KeyError, OverflowError, TypeError, ValueError):
            return None

    def is_cooperative(self, ranks: int) -> bool:
        """Whether a rank has told how far it is; in a gang, the others may still be starting."""
        return any((self.directory / f"progress-{rank}.json").exists() for rank in range(ranks))

    def write_exit(self, ended: Exit) -> None:
        """For the keeper, as its last act."""
        write_json(self.directory / "exit.json", asdict(ended))

    def exit(self) -> Exit | None:
        """How it ended, if it did."""
        content = read_json(self.directory / "exit.json")
        return Exit(**content) if content else None
