"""Worker processes on this machine, as children of the supervisor's process.

The system ends a child with the thread that started it (`lifetime`), so one thread starts all of them, and stays. A
process that ends is noticed at once, through its descriptor.
"""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from fairway.live.serving.seams.transport import Line


class ProcessPool:
    """Processes by the number of their worker.

    `command` is the command line of a worker's life, by number and epoch; `environment` what is set for it beside what
    is set here, and `log` the file to which it writes.
    """

    def __init__(
        self,
        command: Callable[[int, int], Sequence[str]],
        environment: Callable[[int], Mapping[str, str]],
        log: Callable[[int], Path],
    ) -> None:
        self._command, self._environment, self._log = command, environment, log
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._descriptors: dict[int, int] = {}
        self._wakes = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def start(self, number: int, epoch: int) -> None:
        """Start a process."""
        self._let_go(number)
        with self._log(number).open("ab") as log:
            process = self._processes[number] = subprocess.Popen(
                self._command(number, epoch),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self._environment(number)},
            )
        self._descriptors[number] = os.pidfd_open(process.pid)

    def ended(self, number: int) -> str | None:
        """The status with which a process has ended."""
        process = self._processes.get(number)
        status = None if process is None else process.poll()
        return None if status is None else str(status)

    def pid(self, number: int) -> int:
        """The number of a process."""
        return self._processes[number].pid

    def last_words(self, number: int) -> str:
        """The last line of a log."""
        with suppress(OSError, IndexError):
            return self._log(number).read_text(errors="replace").strip().splitlines()[-1]
        return "it said nothing"

    def wait(self, seconds: float, lines: Iterable[Line]) -> None:
        """Wait for the end of a process that is known to live, or for something to come over a line."""
        waiting = select.poll()
        waiting.register(self._wakes, select.POLLIN)
        for number, descriptor in self._descriptors.items():
            if self._processes[number].returncode is None:
                waiting.register(descriptor, select.POLLIN)
        for line in lines:
            waiting.register(line.fileno(), select.POLLIN)
        if any(descriptor == self._wakes for descriptor, _ in waiting.poll(1000 * seconds)):
            os.eventfd_read(self._wakes)

    def wake(self) -> None:
        """Let `wait` return; from any thread."""
        os.eventfd_write(self._wakes, 1)

    def kill(self, number: int) -> None:
        """End a process at once."""
        self._processes[number].kill()

    def stop(self, grace_seconds: float) -> None:
        """End all processes: those that take their time are killed."""
        for process in self._processes.values():
            process.terminate()
        deadline = time.monotonic() + grace_seconds
        for number, process in self._processes.items():
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            self._let_go(number)

    def close(self) -> None:
        """Close the descriptor that wakes it."""
        os.close(self._wakes)

    def _let_go(self, number: int) -> None:
        descriptor = self._descriptors.pop(number, None)
        if descriptor is not None:
            os.close(descriptor)
