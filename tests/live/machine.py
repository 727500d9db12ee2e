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
from typing import Any

from fairway.live.local.agent_client import AgentClient, start_agent
from fairway.live.local.agent_messages import Start
from fairway.live.local.identity import kill_remains
from fairway.live.local.process import keeper_of
from fairway.live.run_files import RunFiles

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
        self.events: list[dict[str, Any]] = []
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
            keeper = keeper_of(files)
            assert keeper is not None
            assert kill_remains(keeper, f"FAIRWAY_RUN_DIR={directory}")

    def start_agent(self) -> None:
        self.agent = start_agent(self.directory, emulate=self._emulate, time_scale=self._time_scale)

    def kill_agent(self) -> None:
        if self.agent is not None:
            self.agent.kill()
            self.agent.wait()
            self.agent = None

    async def connect(self, epoch: int = 1) -> dict[str, Any]:
        self.client, status = await AgentClient.connect(self.directory, epoch)

        async def collect(client: AgentClient) -> None:
            async for event in client.events():
                self.events.append(event)

        self._collecting = asyncio.create_task(collect(self.client))
        return status

    async def disconnect(self) -> None:
        await self.client.close()
        if self._collecting is not None:
            await self._collecting

    async def start(self, job: str = "job", lease: int = 1, **fields: Any) -> dict[str, Any]:
        fields = {"accelerator": "v100", "workers": [0], "checkpoint_seconds": 20.0, "grace_seconds": 10.0, **fields}
        return await self.client.start(Start(lease=lease, job=job, **fields))

    async def event(self, name: str, job: str = "job", lease: int | None = None) -> dict[str, Any]:
        """The last event of this name; waits for the first."""

        def found() -> dict[str, Any] | None:
            matching = [
                event
                for event in self.events
                if event["event"] == name and event["job"] == job and lease in {None, event["lease"]}
            ]
            return matching[-1] if matching else None

        event: dict[str, Any] = await until(found, f"for '{name}' of {job}; got {self.events}")
        return event

    async def run(self, job: str, lease: int) -> dict[str, Any]:
        """How a run stands."""
        runs = (await self.client.status())["runs"]
        found: dict[str, Any] = next(run for run in runs if (run["job"], run["lease"]) == (job, lease))
        return found

    def files(self, lease: int = 1, job: str = "job") -> RunFiles:
        return RunFiles(self.directory / "runs" / f"{lease}-{job}")

    def log(self, job: str = "job", rank: int = 0) -> str:
        path = self.directory / "logs" / job / f"rank-{rank}.log"
        return path.read_text() if path.exists() else ""


def python(script: str, *arguments: object) -> list[str]:
    """A command that runs a script."""
    return [sys.executable, "-c", script, *map(str, arguments)]


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
