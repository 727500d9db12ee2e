"""Keeps the workers of an application alive: starts them, notices when one dies, tells the others, starts it again.

It takes no part in serving: requests go from clients to workers, and from worker to worker; or through a dispatcher, if
the scheduler needs one, which is looked after in the same way. When a worker dies, its row is marked absent at once, so
that nothing more is placed there, and then everybody is told. Only when all have heard it does a new one take its
place, so that nobody takes the two for one. A worker whose loop does not answer, since its process is stopped or a
stage lets nobody else run, cannot say in its row that it is busy; this is said for it.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import tempfile
import time
import uuid
from contextlib import suppress
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Any, Self

from fairway.engine.scheduler_names import check_scheduler_name
from fairway.errors import FairwayError, InputError
from fairway.live.serving.invoked import invoked_workflows
from fairway.live.serving.settings import ServingSettings
from fairway.live.serving.shared_table import SharedTable
from fairway.live.serving.spans import check_traces
from fairway.live.serving.watched import Watched
from fairway.live.serving.watching import Watch
from fairway.live.serving.wire import Channel, WireError, connect

_PATIENCE_SECONDS = 60.0
_LONGEST_PATH = 107
_SHARED_MEMORY = Path("/dev/shm")
"""Bytes in the path of a Unix socket."""


class Supervisor:
    """The workers of one application; use it as a context, or call `start` and `stop`."""

    def __init__(self, settings: ServingSettings) -> None:
        self.settings = settings
        self.workflows: tuple[str, ...] = ()
        self._workers: list[Watched] = []
        self._table: SharedTable
        self._watch: Watch | None = None
        self._watching: Thread | None = None
        self._lock: int | None = None
        self._removes_directory = False

    @classmethod
    def of(cls, target: str, *, directory: Path | None = None, **options: Any) -> Supervisor:
        """A supervisor for an application, with directories of its own unless one is given."""
        place = (
            Path(tempfile.gettempdir()) / f"fairway-serve-{uuid.uuid4().hex[:8]}" if directory is None else directory
        )
        supervisor = cls(ServingSettings(target, place, memory_directory(), **options))
        supervisor._removes_directory = directory is None
        return supervisor

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def restarts(self) -> int:
        """How many workers have died and were started again."""
        return 0 if self._watch is None else self._watch.restarts

    def pids(self) -> list[int]:
        """The processes of the workers, by number; last that of the dispatcher, if there is one."""
        return [worker.process.pid for worker in self._workers]

    def start(self) -> None:
        """Start the workers; when this returns, all of them listen. If it cannot, nothing is left behind."""
        settings = self.settings
        check_scheduler_name(settings.scheduler)
        check_traces(settings.traces)
        application = settings.application()
        fleet = settings.fleet(application)
        settings.graphs(application, fleet)
        numbers = range(settings.workers)
        if settings.dispatcher is not None:
            invoked_workflows(settings, application)
            numbers = range(settings.dispatcher + 1)
        longest = max(len(os.fsencode(settings.socket(number))) for number in numbers)
        if longest > _LONGEST_PATH:
            raise InputError(
                f"directory: {settings.directory} given, whose sockets would have names of {longest} bytes, at most "
                f"{_LONGEST_PATH} are possible; give a shorter one"
            )
        try:
            self._take_directory()
            settings.memory_directory.mkdir(mode=0o700)
            self._table = SharedTable.create(fleet, settings.table)
            settings.save(settings.directory / "settings.json")
            self.workflows = tuple(application.workflows)
            (settings.directory / "workflows.json").write_text(json.dumps(self.workflows))
            self._workers = [Watched(settings, number) for number in numbers]
            self._watch = Watch(settings, self._table, self._workers)
            # The system ends a process with the thread that started it, so one thread starts them all, and stays.
            self._watching = Thread(target=self._watch.run, name="fairway-supervisor", daemon=True)
            self._watching.start()
            self._wait_for_all()
            self._watch.restarts_them = True
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the workers and remove what they shared."""
        if self._watch is not None and self._watching is not None:
            self._watch.end()
            self._watching.join()
            self._watching = None
        self._workers = []
        if self._lock is None:
            return
        shutil.rmtree(self.settings.memory_directory, ignore_errors=True)
        place = self.settings.directory
        for path in (*place.glob("*.sock"), place / "settings.json", place / "workflows.json", place / "lock"):
            path.unlink(missing_ok=True)
        os.close(self._lock)
        self._lock = None
        if self._removes_directory:
            shutil.rmtree(place, ignore_errors=True)

    def _take_directory(self) -> None:
        """Make sure that nobody else serves from here, and clear up after one that was killed."""
        place = self.settings.directory
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        while True:
            lock = os.open(place / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(lock)
                raise InputError(f"directory: {place} is in use by another 'fairway serve'; give another one") from None
            with suppress(OSError):
                if os.fstat(lock).st_ino == (place / "lock").stat().st_ino:
                    break
            os.close(lock)  # its owner has just removed it
        self._lock = lock
        with suppress(OSError, ValueError, TypeError, KeyError):
            before = ServingSettings.read(place / "settings.json")
            if before.memory_directory.name.startswith("fairway-"):
                shutil.rmtree(before.memory_directory, ignore_errors=True)

    def _wait_for_all(self) -> None:
        deadline = time.monotonic() + _PATIENCE_SECONDS * max(1, len(self._workers) / 4)
        watch = self._watch
        assert watch is not None
        for worker in self._workers:
            while not watch.is_there(worker):
                if watch.problem is not None:
                    raise watch.problem
                if worker.has_ended():
                    raise InputError(f"{worker.name} did not start: {worker.last_line()}")
                if time.monotonic() > deadline:
                    raise FairwayError(f"{worker.name} has not started in time: {worker.last_line()}")
                time.sleep(0.01)


def memory_directory() -> Path:
    """A new place in memory for what processes share; the supervisor makes it."""
    place = _SHARED_MEMORY if _SHARED_MEMORY.is_dir() else Path(tempfile.gettempdir())
    return place / f"fairway-{uuid.uuid4().hex[:12]}"


def tallies(settings: ServingSettings) -> dict[int, dict[str, Any]]:
    """What the workers have counted, and the dispatcher if there is one, of those that answer within a second."""
    channels: dict[int, Channel] = {}
    found: dict[int, dict[str, Any]] = {}
    try:
        for number in sorted({*range(settings.workers), *settings.doors}):
            with suppress(OSError):
                channels[number] = Channel(connect(settings.socket(number)))
                channels[number].send(("tally",))
        deadline = time.monotonic() + 1.0
        waiting = dict(channels)
        while waiting and (left := deadline - time.monotonic()) > 0:
            ready, _, _ = select.select(waiting.values(), [], [], left)
            for number in [number for number, channel in waiting.items() if channel in ready]:
                messages: list[tuple[Any, ...]] | None = None
                with suppress(WireError):
                    messages = waiting[number].receive()
                for message in messages or ():
                    found[number] = message[1]
                if messages is None or number in found:
                    del waiting[number]
    finally:
        for channel in channels.values():
            channel.close()
    return dict(sorted(found.items()))
