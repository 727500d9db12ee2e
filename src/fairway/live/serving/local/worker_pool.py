"""Worker processes on this machine, as children of the supervisor's process.

The system ends a child with the thread that started it (`lifetime`), so one thread starts all of them, and stays. A
process that ends is noticed at once, through its descriptor; what it has started goes with it, or the sockets that its
children have from it would never close. Where there is a command for it, one process stands by that has already read
all that a worker needs: it becomes the next worker that is started, whichever that is.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from fairway.live.backend.logs import BLOCK_BYTES, LOG_BYTES
from fairway.live.bounded_log import open_log, trim_log
from fairway.live.serving.seams.transport import Line
from fairway.live.untrusted_file import UntrustedFileError, open_regular

LIFE = "FAIRWAY_LIFE"
"""The variable by which a process and all that it has started are known."""

_PASSES = 5
_LOOK_AT_LOGS_SECONDS = 0.5


class ProcessPool:
    """Processes by the number of their worker.

    `command` is the command line of a worker's life, by number and epoch; `environment` what is set for it beside what
    is set here, and `log` the file to which it writes, of which the last `log_bytes` are kept. `standby` is the command
    line of a process that stands by; it reads from its standard input, as one line of JSON, what it becomes.
    """

    def __init__(
        self,
        command: Callable[[int, int], Sequence[str]],
        environment: Callable[[int], Mapping[str, str]],
        log: Callable[[int], Path],
        standby: Sequence[str] | None = None,
        log_bytes: int = LOG_BYTES,
    ) -> None:
        self._command, self._environment, self._log = command, environment, log
        self._log_bytes, self._logs_due = log_bytes, 0.0
        self._standby_command = standby
        self._standby: subprocess.Popen[bytes] | None = None
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._lives: dict[int, str] = {}
        self._descriptors: dict[int, int] = {}
        self._wakes = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def start(self, number: int, epoch: int) -> None:
        """Start a process, or let the one that stands by become it."""
        self._let_go(number)
        process = self._become(number, epoch)
        if process is None:
            log = open_worker_log(self._log(number))
            try:
                process = self._started(self._command(number, epoch), number, subprocess.DEVNULL, log)
            finally:
                os.close(log)
        self._processes[number] = process
        self._descriptors[number] = os.pidfd_open(process.pid)

    def stand_by(self) -> None:
        """Have a process that stands by."""
        if self._standby_command is None or (self._standby is not None and self._standby.poll() is None):
            return
        self._standby = self._started(self._standby_command, 0, subprocess.PIPE, subprocess.DEVNULL)

    def ended(self, number: int) -> str | None:
        """The status with which a process has ended; by then, so has all that it had started."""
        process = self._processes.get(number)
        status = None if process is None else process.poll()
        if process is None or status is None:
            return None
        life = self._lives.pop(process.pid, None)
        if life is not None:
            _end_all_of(life)
        return str(status)

    def pid(self, number: int) -> int:
        """The number of a process."""
        return self._processes[number].pid

    def last_words(self, number: int) -> str:
        """The last line of a log, whose beginning may be gone, and which may be large."""
        with suppress(OSError, IndexError, UntrustedFileError):
            log = open_regular(_in_its_directory(self._log(number)), os.O_RDONLY)
            try:
                end = os.pread(log, BLOCK_BYTES, max(os.fstat(log).st_size - BLOCK_BYTES, 0))
            finally:
                os.close(log)
            return end.decode(errors="replace").strip("\0").strip().splitlines()[-1]
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
        if time.monotonic() >= self._logs_due:
            self._logs_due = time.monotonic() + _LOOK_AT_LOGS_SECONDS
            self._bound_logs()

    def wake(self) -> None:
        """Let `wait` return; from any thread."""
        os.eventfd_write(self._wakes, 1)

    def is_stopped(self, number: int) -> bool:
        """Whether SIGSTOP keeps a process from running; what a debugger or a profiler does to it is another state."""
        with suppress(OSError, IndexError):
            state = Path(f"/proc/{self.pid(number)}/stat").read_text().rsplit(")", 1)[1].split()[0]
            return state == "T"
        return False

    def kill(self, number: int) -> None:
        """End a process at once."""
        self._processes[number].kill()

    def stop(self, grace_seconds: float) -> None:
        """End all processes: those that take their time are killed."""
        if self._standby is not None:
            self._standby.kill()
            self._standby.communicate()
            self._standby = None
        for process in self._processes.values():
            process.terminate()
        deadline = time.monotonic() + grace_seconds
        for number, process in self._processes.items():
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            self.ended(number)
            self._let_go(number)

    def close(self) -> None:
        """Close the descriptor that wakes it."""
        os.close(self._wakes)

    def _bound_logs(self) -> None:
        """Drop the beginning of logs that have grown too large; one that is no file any more is left alone."""
        for number in self._processes:
            with suppress(OSError, UntrustedFileError):
                log = open_regular(_in_its_directory(self._log(number)), os.O_WRONLY | os.O_APPEND)
                try:
                    trim_log(log, self._log_bytes)
                finally:
                    os.close(log)

    def _started(self, command: Sequence[str], number: int, stdin: int, output: int) -> subprocess.Popen[bytes]:
        life = uuid.uuid4().hex
        process = subprocess.Popen(
            command,
            stdin=stdin,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **self._environment(number), LIFE: life},
        )
        self._lives[process.pid] = life
        return process

    def _become(self, number: int, epoch: int) -> subprocess.Popen[bytes] | None:
        """Let the process that stands by become a worker; None if there is none."""
        process, self._standby = self._standby, None
        if process is None or process.poll() is not None:
            return None
        assert process.stdin is not None
        content = {
            "number": number,
            "epoch": epoch,
            "environment": dict(self._environment(number)),
            "log": str(self._log(number)),
        }
        try:
            with process.stdin as writing:
                writing.write(json.dumps(content).encode() + b"\n")
        except OSError:  # it has just died
            return None
        return process

    def _let_go(self, number: int) -> None:
        descriptor = self._descriptors.pop(number, None)
        if descriptor is not None:
            os.close(descriptor)


def open_worker_log(path: Path) -> int:
    """A descriptor to go on with a log; what takes the place of one, such as a FIFO, is not written, nor waited for."""
    try:
        return open_log(_in_its_directory(path))
    except UntrustedFileError:
        return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)


def _in_its_directory(path: Path) -> Path:
    """The log without links on the way to it: where the operator wants it may be one, the log itself may not."""
    return path.parent.resolve() / path.name


def _end_all_of(life: str) -> None:
    """Kill what a process has left behind: all that have the variable of its life from it."""
    mark = f"{LIFE}={life}".encode()
    for _ in range(_PASSES):  # one of them may have started another one meanwhile
        found = [pid for pid in _processes() if _has(pid, mark)]
        if not found:
            return
        for pid in found:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)


def _processes() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]


def _has(pid: int, mark: bytes) -> bool:
    with suppress(OSError):
        return mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return False
