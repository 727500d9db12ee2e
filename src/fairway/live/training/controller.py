"""The controller: drives the training engine in real time, makes all that it decides durable, and has it carried out.

It runs in a thread of its own. The service writes jobs that it accepts to the store and then calls `notify`; the
controller reads them from there, so a job that was acknowledged is scheduled sooner or later, whatever is killed.
Should the store fail, or anything happen that should not, nothing more is decided until all was read from the store
anew.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from threading import Event as Flag
from threading import Lock, Thread
from typing import TypeVar

from fairway.allocate.policy import Policy
from fairway.cluster import Cluster
from fairway.engine.training.engine import TrainingEngine
from fairway.errors import FairwayError, InputError
from fairway.jobs.description import JobDescription
from fairway.jobs.webhooks import refuse_other_hosts
from fairway.live.backend.accelerators import Accelerator
from fairway.live.backend.logs import LogBlock
from fairway.live.backend.protocol import Backend
from fairway.live.backend.registry import backend_named
from fairway.live.training.clock import Clock
from fairway.live.training.decision.process import budgeted
from fairway.live.training.inbox import Inbox
from fairway.live.training.loop import Work
from fairway.live.training.session import Surroundings
from fairway.live.training.settings import ControllerSettings
from fairway.live.training.start_command import program_of
from fairway.live.training.statistics import Statistics
from fairway.profiles import ThroughputTable, catalog
from fairway.store import Store
from fairway.store.records import Worker
from fairway.store.workers import all_workers
from fairway.wall_clock import MachineClock

T = TypeVar("T")

_LOG = logging.getLogger(__name__)


class Controller:
    """Schedules the jobs of a store on the accelerators of a backend. Any thread may call its methods."""

    def __init__(
        self,
        settings: ControllerSettings,
        store: Store,
        *,
        table: ThroughputTable | None = None,
        backend: Backend | None = None,
        machine: MachineClock = time,
        decided_by: Callable[[Policy], Policy] | None = None,
    ) -> None:
        """On a store; `decided_by` is how the policy is asked, in a process of its own if nothing is given."""
        self.settings, self.store = settings, store
        self.table = catalog.builtin() if table is None else table
        self.clock = Clock(settings.time_scale, machine=machine)
        self._statistics = Statistics(self.clock.today())
        self._inbox = Inbox()
        self._backend = backend or backend_named(settings.backend)(
            settings.backend_directory, emulate=settings.emulate, time_scale=settings.time_scale
        )
        if decided_by is None:
            decided_by = partial(budgeted, seconds=settings.decision_seconds)
        self._work = Work(
            Surroundings(settings, store, self.table, self.clock, self._statistics, decided_by),
            self._backend,
            self._inbox,
        )
        self._ready = Flag()
        self._failure: BaseException | None = None
        self._when_it_fails: Callable[[], None] | None = None
        self._thread: Thread | None = None
        self._directory_lock: int | None = None
        self._notified, self._notifying = False, Lock()

    def start(self, *, when_it_fails: Callable[[], None] | None = None) -> None:
        """Start; when this returns, jobs of before are adopted and new ones are scheduled.

        `when_it_fails` is called, by the controller's own thread, should it stop although its owner did not stop it;
        `failure` then says why.
        """
        self._when_it_fails = when_it_fails
        self._take_lock()
        self._thread = Thread(target=self._serve, name="fairway-controller", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            self._thread.join()
            raise self._failure

    async def work(self) -> None:
        """All that it does, for an event loop of its own; `start` has one in a thread."""
        await self._work.run(self._ready.set)

    def stop(self) -> None:
        """Stop scheduling; jobs run on, and the next controller adopts them."""
        self._inbox.post(self._work.stop)
        self._join()

    def shut_down(self) -> str | None:
        """Let all jobs save and stop, to go on under the next controller, and end the agent with them.

        Returns why the backend did not do so, if it was away for too long to be waited for.
        """
        self._inbox.post(self._work.close)
        self._join()
        return self._work.closed_in_vain

    def notify(self, cancelled: str | None = None) -> None:
        """Jobs were submitted to the store, or taken back; one that was can be named, and is stopped sooner."""
        if cancelled is not None:
            self._inbox.post(lambda: self._work.cancel(cancelled))
        with self._notifying:
            if not self._notified:  # one look sees all that was written before it
                self._notified = True  # before it is posted: it may be looked at, and taken back, at once
                if not self._inbox.post(self._look):
                    self._notified = False

    def _look(self) -> None:
        self._notified = False
        self._work.look_for_jobs()

    def look(self, question: Callable[[TrainingEngine], T]) -> T:
        """Ask something about the engine, which is not used meanwhile."""
        return self._inbox.ask(lambda: question(self._work.session.scheduler.engine))

    def check(self, spec: JobDescription, team: str | None = None) -> None:
        """Refuse a job that could never be scheduled or run here, by an `InputError` that says why."""
        if spec.notify is not None:
            try:
                refuse_other_hosts(spec.notify, self.settings.notify_hosts)
            except InputError as error:
                raise InputError(f"notify: {error}") from None
        self._work.session.check(spec, team)
        self._backend.check(program_of(spec, user=self.settings.user_of(team)))

    def read_log(self, job: str, rank: int, position: int, most: int) -> LogBlock:
        """What a rank of a job has written, from a byte on; nothing where there is no log."""
        return self._backend.read_log(job, rank, position, most)

    def drain(self, workers: Sequence[tuple[str, int]], *, on: bool) -> None:
        """Let nothing run on these workers any more, or again; durable when this returns."""
        known = {(worker.accelerator, worker.number) for worker in self.workers}
        for accelerator, number in workers:
            if (accelerator, number) not in known:
                raise InputError(f"worker: no '{accelerator}/{number}' in this cluster")
        done = self._inbox.promise()
        if not self._inbox.post(lambda: self._work.drain(workers, done, on=on)):
            self._inbox.break_promise(done)
        done.result()

    @property
    def failure(self) -> BaseException | None:
        """Why it has stopped, if its owner did not stop it."""
        return self._failure

    @property
    def workers(self) -> list[Worker]:
        """All workers that ever were, as they stand."""
        return self.store.read(all_workers)

    @property
    def cluster(self) -> Cluster:
        """What jobs can ask for, with drained and lost workers; nothing before it has started."""
        return self._work.session.cluster if self._work.begun else Cluster({})

    @property
    def emulated(self) -> bool:
        """Whether there are emulated accelerators among those that are there."""
        return any(one.emulated for one in self._work.accelerators)

    @property
    def healthy(self) -> bool:
        """Whether it schedules, its store works, its backend answers, and rounds and decisions come about in time."""
        return self._ready.is_set() and self._work.healthy

    @property
    def caveats(self) -> tuple[str, ...]:
        """What the backend does not offer of what jobs are kept apart and ended with, each in a sentence."""
        return self._work.caveats

    @property
    def trouble(self) -> str | None:
        """Why it is not healthy; None while it is."""
        return self._work.trouble if self._ready.is_set() else "the controller has not started"

    def now(self) -> float:
        """The engine's time."""
        return self.clock.now()

    def wall(self, engine_time: float) -> float:
        """A time of the engine on the wall clock."""
        return self.clock.wall(engine_time)

    def statistics(self) -> Statistics:
        """What happened since it started."""
        counted = self._statistics
        ends = self._work.session.scheduler.engine.round_end if self._work.begun else None
        return replace(counted, decision_seconds=list(counted.decision_seconds), round_ends_at=ends)

    def devices(self) -> dict[tuple[str, int], Accelerator]:
        """What the backend has to run jobs on, by the type and number of the worker."""
        numbers = self._work.session.places.of_workers if self._work.begun else {}
        return {
            (one.type, numbers[one.type, one.number]): one
            for one in self._work.accelerators
            if (one.type, one.number) in numbers
        }

    # The thread

    def _take_lock(self) -> None:
        directory = self.settings.directory
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(directory / "controller.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise InputError(f"{directory}: another controller works in this directory; stop it first") from None
        self._directory_lock = lock

    def _join(self) -> None:
        if self._thread is not None:
            self._thread.join()

    def _serve(self) -> None:
        try:
            asyncio.run(self.work())
        except BaseException as error:
            self._failure = error
            if self._ready.is_set():
                _LOG.critical("the controller has stopped: %s", error, exc_info=not isinstance(error, FairwayError))
        finally:
            begun = self._ready.is_set()
            self._inbox.close()
            if self._directory_lock is not None:
                os.close(self._directory_lock)
                self._directory_lock = None
            self._ready.set()
            if begun and self._failure is not None and self._when_it_fails is not None:
                self._when_it_fails()
