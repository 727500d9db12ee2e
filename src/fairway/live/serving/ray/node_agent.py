"""What runs on a node for an application: one agent for the node, and one actor for each worker.

The agent has the directories of the node, its keeper (`nodes.node_keeper`) in a thread, and the program beside the
workers. An actor runs the processes that its worker is, one life after the other, and says how each has ended; so what
a stage does to its process, Ray's own processes do not notice. Both are classes that Ray makes actors of.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import NamedTuple

import numpy as np

from fairway.live.serving.local.shared_file import make_file, mapped
from fairway.live.serving.nodes.backend import EPOCH, NodesBackend, port_file
from fairway.live.serving.nodes.guarded_channel import Credentials
from fairway.live.serving.nodes.node_keeper import LANES_BYTES, NodeKeeper, keeper_number
from fairway.live.serving.nodes.node_place import NodePlace, address_book
from fairway.live.serving.nodes.node_rows import NodeRows
from fairway.live.serving.seams.run_record import RunRecord
from fairway.live.serving.seams.worker_pool import WorkerPool
from fairway.live.serving.supervise.settings import ServingSettings

_PATIENCE_SECONDS = 20.0
_AGAIN_SECONDS = 1.0
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_SHARED_MEMORY = Path("/dev/shm")


@dataclass(frozen=True, slots=True)
class NodeContent:
    """What an agent has to know: how to serve, which node it is of, and what the nodes know each other by.

    `work_directory` is where the application is, `budgets` the memory of each worker, `models` how many there are.
    """

    settings: ServingSettings
    workflows: bytes
    node: int
    host: str
    secret: bytes
    certificate: bytes | None
    key: bytes | None
    profile: bytes | None
    work_directory: str
    budgets: tuple[float, ...]
    models: int


class Life(NamedTuple):
    """How a life of a worker has ended: its status, its last words, and what it did (`run_record`)."""

    status: str
    last_words: str
    lanes: bytes


class NodeAgent:
    """The agent of one node."""

    def __init__(self, content: NodeContent) -> None:
        self._content = content
        self._program: subprocess.Popen[str] | None = None
        self._sweeper: subprocess.Popen[bytes] | None = None
        self._keeper: NodeKeeper | None = None
        self._is_over = False

    def clock(self) -> tuple[str, float]:
        """Which machine this is, since it was started, and what its clock says."""
        return _BOOT.read_text() if _BOOT.exists() else uuid.uuid4().hex, time.monotonic()

    def start(self, clock_seconds: float) -> int:
        """Make the directories and start the keeper; returns its port."""
        content = self._content
        work = Path(content.work_directory)
        if not work.is_dir():
            raise FileNotFoundError(f"the directory {work} is not there")
        memory = (_SHARED_MEMORY if _SHARED_MEMORY.is_dir() else Path("/tmp")) / f"fairway-{uuid.uuid4().hex[:12]}"
        directory = node_directory(content.settings, content.node)
        settings = self._settings = replace(
            content.settings,
            directory=directory,
            memory_directory=memory,
            backend="nodes",
            devices=(),
            parent_owns_memory=False,
        )
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        memory.mkdir(mode=0o700)
        self._sweeper = subprocess.Popen(
            [sys.executable, "-m", "fairway.live.serving.nodes.sweeper", str(os.getpid()), str(memory)]
        )
        wanted = {"certificate.pem": content.certificate, "key.pem": content.key, "profile.yaml": content.profile}
        certificate, key, profile = self._write_files(directory, wanted)
        settings = self._settings = replace(settings, profile=profile, wire_certificate=certificate, wire_key=key)
        credentials = Credentials(content.secret, certificate, key)
        NodePlace(content.host, content.host, credentials, clock_seconds).write(directory)
        settings.save(directory / "settings.json")
        (directory / "workflows.json").write_bytes(content.workflows)
        workers, processes = len(content.budgets), len(settings.processes)
        make_file(settings.table, NodeRows.size(workers, content.models))
        rows = NodeRows(
            mapped(settings.table, NodeRows.size(workers, content.models)), np.array(content.budgets), content.models
        )
        rows.clear()
        make_file(memory / "running", RunRecord.size(processes))
        backend = NodesBackend(settings)
        number = keeper_number(content.node)
        transport = backend.transport(number)
        ports: list[int] = []
        transport.announce_to(ports.append)
        self._keeper = keeper = NodeKeeper(
            number,
            transport,
            address_book(directory),
            rows,
            mapped(memory / "running", RunRecord.size(processes)),
            memory,
            lambda process: port_file(settings, process),
            backend.now,
        )
        Thread(target=keeper.serve, name="fairway-keeper", daemon=True).start()
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not ports:
            if time.monotonic() > deadline:
                raise OSError(f"the keeper cannot listen at {content.host}")
            time.sleep(0.005)
        return ports[0]

    def run_beside(self, program: Sequence[str], files: dict[str, bytes]) -> str:
        """Run a program beside the workers, and again should it end; returns the first line that it prints."""
        self._write_files(self._settings.directory, files)
        begun: SimpleQueue[str | OSError] = SimpleQueue()
        Thread(target=self._see_to_it, args=(program, begun), name="fairway-beside", daemon=True).start()
        first = begun.get()
        if isinstance(first, OSError):
            raise first
        return first

    def end(self) -> None:
        """Remove everything from this node but logs."""
        self._is_over = True
        if self._program is not None:
            self._program.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._program.wait(_PATIENCE_SECONDS / 4)
            self._program.kill()
        if self._keeper is not None:
            self._keeper.stop()
        if self._sweeper is not None:
            shutil.rmtree(self._settings.memory_directory, ignore_errors=True)
            self._sweeper.kill()
            self._sweeper.wait()
        with suppress(AttributeError, OSError):
            for path in self._settings.directory.iterdir():
                if path.suffix != ".log":
                    path.unlink()

    def remove_directory(self) -> None:
        """Remove logs, too."""
        shutil.rmtree(node_directory(self._content.settings, self._content.node), ignore_errors=True)

    def _write_files(self, directory: Path, files: dict[str, bytes | None] | dict[str, bytes]) -> list[Path | None]:
        written: list[Path | None] = []
        for name, content in files.items():
            if content is None:
                written.append(None)
                continue
            path = directory / name
            path.unlink(missing_ok=True)
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(content)
            written.append(path)
        return written

    def _begun(self, program: Sequence[str]) -> str:
        log = (self._settings.directory / "beside.log").open("ab")
        with log:
            self._program = subprocess.Popen(
                [sys.executable, *program, str(self._settings.directory), self._content.host, str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=self._content.work_directory,
                env=_environment(self._content.work_directory),
            )
        assert self._program.stdout is not None
        first = self._program.stdout.readline().strip()
        if not first:
            self._program.stdout.close()
            self._program.wait()
            lines = (self._settings.directory / "beside.log").read_text(errors="replace").strip().splitlines()
            raise OSError(lines[-1] if lines else "the program beside the workers did not start")
        return first

    def _see_to_it(self, program: Sequence[str], begun: SimpleQueue[str | OSError]) -> None:
        """In a thread that stays: the program ends with the thread that has started it."""
        while not self._is_over:
            try:
                begun.put(self._begun(program))
            except OSError as error:
                begun.put(error)
            assert self._program is not None
            assert self._program.stdout is not None
            if not self._program.stdout.closed:
                self._program.communicate()  # until it ends, whatever it prints meanwhile
            if not self._is_over:
                time.sleep(_AGAIN_SECONDS)


class WorkerActor:
    """One worker on a node: its processes, one after the other; `run` and `kill` are called in threads of their own."""

    def __init__(self) -> None:
        self._pool: WorkerPool | None = None
        self._number = -1

    def run(self, directory: str, number: int, epoch: int, work_directory: str) -> Life:
        """Be one life of a worker, until it ends."""
        settings = ServingSettings.read(Path(directory) / "settings.json")
        backend = NodesBackend(settings)
        for lane in backend.run_record().lanes(number):
            lane.clear()
        os.environ.update(_environment(work_directory))
        os.environ[EPOCH] = str(epoch)
        os.chdir(work_directory)
        self._pool, self._number = backend.pool(), number
        self._pool.start(number, epoch)
        while (status := self._pool.ended(number)) is None:
            self._pool.wait(_AGAIN_SECONDS, ())
        size = RunRecord.size(len(settings.processes))
        lanes = mapped(settings.memory_directory / "running", size)[number * LANES_BYTES : (number + 1) * LANES_BYTES]
        return Life(status, self._pool.last_words(number), bytes(lanes))

    def kill(self) -> None:
        """End the process at once."""
        if self._pool is not None:
            self._pool.kill(self._number)

    def stop(self, grace_seconds: float) -> None:
        """Ask the process to end, and kill it if it has not after this time."""
        if self._pool is not None:
            self._pool.stop(grace_seconds)


def node_directory(settings: ServingSettings, node: int) -> Path:
    """The serving directory on a node: one below that of the supervisor, since nodes may share a machine."""
    return settings.directory / f"node-{node}"


def _environment(work_directory: str) -> dict[str, str]:
    """What a process of the application has: the modules of its work directory, and nothing of Ray's own."""
    known = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    path = os.pathsep.join(dict.fromkeys(filter(None, [work_directory, *known])))
    return {**os.environ, "PYTHONPATH": path}
