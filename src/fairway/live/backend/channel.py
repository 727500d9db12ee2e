"""The channel of lease and progress between a backend and a job: small files, of which each has one writer.

A backend promises every rank a directory, named by `FAIRWAY_RUN_DIR`, on the machine where the rank runs:

    lease.json       backend  the lease as it stands: until when, whether to stop, how fast an emulated job may go
    progress-R.json  job      the steps that rank R has done, how fast, and its last checkpoint
    gang             job      what the ranks of a gang have agreed on (`fairway.live.job.gang`)

Whatever stands in it can be what a hostile job has put there, so that a backend reads it by `untrusted_file` only, and
keeps what it has to know, such as the lease, for itself.

Files outlive the process that wrote them when it is killed, which a connection would not. A backend of many machines
keeps such a directory on each of them; where the ranks of one gang are on several, they agree over the network instead
(`fairway.live.job.remote_gang`). Only small modules of the standard library are imported: every cooperative job pays
for it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from fairway.live.durable_file import write_json
from fairway.live.untrusted_file import is_regular, read_object, replace_regular

STOPPED = 75
"""The exit code of a cooperative job that stopped because its lease ended (EX_TEMPFAIL: not yet done, try again)."""

_MOST_STEPS = 2**53
"""Counts beyond it are no longer told apart as floating-point numbers, in which the engine counts."""

_MOST_SECONDS = 1e9
_SLOWEST, _FASTEST = 1e-9, 1e12
"""Steps per second that a policy can calculate with."""


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

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> LeaseState:
        """From what was written to a file; raises if that is nonsense."""
        until, pace, stop = content.get("until"), content.get("pace"), content.get("stop")
        return cls(
            lease=int(content["lease"]),
            until=None if until is None else float(until),
            expires=content.get("expires") is True,
            stop=None if stop is None else "now" if stop == "now" else "save",
            pace=None if pace is None else float(pace),
        )


@dataclass(frozen=True, slots=True)
class RankProgress:
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
    def of(cls, content: Mapping[str, Any]) -> RankProgress:
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
        counts = told.step, told.since, told.checkpoint_step or 0, told.lease
        if not all(0 <= count <= _MOST_STEPS for count in counts):
            raise ValueError("a count that is none")
        if not (0 <= told.checkpoint_seconds <= _MOST_SECONDS and math.isfinite(told.time)):
            raise ValueError("a time that is none")
        if not (rate is None or _SLOWEST <= float(rate) <= _FASTEST):
            return replace(told, steps_per_second=None)  # such as 0, before the first step
        return told


@dataclass(frozen=True, slots=True)
class RunChannel:
    """The directory of a run, as its backend and its job see it."""

    directory: Path

    @property
    def lease_path(self) -> Path:
        """Where the lease stands."""
        return self.directory / "lease.json"

    @property
    def gang_path(self) -> Path:
        """Where the ranks agree."""
        return self.directory / "gang"

    def write_lease(self, lease: LeaseState, *, owner: tuple[int, int] | None = None) -> None:
        """For the backend; not synced, since the backend writes it again when it comes back."""
        replace_regular(self.lease_path, json.dumps(asdict(lease)).encode(), owner=owner)

    def lease(self) -> LeaseState | None:
        """For the job: the lease as it stands."""
        content = read_object(self.lease_path)
        return LeaseState.of(content) if content else None

    def write_progress(self, progress: RankProgress) -> None:
        """For the job; not synced: the checkpoint is what counts after a crash."""
        write_json(self.directory / f"progress-{progress.rank}.json", asdict(progress), durable=False)

    def progress(self, ranks: Iterable[int]) -> list[RankProgress] | None:
        """How far the ranks are; None until every one of them has told; a plain command never does.

        Numbers that make no sense are passed over. A file that no writer of progress makes raises `UntrustedFileError`.
        """
        told = [read_object(self.directory / f"progress-{rank}.json") for rank in ranks]
        try:
            return [RankProgress.of(content) for content in told if content] if all(told) else None
        except (KeyError, OverflowError, TypeError, ValueError):
            return None

    def is_cooperative(self, ranks: Iterable[int]) -> bool:
        """Whether a rank has told how far it is; in a gang, the others may still be starting."""
        return any(is_regular(self.directory / f"progress-{rank}.json") for rank in ranks)
