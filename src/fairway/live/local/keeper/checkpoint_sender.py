"""The process beside a job that sends its checkpoints to their URL: while the job runs, and when it has ended.

It runs as the job does, and is no rank: how the job ended does not depend on it. When the job has ended, what it saved
last is waited for as long as the job might take to save; one that has to end at once is not waited for.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress

_PROGRAM = "fairway.live.job.stored_checkpoints"


def bring_command(url: str, directory: str) -> list[str]:
    """What brings the checkpoints before the job starts."""
    return [sys.executable, "-m", _PROGRAM, "bring", url, directory]


class CheckpointSender:
    """The sender of one run. `spawn` starts a command as the job, `sleep` waits a moment."""

    def __init__(
        self,
        url: str,
        directory: str,
        spawn: Callable[[list[str]], subprocess.Popen[bytes]],
        sleep: Callable[[], None],
    ) -> None:
        self._spawn, self._sleep = spawn, sleep
        self._command = [sys.executable, "-m", _PROGRAM]
        self._where = [url, directory]
        self._process = spawn([*self._command, "follow", *self._where])

    @property
    def pid(self) -> int:
        """Its process, which is not the job's."""
        return self._process.pid

    def finish(self, seconds: float, is_urgent: Callable[[], bool]) -> None:
        """Have the last state sent, within so many seconds."""
        deadline = time.monotonic() + seconds
        if self._process.poll() is not None:  # the job may have killed it, as it may any process of its user
            self._process = self._spawn([*self._command, "send", *self._where])
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)
        while self._process.poll() is None and time.monotonic() < deadline and not is_urgent():
            self._sleep()
