"""The controller: drives the training engine in real time, makes all that it decides durable, and has it carried out.

It runs in a thread of its own. Whoever takes jobs in writes them to the store and then calls `notify`; the controller
reads them from there, so a job that was acknowledged is scheduled sooner or later, whatever is killed. Should the store
fail, nothing more is decided until it works again, and then all is read from it anew.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from threading import Event as Flag
from threading import Thread
from typing import Any, TypeVar

from sqlalchemy import Connection

from fairway.allocate.registry import policy_of
from fairway.cluster import Cluster
from fairway.engine.training import EngineOptions, TrainingEngine
from fairway.engine.training_messages import Event, JobArrived
from fairway.errors import FairwayError, InputError
from fairway.live.assignments import LiveJob
from fairway.live.backend import Backend, BackendGoneError, Connected, Gone, Happened, Report, Superseded
from fairway.live.clock import Clock
from fairway.live.local import agent_messages
from fairway.live.local.backend import LocalBackend
from fairway.live.recovery import cluster_of, engine_job, resume, spec_of
from fairway.live.scheduler import LiveScheduler
from fairway.live.settings import ControllerSettings
from fairway.live.standing import standings_of
from fairway.live.statistics import Statistics
from fairway.profiles import ThroughputTable, catalog
from fairway.store import Store, counters
from fairway.store.errors import StoreError
from fairway.store.job_changes import change_job
from fairway.store.journal import last_sequence, record_start, trim_journal
from fairway.store.messages import document_of
from fairway.store.queries import jobs_since, snapshot
from fairway.store.records import Reason, Worker
from fairway.store.standing import load_standing
from fairway.store.states import JobState
from fairway.store.workers import (
    Device,
    agents_seen,
    all_workers,
    drain_workers,
    register_agent,
    undrain_workers,
)

T = TypeVar("T")

_LOG = logging.getLogger(__name__)

_AGENT = "local"
_PROGRESS_SECONDS = 1.0
_STORE_WAIT_SECONDS = 1.0
_FIRST_CONTACT_SECONDS = 60.0


class Controller:
    """Schedules the jobs of a store on the accelerators of a backend."""

    def __init__(
        self,
        settings: ControllerSettings,
        store: Store,
        *,
        table: ThroughputTable | None = None,
        backend: Backend | None = None,
    ) -> None:
        self.settings, self.store = settings, store
        self.table = catalog.builtin() if table is None else table
        self._statistics = Statistics(time.time())
        self.clock = Clock(settings.time_scale)
        self.cluster = Cluster({})
        self.workers: list[Worker] = []
        self.emulated = False
        self.healthy = False
        self._backend = backend or LocalBackend(
            settings.agent_directory, emulate=settings.emulate, time_scale=settings.time_scale
        )
        self._scheduler: LiveScheduler | None = None
        self._status: Mapping[str, Any] = {}
        self._last_job = 0
        self._ready = Flag()
        self._failure: BaseException | None = None
        self._thread: Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._inbox: asyncio.Queue[Callable[[], None]] = asyncio.Queue()
        self._over = False
        self._lock: int | None = None
        self._looking = False

    # For any thread

    def start(self) -> None:
        """Start; when this returns, jobs of before are adopted and new ones are scheduled."""
        self._take_lock()
        self._thread = Thread(target=self._serve, name="fairway-controller", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            self._thread.join()
            raise self._failure

    def stop(self) -> None:
        """Stop scheduling; jobs run on, and the next controller adopts them."""
        self._post(self._end)
        self._join()

    def shut_down(self) -> None:
        """Let all jobs save and stop, to go on under the next controller, and end the agent with them."""
        finished: Future[None] = Future()
        self._post(lambda: self._close(finished))
        if self._thread is not None and self._thread.is_alive():
            finished.result()
        self._join()

    def notify(self, cancelled: str | None = None) -> None:
        """Jobs were submitted to the store, or one of them was taken back."""
        if cancelled is not None:
            self._post(lambda: self._require().cancel(cancelled))
        elif not self._looking:
            self._looking = True  # one look sees all that was submitted before it
            self._post(self._look_for_jobs)

    def look(self, question: Callable[[TrainingEngine], T]) -> T:
        """Ask something about the engine, which is not used meanwhile."""
        answer: Future[T] = Future()

        def ask() -> None:
            try:
                answer.set_result(question(self._require().engine))
            except Exception as error:
                answer.set_exception(error)

        self._post(ask)
        return answer.result()

    def drain(self, workers: Sequence[tuple[str, int]], *, on: bool) -> None:
        """Let nothing run on these workers any more, or again; durable when this returns."""
        done: Future[None] = Future()

        def drain() -> None:
            known = {(worker.accelerator, worker.number) for worker in self.workers}
            missing = [worker for worker in workers if worker not in known]
            if missing:
                done.set_exception(InputError(f"worker: no '{missing[0][0]}/{missing[0][1]}' in this cluster"))
                return
            scheduler = self._require()
            if on:
                scheduler.change(drain_workers, workers, at=time.time())
            else:
                scheduler.change(undrain_workers, workers)
            by_type: dict[str, list[int]] = {}
            for accelerator, number in workers:
                by_type.setdefault(accelerator, []).append(number)
            scheduler.drain(by_type, on=on)
            scheduler.change(lambda _: None)
            self._after_commit.append(lambda: done.set_result(None))

        self._post(drain)
        done.result()
        self.workers = self.store.read(all_workers)

    def now(self) -> float:
        """The engine's time."""
        return self.clock.now()

    def wall(self, engine_time: float) -> float:
        """A time of the engine on the wall clock."""
        return self.clock.wall(engine_time)

    def statistics(self) -> Statistics:
        """What happened since it started."""
        engine = self._require().engine
        return replace(self._statistics, rounds=engine.rounds, solves=engine.solves, round_ends_at=engine.round_end)

    def devices(self) -> list[dict[str, Any]]:
        """What the backend has to run jobs on, as it says itself."""
        return [dict(one) for one in self._status.get("accelerators", ())]

    # The thread

    def _take_lock(self) -> None:
        directory = self.settings.directory
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = os.open(directory / "controller.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise InputError(f"{directory}: another controller works in this directory; stop it first") from None

    def _join(self) -> None:
        if self._thread is not None:
            self._thread.join()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _post(self, action: Callable[[], None]) -> None:
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # the loop is closed: nobody is there to act any more
                loop.call_soon_threadsafe(self._inbox.put_nowait, action)

    def _serve(self) -> None:
        try:
            asyncio.run(self._main())
        except BaseException as error:
            self._failure = error
            if self._ready.is_set():
                _LOG.critical("the controller has stopped: %s", error, exc_info=True)
        finally:
            self.healthy = False
            self._ready.set()

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._after_commit: list[Callable[[], None]] = []
        epoch = self.store.write(counters.take, counters.EPOCHS, 1)
        keeping = asyncio.create_task(self._backend.run(epoch, self._report))
        try:
            await self._first_contact(keeping)
            self._recover()
            await self._commit()
            self.healthy = True
            self._ready.set()
            await self._work()
        finally:
            keeping.cancel()
            with suppress(asyncio.CancelledError):
                await keeping

    async def _first_contact(self, keeping: asyncio.Task[None]) -> None:
        """Wait for the first report of the backend."""
        deadline = time.monotonic() + _FIRST_CONTACT_SECONDS
        while not self._status:
            if keeping.done():
                await keeping
            if self._failure is not None:
                raise self._failure
            if time.monotonic() > deadline:
                log = self.settings.agent_directory / "agent.log"
                raise FairwayError(f"no agent answers after {_FIRST_CONTACT_SECONDS:g} s; see {log}")
            with suppress(TimeoutError):
                (await asyncio.wait_for(self._inbox.get(), 0.1))()

    async def _work(self) -> None:
        flushed = time.monotonic()
        while not self._over:
            await self._wait(flushed + _PROGRESS_SECONDS)
            while not self._inbox.empty():
                self._inbox.get_nowait()()
            scheduler = self._require()
            scheduler.tick()
            if time.monotonic() - flushed >= _PROGRESS_SECONDS:
                scheduler.flush_progress()
                flushed = time.monotonic()
            try:
                await self._commit()
            except StoreError as error:
                await self._wait_for_store(error)

    async def _wait(self, flush_at: float) -> None:
        """Until something has happened, or is due."""
        due = self._require().next_due()
        seconds = flush_at - time.monotonic()
        if due is not None:
            seconds = min(seconds, due - time.time())
        with suppress(TimeoutError):
            action = await asyncio.wait_for(self._inbox.get(), max(seconds, 0.0))
            action()

    async def _commit(self) -> None:
        """Make durable what has changed, then have done what follows from it."""
        scheduler = self._require()
        while scheduler.changes or scheduler.commands or self._after_commit:
            changes, scheduler.changes = scheduler.changes, []
            commands, scheduler.commands = scheduler.commands, []
            if changes:
                self.store.write(_all_of, changes)
            after, self._after_commit = self._after_commit, []
            for action in after:
                action()
            for command in commands:
                await self._carry_out(command)

    async def _carry_out(self, command: agent_messages.Command) -> None:
        try:
            answer = await self._backend.ask(command)
        except BackendGoneError:
            return  # when it is back it says what it knows, and is told what it missed
        except agent_messages.RefusedError as refused:
            if isinstance(command, agent_messages.Start):
                self._require().refused(command, refused.code, str(refused))
            elif not isinstance(command, agent_messages.Forget | agent_messages.Retire):
                _LOG.warning("%s: %s", command, refused)
            return
        if isinstance(command, agent_messages.Start) and answer["result"] == "stale":
            self._require().refused(command, "stale", f"lease {command.lease} is older than {answer['newest']}")

    async def _wait_for_store(self, error: StoreError) -> None:
        """The engine is ahead of the store now: when that works again, begin anew from what it holds."""
        self.healthy = False
        while True:
            _LOG.error("%s; nothing is decided until it works again", error)
            await asyncio.sleep(_STORE_WAIT_SECONDS)
            try:
                self._recover()
                await self._commit()
            except StoreError as again:
                error = again
            else:
                self.healthy = True
                return

    # What happens

    def _report(self, report: Report) -> None:
        self._inbox.put_nowait(lambda: self._take_in(report))

    def _take_in(self, report: Report) -> None:
        scheduler = self._scheduler
        match report:
            case Connected():
                self._status = report.status
                self._statistics.agent_restarts_total += scheduler is not None
                if scheduler is not None:
                    self.healthy = True
                    scheduler.change(agents_seen, [_AGENT], at=time.time())
                    scheduler.reconcile(report.status["runs"])
            case Happened():
                if scheduler is not None:
                    scheduler.happened(report.event)
            case Gone():
                self.healthy = False
                _LOG.warning("the agent is gone; its jobs run on, and it is started again")
            case Superseded():
                self._failure = FairwayError(f"stopped: {report.why}")
                self._over = True

    def _look_for_jobs(self) -> None:
        self._looking = False
        scheduler = self._require()
        if scheduler.closing:
            return
        for record in self.store.read(jobs_since, self._last_job):
            self._last_job = record.number
            if record.state is not JobState.QUEUED:
                continue
            try:
                job = LiveJob.of(record, spec_of(record))
                described, deadline = engine_job(scheduler, record, job, self.cluster, self.table)
            except InputError as error:
                reason = Reason("Unrunnable", str(error))
                scheduler.change(change_job, record.id, JobState.FAILED, at=time.time(), reason=reason)
                continue
            scheduler.arrive(job, JobArrived(max(self.clock.now(), scheduler.engine.now), described, deadline))

    def _recover(self) -> None:
        """Make an engine from what the store holds."""
        settings, now = self.settings, time.time()
        devices = [Device(one["type"], one["device"] or f"emulated-{one['number']}", one["emulated"])
                   for one in self._status["accelerators"]]  # fmt: skip
        if not devices:
            raise InputError(
                "no accelerator found on this machine; declare emulated ones, as in '--emulate v100=2,k80=1', "
                "or install the extra 'fairway[nvidia]'"
            )
        self.store.write(register_agent, _AGENT, devices, at=now)
        held = self.store.read(snapshot)
        self.workers = held.workers
        self.cluster = cluster_of(held.workers, settings.prices)
        self.emulated = any(worker.emulated for worker in held.workers if worker.lost_at is None)
        options = EngineOptions(
            settings.round_seconds, settings.restart_seconds, settings.entities, settings.seed, held.last_lease
        )
        engine = TrainingEngine(self.cluster, policy_of(settings.policy), options, partners=self.table)
        scheduler = LiveScheduler(
            engine, self.clock, policy=settings.policy, table=self.table, statistics=self._statistics
        )
        told = resume(scheduler, held, standings_of(self.store.read(load_standing)), self.cluster)
        scheduler.change(record_start, "training", self._start_document(options, told), at=now)
        scheduler.change(_trimmed, settings.journal_entries)
        self._last_job = max((job.number for job in held.jobs), default=0)
        self._scheduler = scheduler
        scheduler.reconcile(self._status["runs"])
        self._look_for_jobs()

    def _start_document(self, options: EngineOptions, told: Sequence[Event]) -> dict[str, Any]:
        """All that an engine is made from, so that it can be made again, and what it was told first."""
        return {
            "cluster": {"workers": dict(self.cluster.workers), "prices": dict(self.cluster.prices)},
            "policy": self.settings.policy,
            "options": {
                "round_seconds": options.round_seconds,
                "restart_seconds": options.restart_seconds,
                "seed": options.seed,
                "last_lease": options.last_lease,
                "entities": {name: {"weight": one.weight, "policy": one.policy, "parent": one.parent}
                             for name, one in options.entities.items()},
            },
            "profiles": self.table.source,
            "resumption": [document_of(event) for event in told],
        }  # fmt: skip

    def _close(self, finished: Future[None]) -> None:
        """Stop everything, then this."""
        self._require().close()

        async def wait() -> None:
            while len(self._require().leases):
                await asyncio.sleep(0.05)
            await self._backend.shut_down()
            self._over = True
            self._inbox.put_nowait(lambda: None)
            finished.set_result(None)

        assert self._loop is not None
        self._closing = self._loop.create_task(wait())

    def _end(self) -> None:
        self._over = True

    def _require(self) -> LiveScheduler:
        assert self._scheduler is not None, "the controller has not started"
        return self._scheduler


def _all_of(connection: Connection, changes: Sequence[Callable[[Connection], object]]) -> None:
    for change in changes:
        change(connection)


def _trimmed(connection: Connection, entries: int) -> None:
    trim_journal(connection, before=last_sequence(connection) - entries)
