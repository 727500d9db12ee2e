"""The directory of a run on this machine: what agent and keeper tell each other; the channel of its job is elsewhere.

A run is one attempt of one job under a lease. Its directory, `runs/RUN`, is for agent and keeper only:

    order.json       agent    what to run; never changes
    lease.json       agent    the lease as it stands, which agent and keeper go by; the job has a copy in its channel
    claim.json       keeper   which process keeps the run; the first keeper writes it, and no keeper after
    ranks.json       keeper   that the job's processes have started
    exit.json        keeper   how it ended

The job is given `channels/RUN` (`fairway.live.backend.channel`); how the run stands is known without it. Files
outlive the agent and the keeper, which a connection would not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from fairway.live.backend.channel import LeaseState, RankProgress, RunChannel
from fairway.live.backend.logs import LOG_BYTES
from fairway.live.durable_file import create_json, read_json, write_json


@dataclass(frozen=True, slots=True)
class RunOrder:
    """What a keeper runs. `run` is text for a shell, or a command and its arguments; `ranks` what each rank adds.

    Of each log, the last `log_bytes` are kept. `groups` are the control groups that all its processes are put into,
    `user` is as whom they run (`JobUser`). Together they may use so many `cpus` and `memory_bytes`.
    They have a virtual environment with `requirements`, which is among the `environments`, or run in a `container`, in
    which they find their `environment` and no other. Where the ranks of the gang are on several nodes, one keeper has
    their `agreement`: its address, port and secret. Checkpoints are brought from, and sent to, the URL
    `checkpoints_at`, if there is one.
    """

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
    groups: list[str] = field(default_factory=list)
    user: dict[str, Any] | None = None
    log_bytes: int = LOG_BYTES
    requirements: str | None = None
    environments: str | None = None
    cpus: float | None = None
    memory_bytes: int | None = None
    agreement: dict[str, Any] | None = None
    checkpoints_at: str | None = None
    container: dict[str, Any] | None = None

    @property
    def numbers(self) -> list[int]:
        """The numbers of its ranks in the whole gang."""
        return [int(rank["FAIRWAY_RANK"]) for rank in self.ranks]


@dataclass(frozen=True, slots=True)
class RunExit:
    """How a run ended.

    `codes` has one exit code per rank, negative for a signal; it is empty when nothing was started, and `error` says
    why. `first` is the rank that first ended with a code other than 0, `failed` whether it did so by itself. `asked` is
    how the job was asked to stop, `terminated` and `killed` whether SIGTERM and SIGKILL followed. `out_of_memory` says
    that the kernel has killed processes of it which needed more memory than the job had asked for.
    """

    codes: list[int]
    first: int | None = None
    failed: bool = False
    error: str | None = None
    asked: str | None = None
    terminated: bool = False
    killed: bool = False
    time: float = 0.0
    out_of_memory: bool = False

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> RunExit:
        """From the object that was written to a file; raises if that is nonsense."""
        ended = cls(**content)
        if not all(isinstance(code, int) for code in ended.codes):
            raise TypeError("exit codes that are none")
        if ended.first is not None:
            ended.codes[ended.first]  # raises where there is no such rank
        return replace(ended, time=float(ended.time))


@dataclass(frozen=True, slots=True)
class RunFiles:
    """The directory of a run, as agent and keeper see it."""

    directory: Path

    @property
    def channel(self) -> RunChannel:
        """What the job sees of it."""
        return RunChannel(self.directory.parents[1] / "channels" / self.directory.name)

    @property
    def mark(self) -> str:
        """What processes of the run carry in their environment, unless they have removed it."""
        return f"FAIRWAY_RUN_DIR={self.channel.directory}"

    def write_lease(self, lease: LeaseState) -> None:
        """For agent and keeper; not synced, since the agent writes it again when it comes back.

        A job whose channel cannot be written, such as because it has removed it, goes without its copy.
        """
        write_json(self.directory / "lease.json", asdict(lease), durable=False)
        with suppress(OSError):
            owner = self.channel.directory.lstat()
            self.channel.write_lease(lease, owner=(owner.st_uid, owner.st_gid))

    def lease(self) -> LeaseState | None:
        """The lease as it stands."""
        content = read_json(self.directory / "lease.json")
        with suppress(KeyError, OverflowError, TypeError, ValueError):
            return LeaseState.of(content) if content else None
        return None

    def write_progress(self, progress: RankProgress) -> None:
        """As the job would."""
        self.channel.write_progress(progress)

    def progress(self, ranks: Iterable[int]) -> list[RankProgress] | None:
        """How far the ranks are, by the job's own words; raises `UntrustedFileError`."""
        return self.channel.progress(ranks)

    def is_cooperative(self, ranks: Iterable[int]) -> bool:
        """Whether a rank has told how far it is."""
        return self.channel.is_cooperative(ranks)

    def write_order(self, order: RunOrder) -> None:
        """For the agent, before anything is started; not synced, since a machine that stops takes the run with it."""
        write_json(self.directory / "order.json", asdict(order), durable=False)

    def order(self) -> RunOrder | None:
        """What to run."""
        content = read_json(self.directory / "order.json")
        with suppress(TypeError):
            return RunOrder(**content) if content else None
        return None

    def claim(self, keeper: Mapping[str, Any]) -> bool:
        """For a keeper: True for the first one only. A run is never run twice, because this is never taken back."""
        return create_json(self.directory / "claim.json", keeper, durable=False)

    def claimed_by(self) -> dict[str, Any] | None:
        """The keeper, if there is one."""
        return read_json(self.directory / "claim.json")

    def write_started(self, time: float) -> None:
        """For the keeper, once all ranks run."""
        write_json(self.directory / "ranks.json", {"time": time}, durable=False)

    def started(self) -> float | None:
        """When the ranks were started."""
        content = read_json(self.directory / "ranks.json")
        with suppress(KeyError, TypeError, ValueError):
            return float(content["time"]) if content else None
        return None

    def write_exit(self, ended: RunExit) -> None:
        """For the keeper, as its last act."""
        write_json(self.directory / "exit.json", asdict(ended))

    def exit(self) -> RunExit | None:
        """How it ended, if it did."""
        content = read_json(self.directory / "exit.json")
        with suppress(IndexError, TypeError, ValueError):
            return RunExit.of(content) if content else None
        return None
