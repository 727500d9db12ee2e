"""`fairway up` as a process of its own, in a directory of its own: started, asked, killed and started again."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from fairway.live.local.agent.client import AgentClient
from fairway.live.local.agent.keepers import keeper_of
from fairway.live.local.identity import process_table
from fairway.live.local.run_files import RunFiles

PATIENCE = 120.0
ENDING_SECONDS = 5.0


@dataclass(slots=True)
class System:
    """One installation. `options` are those of `fairway up` besides where it is."""

    directory: Path
    options: list[str]
    port: int = field(default_factory=lambda: free_port())  # noqa: PLW0108 - it is defined below
    process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def token(self) -> str:
        return (self.directory / "token").read_text().strip()

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def start(self, *, wait: bool = True) -> float:
        """Start it; with `wait` the seconds until it answers `GET /status`, otherwise 0."""
        began = time.monotonic()
        self.directory.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "fairway.cli.main", "up", "--directory", str(self.directory)]
        with (self.directory / "up.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "--port", str(self.port), *self.options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for the benchmark, which stops it in order
            )
        return self.wait_until_ready(began) if wait else 0.0

    def wait_until_ready(self, began: float) -> float:
        while True:
            assert self.process is not None
            assert self.process.poll() is None, f"it has ended by itself; see {self.directory / 'up.log'}:\n{self.log}"
            try:
                if (self.directory / "token").exists():
                    httpx.get(f"{self.address}/status", headers=self.headers, timeout=30).raise_for_status()
                    return time.monotonic() - began
            except httpx.TransportError:
                pass
            assert time.monotonic() - began < PATIENCE, f"no answer after {PATIENCE:g} s:\n{self.log}"
            time.sleep(0.02)

    @property
    def cpu_seconds(self) -> float:
        """The processor time that it has had since it was started, which does not depend on what else runs."""
        assert self.process is not None
        fields = (Path("/proc") / str(self.process.pid) / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def kill(self) -> None:
        """SIGKILL; its jobs and its agent run on."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> list[int]:
        """Let it stop everything in order; whatever is left after some seconds is killed, and returned."""
        if self.alive:
            assert self.process is not None
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.kill()
        deadline = time.monotonic() + ENDING_SECONDS
        while (left := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.05)
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return left

    @property
    def log(self) -> str:
        path = self.directory / "up.log"
        return "\n".join(path.read_text(errors="replace").splitlines()[-20:]) if path.exists() else ""

    # Its processes

    def agent(self) -> int | None:
        """The process of the agent; None if it does not answer."""

        async def ask() -> int:
            client, greeting = await AgentClient.connect(self.directory / "agent", None)
            await client.close()
            return int(greeting.status.instance)

        try:
            return asyncio.run(asyncio.wait_for(ask(), 5.0))
        except Exception:  # whatever it is: it cannot be reached now
            return None

    def keepers(self) -> list[int]:
        """The keepers of all runs that live."""
        found = []
        runs = self.directory / "agent/runs"
        for directory in sorted(runs.iterdir()) if runs.is_dir() else []:
            keeper = keeper_of(RunFiles(directory))
            if keeper is not None and keeper.alive:
                found.append(keeper.pid)
        return found

    def ranks(self) -> list[int]:
        """The job processes themselves."""
        keepers = set(self.keepers())
        return [row.pid for row in process_table() if row.parent in keepers]

    def processes(self) -> list[int]:
        """All that has the directory in its command or in its environment, and so belongs to it."""
        mark = str(self.directory).encode()
        found = []
        for row in process_table():
            if row.pid == os.getpid():
                continue
            try:
                text = b"".join((Path("/proc") / str(row.pid) / name).read_bytes() for name in ("cmdline", "environ"))
            except OSError:
                continue
            if mark in text:
                found.append(row.pid)
        return found


def free_port() -> int:
    """A port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def listed(client: httpx.Client, **query: Any) -> list[dict[str, Any]]:
    """All jobs, page by page."""
    found: list[dict[str, Any]] = []
    after = None
    while True:
        page = client.get("/jobs", params={"limit": 1000, **query, **({} if after is None else {"after": after})})
        content = page.raise_for_status().json()
        found += content["jobs"]
        after = content["next"]
        if after is None:
            return found
