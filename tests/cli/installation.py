"""A whole Fairway for tests: `fairway up` as a process of its own in a temporary directory, and commands to it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from fairway.cli.main import app
from fairway.client import Client
from fairway.live.machine.containment import Containment

PATIENCE = 120.0
"""Seconds until a test gives up; far more than anything takes, since the machine may be busy."""

FAIRWAY = [sys.executable, "-m", "fairway.cli.main"]


class Installation:
    """Use it in a `with`; whatever still runs is killed on leaving."""

    def __init__(self, directory: Path, *options: str) -> None:
        self.home = directory / "home"
        self._options = options
        self.process: subprocess.Popen[str] | None = None
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("FAIRWAY_")},
            "FAIRWAY_HOME": str(self.home),
            "COLUMNS": "160",
        }

    def __enter__(self) -> Installation:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
        until(lambda: not self._kill_all(), "for all processes to end")
        Containment.found(self.home / "agent").discard()

    def up(self, *options: str) -> subprocess.Popen[str]:
        """Start it, and wait until it answers."""
        self.process = subprocess.Popen(
            [*FAIRWAY, "up", *self._options, *options],
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        until(lambda: (self.home / "address").exists() or self.process_ended(), "for 'fairway up' to answer")
        assert self.process.poll() is None, self.process.communicate()[0]
        return self.process

    def process_ended(self) -> bool:
        return self.process is None or self.process.poll() is not None

    def end(self, sent: signal.Signals) -> str:
        """Stop it by a signal, and tell what it has printed."""
        assert self.process is not None
        self.process.send_signal(sent)
        printed, _ = self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == (-sent if sent is signal.SIGKILL else 0), printed
        self.process = None
        return printed

    def processes(self) -> list[int]:
        """What runs for it: itself, its agent, keepers and jobs."""
        mark = f"FAIRWAY_HOME={self.home}".encode()
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
        return found

    def _kill_all(self) -> list[int]:
        left = self.processes()
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return left

    def run(self, *arguments: str, **environment: str) -> Result:
        """A command, in this process."""
        settings = {"FAIRWAY_ADDRESS": None, "FAIRWAY_TOKEN": None, **self._environment, **environment}
        return CliRunner().invoke(app, arguments, env=settings)

    def in_a_process(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command as people run it, which may take a while."""
        command = [*FAIRWAY, *arguments]
        environment = self._environment
        return subprocess.run(command, check=False, env=environment, capture_output=True, text=True, timeout=PATIENCE)

    def printed(self, *arguments: str, **environment: str) -> str:
        result = self.run(*arguments, **environment)
        assert result.exit_code == 0, result.output
        return result.stdout

    def document(self, command: str, *arguments: str) -> Any:
        return json.loads(self.printed(command, "--json", "-", *arguments))

    def refused(self, *arguments: str, **environment: str) -> str:
        result = self.run(*arguments, **environment)
        assert result.exit_code == 2, result.output
        assert result.stderr.count("\n") == 1
        return result.stderr.strip()

    def client(self) -> Client:
        address, token = ((self.home / name).read_text().strip() for name in ("address", "token"))
        return Client(address, token, patience=PATIENCE)

    def state_of(self, job: str) -> str:
        state: str = self.document("status", job)["state"]
        return state


def until(condition: Callable[[], Any], what: str) -> Any:
    """Wait until a condition holds, and give its value."""
    deadline = time.monotonic() + PATIENCE
    while not (value := condition()):
        assert time.monotonic() < deadline, f"waited {PATIENCE} s in vain {what}"
        time.sleep(0.05)
    return value
