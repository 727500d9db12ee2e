"""The directory of a run on this machine: the job's channel, and beside it what agent and keeper tell each other.

A run is one attempt of one job under a lease. To the files of the channel (`fairway.live.backend.channel`) it adds:

    order.json       agent    what to run; never changes
    claim.json       keeper   which process keeps the run; the first keeper writes it, and no keeper after
    ranks.json       keeper   that the job's processes have started
    exit.json        keeper   how it ended

Files outlive the agent and the keeper, which a connection would not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from fairway.live.backend.channel import RunChannel
from fairway.live.durable_file import create_json, read_json, write_json


@dataclass(frozen=True, slots=True)
class RunOrder:
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
class RunExit:
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
class RunFiles(RunChannel):
    """The directory of a run, as agent and keeper see it."""

    def write_order(self, order: RunOrder) -> None:
        """For the agent, before anything is started."""
        write_json(self.directory / "order.json", asdict(order))

    def order(self) -> RunOrder | None:
        """What to run."""
        content = read_json(self.directory / "order.json")
        return RunOrder(**content) if content else None

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

    def write_exit(self, ended: RunExit) -> None:
        """For the keeper, as its last act."""
        write_json(self.directory / "exit.json", asdict(ended))

    def exit(self) -> RunExit | None:
        """How it ended, if it did."""
        content = read_json(self.directory / "exit.json")
        return RunExit(**content) if content else None
