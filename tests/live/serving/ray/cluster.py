"""A real Ray cluster on this machine for tests: nodes at loopback addresses, each started by `ray start`.

Everything is of this cluster alone: its directory, its ports, its token. Processes are ended by their number, found by
the directory or the address in their command line, and never by `ray stop`, which would end the clusters of others.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

_RAY = str(Path(sys.executable).parent / "ray")
_PATIENCE_SECONDS = 60.0
_ATTEMPTS = 3


class RayCluster:
    """A cluster with a head and other nodes; use it as a context."""

    def __init__(self, nodes: int = 3, *, gpus: int = 2, token: bool = True) -> None:
        # Short: Ray makes Unix sockets in it.
        self.directory = Path(tempfile.mkdtemp(prefix="fwr", dir="/tmp"))
        self.address = f"127.0.0.2:{free_port()}"
        self._nodes, self._gpus = nodes, gpus
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("RAY_")},
            "RAY_AUTH_MODE": "token" if token else "disabled",
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
            "RAY_health_check_period_ms": "500",
            "RAY_health_check_failure_threshold": "4",
        }
        if token:
            self.environment["RAY_AUTH_TOKEN"] = secrets.token_hex(32)

    def __enter__(self) -> Self:
        try:
            self.start_node(0)
            with ThreadPoolExecutor() as threads:  # the head has to be there, the others may start together
                list(threads.map(self.start_node, range(1, self._nodes)))
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start_node(self, node: int) -> None:
        """Start a node; the first is the head."""
        place = ["--address", self.address]
        if node == 0:
            port = self.address.rpartition(":")[2]
            place = ["--head", "--port", port, "--temp-dir", str(self.directory), "--include-dashboard", "false"]
        options = [
            *("--node-ip-address", host_of(node), "--num-cpus", "0", "--num-gpus", str(self._gpus)),
            *("--labels", f"ray.io/accelerator-type={'AB'[node % 2]}100", "--object-store-memory", str(80 * 2**20)),
            *("--include-log-monitor", "false", "--disable-usage-stats"),
        ]
        command = ["nice", "-n", "10", _RAY, "start", *place, *options]
        for _ in range(_ATTEMPTS):  # Ray gives a node 30 s, which on a machine that is busy may be too little
            done = subprocess.run(
                command,
                env=self.environment,
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
                stdin=subprocess.DEVNULL,
            )
            if done.returncode == 0:
                return
            self._kill([pid for pid in self._pids() if host_of(node).encode() in _command(pid)])
        raise AssertionError(done.stdout + done.stderr)

    def kill_node(self, node: int) -> None:
        """End a node at once, as when its machine fails: its raylet and all that it has started, and what that has."""
        host = host_of(node).encode()
        (raylet,) = [pid for pid in self._pids() if b"raylet/raylet" in _command(pid) and host in _command(pid)]
        parents = {pid: _parent(pid) for pid in _all()}
        doomed = [raylet]
        for pid in doomed:
            doomed += [child for child, parent in parents.items() if parent == pid]
        self._kill(doomed)

    def close(self) -> None:
        """End everything."""
        end = time.monotonic() + _PATIENCE_SECONDS
        while (pids := self._pids()) and time.monotonic() < end:
            self._kill(pids)
            time.sleep(0.05)
        shutil.rmtree(self.directory, ignore_errors=True)

    def _pids(self) -> list[int]:
        """The processes of this cluster, by the directory that they were told of."""
        mark = os.fsencode(self.directory)
        return [pid for pid in _all() if pid != os.getpid() and (mark in _command(pid) or mark in _environment(pid))]

    def _kill(self, pids: list[int]) -> None:
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue


def host_of(node: int) -> str:
    """Every node has a loopback address of its own."""
    return f"127.0.0.{node + 2}"


def free_port() -> int:
    """A port that no process listens at."""
    with socket.socket() as one:
        one.bind(("127.0.0.2", 0))
        port: int = one.getsockname()[1]
        return port


def _all() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]


def _command(pid: int) -> bytes:
    return _read(Path(f"/proc/{pid}/cmdline"))


def _environment(pid: int) -> bytes:
    return _read(Path(f"/proc/{pid}/environ"))


def _parent(pid: int) -> int:
    fields = _read(Path(f"/proc/{pid}/stat")).rpartition(b")")[2].split()
    return int(fields[1]) if fields else 0


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
