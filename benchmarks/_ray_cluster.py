"""A Ray cluster for tests and benchmarks: several nodes on this machine, each as if it were a machine to be killed.

Nothing is shared with other clusters of the machine: ports are free ones, files and the token are in a directory of the
user. Whatever a node starts, Ray's processes, agents and jobs, carries the node's mark in its environment. By it, and
never by a name, processes are found and killed. Ray itself is not imported here: it changes the process that does so.
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self
from uuid import uuid4

from fairway.live.local.identity import process_table

PATIENCE = 90.0
_CLUSTER, _NODE = "TEST_RAY_CLUSTER", "TEST_RAY_NODE"  # no names of Fairway, which jobs do not inherit


def free_port(host: str = "127.0.0.1") -> int:
    """A port of an address at which nothing listens."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port


def carrying(mark: str) -> list[int]:
    """The processes that have a mark in their environment."""
    found = []
    for row in process_table():
        with suppress(OSError):
            if mark.encode() in Path(f"/proc/{row.pid}/environ").read_bytes().split(b"\0"):
                found.append(row.pid)
    return found


def kill_all(mark: str) -> None:
    """Kill whatever carries a mark, and what that starts meanwhile."""
    deadline = time.monotonic() + 20
    while found := carrying(mark):
        assert time.monotonic() < deadline, f"processes {found} cannot be killed"
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)


class RayCluster:
    """Use it as a context; `environment` is what a client needs to be let in."""

    def __init__(self, directory: Path, *, token: str | None = None, host: str = "127.0.0.1") -> None:
        self._directory = directory
        self.name = uuid4().hex
        self.port = free_port(host)
        self.address = f"{host}:{self.port}"
        self.environment = {"RAY_AUTH_MODE": "disabled"}
        if token is not None:
            path = directory / "token"
            path.write_text(token)
            self.environment = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(path)}
        self._starting: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        kill_all(f"{_CLUSTER}={self.name}")
        for process in self._starting.values():
            process.wait()

    def start(
        self,
        node: str,
        labels: str = "",
        *,
        head: bool = False,
        cpus: int = 1,
        gpus: int = 0,
        host: str | None = None,
        without: Path | None = None,
    ) -> None:
        """Start a node, and wait until it is there: two of one machine that start at once take each other's files.

        It may have an address of its own, and be `without` a directory of this machine, which is empty for what runs
        there; only root can have that.
        """
        where = ["--head", f"--port={self.port}", "--include-dashboard=false", f"--temp-dir={self._directory / 'r'}"]
        command = [str(Path(sys.executable).parent / "ray"), "start", "--block", "--disable-usage-stats"]
        command += where if head else [f"--address={self.address}"]
        command += [] if host is None else [f"--node-ip-address={host}"]
        command += [f"--num-cpus={cpus}", f"--num-gpus={gpus}", f"--object-store-memory={80 * 10**6}"]
        command += ["--min-worker-port=0", "--max-worker-port=0", "--include-log-monitor=false"]
        command += [f"--labels={labels}"]
        if without is not None:
            hide = 'mount -t tmpfs none "$0" && exec "$@"'
            command = ["unshare", "--mount", "sh", "-c", hide, str(without), *command]
        if head:  # of a head that was killed; Ray takes the nodes that it has left for signs that it still runs
            (self._directory / "r" / "ray_current_cluster").unlink(missing_ok=True)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
        environment |= {
            **self.environment,
            "RAY_TMPDIR": str(self._directory),
            "RAY_enable_worker_prestart": "false",
            _CLUSTER: self.name,
            _NODE: f"{self.name}-{node}",
        }
        with (self._directory / f"{node}.log").open("ab") as log:
            self._starting[node] = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                start_new_session=True,
            )  # fmt: skip
        log_file, deadline = self._directory / f"{node}.log", time.monotonic() + PATIENCE
        while "Ray runtime started" not in (said := log_file.read_text(errors="replace")):
            assert self._starting[node].poll() is None, said
            assert time.monotonic() < deadline, said
            time.sleep(0.05)

    def processes(self, node: str) -> list[int]:
        """All processes of a node, jobs included."""
        return carrying(f"{_NODE}={self.name}-{node}")

    def raylet(self, node: str) -> int:
        """The process by which Ray knows that a node is there."""
        for pid in self.processes(node):
            with suppress(OSError):
                if Path(f"/proc/{pid}/comm").read_text().strip() == "raylet":
                    return pid
        raise AssertionError(f"node {node} has no raylet")

    def drain(self, node: str, *, seconds: int) -> None:
        """Give notice that a node ends in so many seconds, as a cloud does that takes its machine back."""
        (identity,) = [one for one in self._raylet_options(node) if one.startswith("--node_id=")] or [""]
        command = [str(Path(sys.executable).parent / "ray"), "drain-node", "--address", self.address]
        command += ["--node-id", identity.partition("=")[2], "--reason", "DRAIN_NODE_REASON_PREEMPTION"]
        command += ["--reason-message", "the machine is taken back", "--deadline-remaining-seconds", str(seconds)]
        done = subprocess.run(
            command,
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def _raylet_options(self, node: str) -> list[str]:
        return Path(f"/proc/{self.raylet(node)}/cmdline").read_text().split("\0")

    def kill(self, node: str) -> None:
        """As if the power of the node's machine were cut."""
        (self._directory / f"{node}.log").write_text("")
        kill_all(f"{_NODE}={self.name}-{node}")
        self._starting.pop(node).wait()


class NumberedCluster(RayCluster):
    """Several nodes with numbers, each at a loopback address of its own and with emulated GPUs; the first is the head.

    `environment` is the whole of what a client needs. Types are told by labels, or, where they are `declared`, so are
    the accelerators themselves, of which Ray knows nothing then. Nodes and clients have this `environment` besides.
    """

    def __init__(
        self,
        nodes: int = 3,
        *,
        gpus: int = 2,
        token: bool = True,
        declared: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._files = TemporaryDirectory(prefix="fwr", dir="/tmp")  # short: Ray makes Unix sockets in it
        self.directory = Path(self._files.name)
        super().__init__(self.directory, token=secrets.token_hex(32) if token else None, host=host_of(0))
        self._nodes, self._gpus, self._declared = nodes, gpus, declared
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("RAY_")},
            **self.environment,
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
            "RAY_health_check_period_ms": "500",
            "RAY_health_check_failure_threshold": "4",
            **(environment or {}),
        }

    def __enter__(self) -> Self:
        try:
            for number in range(self._nodes):
                self.start_node(number)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self._files.cleanup()

    def start_node(self, number: int, *, without: Path | None = None) -> None:
        """Start a node, or start it again; `without` a directory, as in `start`."""
        labels = f"ray.io/accelerator-type={'AB'[number % 2]}100"
        if self._declared:
            labels += f",fairway.io/accelerators={self._gpus}"
        gpus = 0 if self._declared else self._gpus
        host = host_of(number)
        self.start(str(number), labels, head=number == 0, cpus=0, gpus=gpus, host=host, without=without)

    def kill_node(self, number: int) -> None:
        """As if its machine were cut off from its power."""
        self.kill(str(number))


def host_of(number: int) -> str:
    """Every node has a loopback address of its own."""
    return f"127.0.0.{number + 2}"
