"""Control daemons of MPS, one for each GPU of which jobs have parts: started, watched and stopped.

MPS lets several processes use a GPU at once, each with at most a percentage of its threads and so much of its memory
(docs.nvidia.com/deploy/mps). A daemon is `nvidia-cuda-mps-control -d` with one GPU in `CUDA_VISIBLE_DEVICES` and a
directory of its own for its pipes, by which its clients find it; it starts its server as the first client comes. On its
standard input the same program takes commands for the daemon of a directory: `get_server_list` is how it is asked
whether it lives, `quit` how it is ended. A daemon that dies is started again, after a pause that grows.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from fairway.back_off import BackOff
from fairway.errors import InputError
from fairway.live.devices.checks import MPS_CONTROL, MPS_PIPES

_LOGS = "CUDA_MPS_LOG_DIRECTORY"
_ANSWER_SECONDS = 5.0
_BACK_OFF = BackOff(1.0, 60.0)


class MpsError(InputError):
    """There is no daemon for a GPU, and why."""


@dataclass(slots=True)
class _Daemon:
    pipes: Path
    deaths: int = 0
    not_before: float = 0.0
    trouble: str | None = None


@dataclass(slots=True)
class MpsDaemons:
    """The daemons of this machine, by the UUID of their GPU; their pipes and logs are below `directory`."""

    directory: Path
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    clock: Callable[[], float] = time.monotonic
    _daemons: dict[str, _Daemon] = field(default_factory=dict)

    def client_environment(self, gpu: str, part: float, memory_bytes: int | None = None) -> dict[str, str]:
        """What a process finds that is to have a part of a GPU, whose daemon is started if there is none."""
        daemon = self._started(gpu)
        found = {
            MPS_PIPES: str(daemon.pipes),
            "CUDA_VISIBLE_DEVICES": gpu,
            "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": f"{part * 100:g}",
        }
        if memory_bytes is not None:
            found["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] = f"0={memory_bytes // 2**20}M"
        return found

    def watch(self) -> dict[str, str]:
        """Start daemons that have died again; what is wrong with those that cannot be, by GPU."""
        for gpu, daemon in self._daemons.items():
            if daemon.trouble is None and self._lives(daemon):
                continue
            if self.clock() < daemon.not_before:
                continue
            daemon.deaths += 1
            daemon.not_before = self.clock() + _BACK_OFF.seconds(daemon.deaths)
            daemon.trouble = self._start(gpu, daemon)
        return {gpu: daemon.trouble for gpu, daemon in self._daemons.items() if daemon.trouble is not None}

    def stop(self, gpu: str) -> None:
        """End the daemon of a GPU, of which no job has a part any more."""
        daemon = self._daemons.pop(gpu, None)
        if daemon is not None:
            with suppress(MpsError):
                self._ask(daemon, "quit")

    def end(self, gpu: str) -> None:
        """End the daemon of a GPU that another process has started, if there is one."""
        daemon = _Daemon(self._pipes(gpu))
        if daemon.pipes.is_dir():
            with suppress(MpsError):
                self._ask(daemon, "quit")

    def stop_all(self) -> None:
        """End all daemons."""
        for gpu in list(self._daemons):
            self.stop(gpu)

    def _pipes(self, gpu: str) -> Path:
        return self.directory / "mps" / gpu / "pipes"

    def _started(self, gpu: str) -> _Daemon:
        daemon = self._daemons.get(gpu)
        if daemon is None:
            daemon = _Daemon(self._pipes(gpu))
            if (trouble := self._start(gpu, daemon)) is not None:
                raise MpsError(f"GPU {gpu}: {trouble}")
            self._daemons[gpu] = daemon
        if daemon.trouble is not None:
            raise MpsError(f"GPU {gpu}: {daemon.trouble}")
        return daemon

    def _start(self, gpu: str, daemon: _Daemon) -> str | None:
        """Start a daemon, unless one of before lives; what is wrong if that cannot be done."""
        logs = daemon.pipes.parent / "logs"
        try:
            for directory in (daemon.pipes, logs):
                directory.mkdir(mode=0o755, parents=True, exist_ok=True)
            owner = daemon.pipes.stat().st_uid
            if owner != os.geteuid():
                return f"{daemon.pipes} belongs to another user ({owner}); remove it, or run as that user"
            if not self._lives(daemon):
                self._run(daemon, ["-d"], None, {"CUDA_VISIBLE_DEVICES": gpu, _LOGS: str(logs)})
            if not self._lives(daemon):
                return f"the control daemon of MPS does not answer; see {logs / 'control.log'}"
        except MpsError as error:
            return str(error)
        except OSError as error:
            return f"{error.filename or daemon.pipes}: {error.strerror or error}"
        return None

    def _lives(self, daemon: _Daemon) -> bool:
        try:
            self._ask(daemon, "get_server_list")
        except MpsError:
            return False
        return True

    def _ask(self, daemon: _Daemon, command: str) -> str:
        return self._run(daemon, [], command, {})

    def _run(self, daemon: _Daemon, options: list[str], command: str | None, more: Mapping[str, str]) -> str:
        program = shutil.which(MPS_CONTROL, path=self.environment.get("PATH"))
        if program is None:
            raise MpsError(f"no {MPS_CONTROL} on PATH: parts of GPUs are not enforced; install the tools of the driver")
        try:
            done = subprocess.run(
                [program, *options],
                input=None if command is None else f"{command}\n",
                env={**self.environment, MPS_PIPES: str(daemon.pipes), **more},
                capture_output=True,
                text=True,
                timeout=_ANSWER_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise MpsError(f"{MPS_CONTROL} has not answered for {_ANSWER_SECONDS:g} s") from None
        except OSError as error:
            raise MpsError(f"{program}: {error.strerror or error}") from None
        if done.returncode:
            said = (done.stderr or done.stdout).strip().splitlines()
            raise MpsError(f"{MPS_CONTROL}: {said[-1] if said else f'exit status {done.returncode}'}")
        return done.stdout
