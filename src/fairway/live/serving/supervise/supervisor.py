"""Keeps the workers of an application alive: starts them, notices when one dies, tells the others, starts it again.

It takes no part in serving: requests go from clients to workers, and from worker to worker; or through a planner, if
the scheduler needs one, which is looked after in the same way. What is to be done when is decided by the `monitor`,
whose turns are taken by a thread here. A worker whose loop does not answer, since its process is stopped or a stage
lets no other code run, cannot say in its row that it is busy; the monitor says it.
"""

from __future__ import annotations

import json
import logging
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Any, Self

from fairway.engine.serving.schedule import schedule_of
from fairway.errors import FairwayError, InputError
from fairway.live.serving.application.definition import Application
from fairway.live.serving.runtime.planning import desk_options
from fairway.live.serving.runtime.spans import check_traces
from fairway.live.serving.seams.backend import Seams, backend_of
from fairway.live.serving.seams.transport import Line, WireError
from fairway.live.serving.seams.values import worker_owner
from fairway.live.serving.seams.worker_pool import WorkerPool
from fairway.live.serving.supervise.blame import Blame
from fairway.live.serving.supervise.monitor import Monitor
from fairway.live.serving.supervise.settings import ServingSettings
from fairway.live.serving.supervise.supervised_worker import SupervisedWorker
from fairway.place.fleet import Fleet

_LOG = logging.getLogger(__name__)

_PATIENCE_SECONDS = 60.0
_GRACE_SECONDS = 5.0
_PAUSE_SECONDS = 0.5
_SHARED_MEMORY = Path("/dev/shm")


class Supervisor:
    """The workers of one application; use it as a context, or call `start` and `stop`."""

    def __init__(self, settings: ServingSettings) -> None:
        self.settings = settings
        self.workflows: tuple[str, ...] = ()
        self._backend = backend_of(settings)
        self._pool: WorkerPool
        self._workers: list[SupervisedWorker] = []
        self._monitor: Monitor | None = None
        self._thread: Thread | None = None
        self._over = False
        self._problem: Exception | None = None
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
        return 0 if self._monitor is None else self._monitor.restarts

    def pids(self) -> list[int]:
        """The processes of the workers, by number; last that of the planner, if there is one."""
        return [self._pool.pid(worker.number) for worker in self._workers]

    def start(self) -> None:
        """Start the workers; when this returns, all of them listen. If it cannot, nothing is left behind."""
        settings = self.settings
        schedule = schedule_of(settings.scheduler)
        check_traces(settings.traces)
        application = settings.application()
        fleet = settings.fleet(application)
        graphs = settings.graphs(application, fleet)
        workflows = dict(zip(graphs, application.workflows.values(), strict=True))
        desk_options(schedule, fleet, workflows, shares=settings.shares(workflows))
        self._backend.check()
        try:
            self._backend.take()
            self._backend.make_rows(fleet)
            settings.save(settings.directory / "settings.json")
            self.workflows = tuple(application.workflows)
            (settings.directory / "workflows.json").write_text(json.dumps(self.workflows))
            self._pool = self._backend.pool()
            self._monitor = monitor_of(
                settings, self._backend, self._pool, fleet, application, self._backend.clear_after_clients
            )
            self._workers = self._monitor.workers
            self._over, self._problem = False, None
            self._thread = Thread(target=self._look_after_them, name="fairway-supervisor", daemon=True)
            self._thread.start()
            self._wait_for_all()
        except BaseException:
            self.stop()
            raise

    def run_beside(self, program: Sequence[str], files: Mapping[str, bytes]) -> list[str]:
        """Run a program beside the workers on every machine that they are on, as the backend says."""
        return self._backend.run_beside(program, files)

    def stop(self) -> None:
        """End the workers and remove what they shared."""
        if self._thread is not None:
            self._over = True
            self._pool.wake()
            self._thread.join()
            self._thread = None
            self._pool.close()
        self._workers = []
        self._backend.release()
        if self._removes_directory:
            shutil.rmtree(self.settings.directory, ignore_errors=True)

    def _look_after_them(self) -> None:
        """The thread that starts the workers, takes the monitor's turns until all is over, and ends the workers."""
        monitor = self._monitor
        assert monitor is not None
        try:
            monitor.start()
        except Exception as error:
            self._problem = error
        while not self._over:
            self._pool.wait(monitor.patience, monitor.lines)
            try:
                monitor.turn()
            except Exception:  # such as no memory for a new process; without this thread the workers would end
                _LOG.exception("the workers could not be looked after; tried again")
                time.sleep(_PAUSE_SECONDS)
        # Before the system ends them with this thread, which would look to them as if the supervisor had died.
        self._pool.stop(_GRACE_SECONDS)
        monitor.close()

    def _wait_for_all(self) -> None:
        deadline = time.monotonic() + _PATIENCE_SECONDS * max(1, len(self._workers) / 4)
        monitor = self._monitor
        assert monitor is not None
        # Once all have started, requests come in, which may cost workers: these are replaced as they are later.
        while not monitor.is_complete and not monitor.restarts:
            if self._problem is not None:
                raise self._problem
            for worker in [] if monitor.replaces else self._workers:
                if self._pool.ended(worker.number) is not None:
                    raise InputError(f"{worker.name} did not start: {self._pool.last_words(worker.number)}")
            if time.monotonic() > deadline:
                late = next((worker for worker in self._workers if not worker.is_there), self._workers[0])
                raise FairwayError(f"{late.name} has not started in time: {self._pool.last_words(late.number)}")
            time.sleep(0.01)


def monitor_of(
    settings: ServingSettings,
    seams: Seams,
    pool: WorkerPool,
    fleet: Fleet,
    application: Application,
    clear_after_clients: Callable[[], None] = lambda: None,
) -> Monitor:
    """The monitor of all processes of an application, over any seams."""
    values = seams.values("supervisor-")
    return Monitor(
        [
            SupervisedWorker(number, settings.name_of(number), seams.connect, has_row=number != settings.planner)
            for number in settings.processes
        ],
        pool,
        lambda tell_others: seams.marks(fleet, tell_others),
        seams.now,
        lambda number, epoch: values.clear(worker_owner(number, epoch)),
        clear_after_clients,
        seams.run_record(),
        Blame(list(application.workflows), list(application.models)),
        settings.doors,
    )


def memory_directory() -> Path:
    """A new place in memory for what processes share; the backend makes it."""
    place = _SHARED_MEMORY if _SHARED_MEMORY.is_dir() else Path(tempfile.gettempdir())
    return place / f"fairway-{uuid.uuid4().hex[:12]}"


def tallies(settings: ServingSettings) -> dict[int, dict[str, Any]]:
    """What the workers have counted, and the planner if there is one, of those that answer within a second."""
    return _said(settings, "tally")


def recent(settings: ServingSettings) -> dict[int, dict[str, Any]]:
    """What they did lately: `runtime.recent` says what of it they keep."""
    return _said(settings, "recent")


def _said(settings: ServingSettings, asked: str) -> dict[int, dict[str, Any]]:
    backend = backend_of(settings)
    lines: dict[int, Line] = {}
    found: dict[int, dict[str, Any]] = {}
    try:
        for number in settings.processes:
            with suppress(OSError):
                lines[number] = backend.connect(number)
                lines[number].send((asked,))
        deadline = backend.now() + 1.0
        for number, line in lines.items():
            with suppress(WireError):
                while number not in found:
                    left = max(0.0, deadline - backend.now())
                    messages = line.receive(left)
                    if messages is None or not (messages or left):
                        break
                    for message in messages:
                        found[number] = message[1]
    finally:
        for line in lines.values():
            line.close()
    return found
