"""A table of runs over keepers that do what a test says, and over a clock that stands until the test moves it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fairway.live.backend.accelerators import Accelerator, emulated_accelerators
from fairway.live.backend.commands import (
    JobProgram,
    StartRun,
)
from fairway.live.backend.reports import RunReport
from fairway.live.backend.status import RunState, RunStatus
from fairway.live.local.agent.run_table import RunTable
from fairway.live.local.identity import boot
from fairway.live.local.run_files import RunExit, RunFiles

PROGRAM = JobProgram(("steps",), checkpoint_seconds=4.0, grace_seconds=2.0)


class StandingKeeper:
    def __init__(self) -> None:
        self.code: int | None = None
        self.polled = 0

    def poll(self) -> int | None:
        self.polled += 1
        return self.code


class StandingKeepers:
    """Keepers that do what the test says, when it says so."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.spawned: dict[str, StandingKeeper] = {}
        self.watched: list[str] = []
        self.asked: list[tuple[str, bool]] = []
        self.cleared: list[str] = []
        self.alive: set[str] = set()
        self.cannot_be_cleared = False

    def start(self, files: RunFiles) -> StandingKeeper:
        self.started.append(files.directory.name)
        spawned = self.spawned[files.directory.name] = StandingKeeper()
        return spawned

    def has_keeper(self, files: RunFiles) -> bool:
        return files.claimed_by() is not None

    def is_alive(self, files: RunFiles) -> bool:
        return files.directory.name in self.alive

    def watch(self, files: RunFiles) -> None:
        self.watched.append(files.directory.name)

    def ask_to_stop(self, files: RunFiles, *, save: bool) -> None:
        self.asked.append((files.directory.name, save))

    def clear_up(self, files: RunFiles) -> bool:
        self.cleared.append(files.directory.name)
        self.alive.discard(files.directory.name)
        return not self.cannot_be_cleared


class StandingMachine:
    """A table of runs over a clock that stands until it is moved."""

    def __init__(self, directory: Path) -> None:
        self.now, self.wall = 1000.0, 50_000.0
        self.keepers = StandingKeepers()
        self.reports: list[RunReport] = []
        self.directory = directory
        self.accelerators: list[Accelerator] = emulated_accelerators("v100=4,k80=2")
        self.table = self.agent()

    def agent(self, **options: Any) -> RunTable:
        """A new agent over the same files."""
        self.table = RunTable(
            self.directory, self.accelerators, emit=self.reports.append, keepers=self.keepers, outside={}, clock=self,
            instance="agent", time_scale=2.0, **options,
        )  # fmt: skip
        return self.table

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.wall

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.wall += seconds
        self.table.tick()

    def files(self, lease: int, job: str = "a") -> RunFiles:
        return RunFiles(self.directory / "runs" / f"{lease}-{job}")

    def start(self, lease: int, *workers: int, job: str = "a", **fields: Any) -> RunState:
        answer = self.table.carry_out(StartRun(lease, job, **{"program": PROGRAM, "accelerator": "v100", **fields},
                                               workers=workers or (0,)))  # fmt: skip
        assert answer.result == "accepted"
        assert answer.run is not None
        return answer.run.state

    def run(self, lease: int, *workers: int, job: str = "a", **fields: Any) -> RunFiles:
        """Start a run, whose keeper comes and starts its ranks."""
        assert self.start(lease, *workers, job=job, **fields) is RunState.STARTING
        files = self.files(lease, job)
        self.keep(files)
        files.write_started(self.wall)
        self.pass_time(0.25)
        assert self.status(lease, job).state is RunState.RUNNING
        return files

    def keep(self, files: RunFiles) -> None:
        assert files.claim({"pid": 1, "start": 1, "boot": boot()})
        self.keepers.alive.add(files.directory.name)

    def end(self, files: RunFiles, code: int = 0, **fields: Any) -> None:
        """The keeper writes down how the run ended, and ends."""
        first = None if code == 0 else 0
        files.write_exit(RunExit([code], first, **{"failed": code != 0, "time": self.wall, **fields}))
        self.keepers.alive.discard(files.directory.name)

    def status(self, lease: int, job: str = "a") -> RunStatus:
        return next(run for run in self.table.status().runs if (run.lease, run.job) == (lease, job))

    def take_reports(self) -> list[RunReport]:
        taken = self.reports[:]
        self.reports.clear()
        return taken
