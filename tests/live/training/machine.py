"""A machine for tests: an agent in a directory of its own, a controller's connection to it, and patience."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from fairway.live.backend.answers import CommandAnswer
from fairway.live.backend.commands import EndRun, ExtendLeases, ForgetRun, HandOverRun, JobProgram, RetireJob, StartRun
from fairway.live.backend.reports import BackendReport, RunEnded, RunReport
from fairway.live.backend.status import BackendStatus, RunOutcome, RunStatus
from fairway.live.local.agent.client import AgentClient, start_agent
from fairway.live.local.agent.keepers import KeeperProcesses
from fairway.live.local.log_files import log_path
from fairway.live.local.run_files import RunFiles
from fairway.live.machine.containment import Containment

R = TypeVar("R", bound=RunReport)

PATIENCE = 30.0
"""Seconds until a test gives up; far more than anything takes, since the machine may be busy."""


async def until(condition: Callable[[], Any], what: str = "", patience: float = PATIENCE) -> Any:
    """Wait until a condition holds, and give its value."""
    deadline = time.monotonic() + patience
    while not (value := condition()):
        assert time.monotonic() < deadline, f"waited {patience} s in vain {what}"
        await asyncio.sleep(0.01)
    return value


class Machine:
    """Use it as `async with Machine(tmp_path) as machine`; whatever still runs is killed on leaving."""

    def __init__(self, directory: Path, emulate: str = "v100=2,k80=1", time_scale: float = 1.0) -> None:
        self.directory = directory / "machine"
        self._emulate, self._time_scale = emulate, time_scale
        self.agent: subprocess.Popen[bytes] | None = None
        self.client: AgentClient
        self.reports: list[BackendReport] = []
        self._collecting: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Machine:
        self.start_agent()
        await self.connect()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.disconnect()
        self.kill_agent()
        for directory in (self.directory / "runs").iterdir():
            files = RunFiles(directory)
            if files.claim({"pid": 0, "start": 0, "boot": ""}):  # a keeper that is just starting finds it taken
                continue
            assert KeeperProcesses().clear_up(files)
        Containment.found(self.directory).discard()

    def start_agent(self) -> None:
        self.agent = start_agent(self.directory, emulate=self._emulate, time_scale=self._time_scale)

    def kill_agent(self) -> None:
        if self.agent is not None:
            self.agent.kill()
            self.agent.wait()
            self.agent = None

    async def connect(self, epoch: int = 1) -> BackendStatus:
        self.client, greeting = await AgentClient.connect(self.directory, epoch)

        async def collect(client: AgentClient) -> None:
            async for report in client.reports():
                self.reports.append(report)

        self._collecting = asyncio.create_task(collect(self.client))
        return greeting.status

    async def disconnect(self) -> None:
        await self.client.close()
        if self._collecting is not None:
            await self._collecting

    async def start(self, job: str = "job", lease: int = 1, **fields: Any) -> CommandAnswer:
        """Start a job; fields are those of the command and of its program."""
        given = {"checkpoint_seconds": 20.0, "grace_seconds": 10.0, **fields}
        of_program = {name: value for name, value in given.items() if name in JobProgram.__dataclass_fields__}
        others = {name: value for name, value in given.items() if name not in of_program}
        if not isinstance(of_program["run"], str):
            of_program["run"] = tuple(of_program["run"])
        command = {"accelerator": "v100", **others, "workers": tuple(others.get("workers", [0]))}
        return await self.client.give(StartRun(lease, job, JobProgram(**of_program), **command))

    async def end(self, lease: int, job: str, *, save: bool = True) -> CommandAnswer:
        return await self.client.give(EndRun(lease, job, save))

    async def extend(self, until: float, leases: tuple[int, ...] | None = None) -> CommandAnswer:
        return await self.client.give(ExtendLeases(until, leases))

    async def hand_over(self, job: str, old: int, lease: int, *, rate: float | None = None) -> CommandAnswer:
        return await self.client.give(HandOverRun(job, old, lease, None, rate))

    async def forget(self, lease: int, job: str) -> CommandAnswer:
        return await self.client.give(ForgetRun(lease, job))

    async def retire(self, job: str) -> CommandAnswer:
        return await self.client.give(RetireJob(job))

    async def report(self, kind: type[R], job: str = "job", lease: int | None = None) -> R:
        """The last report of a kind; waits for the first."""

        def found() -> R | None:
            matching = [
                report
                for report in self.reports
                if isinstance(report, kind) and report.job == job and lease in {None, report.lease}
            ]
            return matching[-1] if matching else None

        report: R = await until(found, f"for {kind.__name__} of {job}; got {self.reports}")
        return report

    async def ended(self, job: str = "job", lease: int | None = None) -> RunOutcome:
        """How a run ended; waits for it."""
        return (await self.report(RunEnded, job, lease)).outcome

    async def run(self, job: str, lease: int) -> RunStatus:
        """How a run stands."""
        runs = (await self.client.status()).runs
        return next(run for run in runs if (run.job, run.lease) == (job, lease))

    def files(self, lease: int = 1, job: str = "job") -> RunFiles:
        return RunFiles(self.directory / "runs" / f"{lease}-{job}")

    def log(self, job: str = "job", rank: int = 0) -> str:
        path = log_path(self.directory, job, rank)
        return path.read_text() if path.exists() else ""


def python(script: str, *arguments: object) -> list[str]:
    """A command that runs a script."""
    return [sys.executable, "-c", script, *map(str, arguments)]


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
