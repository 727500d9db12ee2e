"""What an agent must not forget when it is killed: the runs it has accepted, and the leases that are over.

One small file, replaced as a whole. It says what was wanted; what became of it is in the directories of the runs.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fairway.errors import InputError
from fairway.live.durable_file import read_json, write_json

WAITING, STARTING, RUNNING, ENDING, ENDED = "waiting", "starting", "running", "ending", "ended"
_VERSION = 1


@dataclass(slots=True)
class Run:
    """A job under a lease: waiting for its workers, starting, running, ending, ended."""

    lease: int
    job: str
    accelerator: str
    workers: list[int]
    directory: str
    state: str
    attempt: int = 1
    preemptible: bool = True
    emulated: bool = False
    until: float | None = None
    expires: bool = False
    accepted: float = 0.0
    started: float | None = None
    outcome: dict[str, Any] | None = None

    @property
    def active(self) -> bool:
        """Whether it holds its workers, or will."""
        return self.state != ENDED


@dataclass(slots=True)
class AgentState:
    """Everything that has to outlive the agent. `floors` has the last lease of each job whose runs are forgotten."""

    epoch: int = 0
    draining: bool = False
    floors: dict[str, int] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)

    @classmethod
    def load(cls, path: Path) -> AgentState:
        """From its file; nothing has happened where there is none."""
        if not path.exists():
            return cls()
        content = read_json(path)
        if content is None or content.pop("version", None) != _VERSION:
            raise InputError(f"{path}: not the state of an agent of this version; move it away to begin anew")
        runs = [Run(**run) for run in content.pop("runs")]
        return cls(**content, runs=runs)

    def save(self, path: Path) -> None:
        """To its file, on disk when this returns."""
        write_json(path, {"version": _VERSION, **asdict(self)})

    def find(self, lease: int, job: str) -> Run | None:
        """The run of a job under a lease."""
        return next((run for run in self.runs if run.lease == lease and run.job == job), None)

    def newest_lease(self, job: str) -> int:
        """The last lease under which the job was ever accepted here; 0 for none."""
        return max([self.floors.get(job, 0), *(run.lease for run in self.runs if run.job == job)])
