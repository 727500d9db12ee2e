"""What runs on a node for an application: one agent for the node, and one actor for each worker.

The agent has the directories of the node, its keeper (`nodes.node_keeper`) in a thread, and the program beside the
workers. An actor runs the processes that its worker is, one life after the other, and says how each has ended; so what
a stage does to its process, Ray's own processes do not notice. Both are classes that Ray makes actors of.

Ray makes them and has no part in what they do: the supervisor speaks with the keeper, and the keeper with the actors.
So neither needs Ray's head, and each ends with whom it hears: the agent, and all that it has started, with the line of
the supervisor, and the actors with their agent.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Lock, Thread, Timer

import numpy as np

from fairway.live.serving.local.shared_file import make_file, mapped
from fairway.live.serving.local.unix_socket import connect
from fairway.live.serving.nodes.backend import EPOCH, NodesBackend, port_file
from fairway.live.serving.nodes.guarded_channel import Credentials
from fairway.live.serving.nodes.node_keeper import LANES_BYTES, NodeKeeper, keeper_number
from fairway.live.serving.nodes.node_place import NodePlace, address_book
from fairway.live.serving.nodes.node_rows import NodeRows
from fairway.live.serving.seams.run_record import RunRecord
from fairway.live.serving.sockets.channel import Channel
from fairway.live.serving.supervise.settings import ServingSettings

_PATIENCE_SECONDS = 20.0
_AGAIN_SECONDS = 1.0
_UNMET_SECONDS = 300.0
"""So long an agent waits for a supervisor that has made it."""

_GRACE_SECONDS, _LAST_WORDS_SECONDS = 2.0, 1.0
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_SHARED_MEMORY = Path("/dev/shm")


@dataclass(frozen=True, slots=True)
class NodeContent:
    """What an agent has to know: how to serve, which node it is of, and what the nodes know each other by.

    `work_directory` is where the application is, `budgets` the memory of each worker, `models` how many there are.
    Logs are removed with the rest unless it `keeps_logs`.
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
    keeps_logs: bool = True


def _leave() -> None:
    os._exit(0)  # Ray's own end of an actor would ask its head


class NodeAgent:
    """The agent of one node; `leave` ends its process."""

    def __init__(self, content: NodeContent, leave: Callable[[], None] = _leave) -> None:
        self._content, self._leave = content, leave
        self._program: subprocess.Popen[str] | None = None
        self._sweeper: subprocess.Popen[bytes] | None = None
        self._keeper: NodeKeeper | None = None
        self._is_over = False
        self._ending = Lock()
        self._met, self._left = Event(), Event()
        Thread(target=self._see_out, name="fairway-line", daemon=True).start()

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
        workers = len(content.budgets)
        make_file(settings.table, NodeRows.size(workers, content.models))
        rows = NodeRows(
            mapped(settings.table, NodeRows.size(workers, content.models)), np.array(content.budgets), content.models
        )
        rows.clear()
        make_file(memory / "running", _record_size(settings))
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
            mapped(memory / "running", _record_size(settings)),
            memory,
            lambda process: port_file(settings, process),
            backend.now,
            met=self._met.set,
            left=self._left.set,
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
        """Remove everything from this node, but logs that are kept."""
        with self._ending:
            if self._is_over:
                return
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
            directory = node_directory(self._content.settings, self._content.node)
            if not self._content.keeps_logs:
                shutil.rmtree(directory, ignore_errors=True)
            with suppress(OSError):
                for path in directory.iterdir():
                    if path.suffix != ".log":
                        path.unlink()

    def _see_out(self) -> None:
        """End with the supervisor's line, or if none comes."""
        if self._met.wait(_UNMET_SECONDS):
            self._left.wait()
        self.end()
        self._leave()

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
    """One worker on a node: its processes, one after the other, as the node's keeper says; `leave` ends the actor's."""

    def __init__(self, leave: Callable[[], None] = _leave) -> None:
        self._leave = leave

    def serve(self, directory: str, keeper: int, name: str, work_directory: str) -> None:
        """Do what the keeper with this number says to the actor of this name, until that is gone."""
        try:
            self._follow(Path(directory), keeper, name, work_directory)
        except BaseException:
            Timer(_LAST_WORDS_SECONDS, self._leave).start()
            raise
        self._leave()

    def _follow(self, directory: Path, keeper: int, name: str, work_directory: str) -> None:
        settings = ServingSettings.read(directory / "settings.json")
        backend = NodesBackend(settings)
        os.environ.update(_environment(work_directory))
        os.chdir(work_directory)
        pool, record = backend.pool(), mapped(settings.memory_directory / "running", _record_size(settings))
        life: tuple[int, int] | None = None
        with closing(Channel(connect(settings.socket(keeper)))) as line:
            line.send(("actor", name))
            while (messages := line.receive()) is not None:
                for message in messages:
                    match message:
                        case ("begin", int(number), int(epoch)):
                            life = (number, epoch)
                            for lane in RunRecord(record).lanes(number):
                                lane.clear()
                            os.environ[EPOCH] = str(epoch)
                            pool.start(number, epoch)
                        case ("kill",) if life is not None:
                            pool.kill(life[0])
                        case ("stop", float(grace_seconds)):
                            pool.stop(grace_seconds)
                if life is not None and (status := pool.ended(life[0])) is not None:
                    lanes = bytes(record[life[0] * LANES_BYTES : (life[0] + 1) * LANES_BYTES])
                    line.send(("ended", name, *life, status, pool.last_words(life[0]), lanes))
                    life = None
                pool.wait(_AGAIN_SECONDS, [line])
        pool.stop(_GRACE_SECONDS)
        pool.close()


def _record_size(settings: ServingSettings) -> int:
    return RunRecord.size(len(settings.processes))


def node_directory(settings: ServingSettings, node: int) -> Path:
    """The serving directory on a node: one below that of the supervisor, since nodes may share a machine."""
    return settings.directory / f"node-{node}"


def _environment(work_directory: str) -> dict[str, str]:
    """What a process of the application has: the modules of its work directory, and nothing of Ray's own."""
    known = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    path = os.pathsep.join(dict.fromkeys(filter(None, [work_directory, *known])))
    return {**os.environ, "PYTHONPATH": path}
