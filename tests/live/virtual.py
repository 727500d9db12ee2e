"""A controller's session and an agent in virtual time, in one thread: anything can be killed between any two deeds.

Store, session, engine and the agent's supervisor are the real ones. Only processes are not: a job here is a row of
numbers that moves on with the clock and leaves the files that a keeper and a cooperative job would leave.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from pydantic import TypeAdapter

from fairway.errors import InputError
from fairway.live import durable_file, runs
from fairway.live.clock import Clock
from fairway.live.local import agent_messages, process, supervisor
from fairway.live.local.accelerators import emulated_accelerators
from fairway.live.local.supervisor import Supervisor
from fairway.live.run_files import STOPPED, Exit, LeaseState, Order, Progress, RunFiles
from fairway.live.session import Session, Surroundings, write_all
from fairway.live.settings import ControllerSettings
from fairway.live.statistics import Statistics
from fairway.profiles import catalog
from fairway.store import Store, counters, open_store
from fairway.store.job_changes import request_cancel
from fairway.store.queries import list_jobs
from fairway.store.records import JobRecord
from fairway.store.submissions import Submission, submit

START_SECONDS, SAVE_SECONDS, STOP_SECONDS = 0.3, 0.2, 0.1


@dataclass
class Process:
    """The processes of one run. `run` says what they do: steps to the end, `fail` after some seconds, or `ignore`."""

    files: RunFiles
    order: Order
    job: str
    places: frozenset[tuple[str, int]]
    lease: int
    begun: float
    step: float
    checkpoints: dict[str, int]
    moved: float = 0.0
    stop_at: float | None = None
    stop: str | None = None
    alive: bool = True
    started: bool = False
    ended_at: float | None = None
    steps_done: list[tuple[int, int]] = field(default_factory=list)

    @property
    def total(self) -> float:
        steps = self.order.environment.get("FAIRWAY_STEPS")
        return math.inf if steps is None else int(steps) * len(self.order.ranks)

    @property
    def rate(self) -> float:
        lease = self.files.lease()
        assert lease is not None
        return (lease.pace or 1.0) * len(self.order.ranks)

    def next_time(self) -> float:
        """When something happens to it next."""
        if not self.alive:
            return math.inf
        start, stop = self.begun + START_SECONDS, math.inf if self.stop_at is None else self.stop_at
        if not self.started:
            return min(start, stop)
        if self.order.run == ["fail"]:
            return min(start + 1.0, stop)
        return min(self.moved + max(self.total - self.step, 0.0) / self.rate, stop)

    def advance(self, now: float) -> None:
        if not self.alive:
            return
        if not self.started and now >= self.begun + START_SECONDS and self.stop is None:
            self.started, self.moved = True, self.begun + START_SECONDS
            self.files.write_started(self.moved)
            self.first = int(self.step)
        if self.started:
            self.step = min(self.step + (now - self.moved) * self.rate, self.total)
            self.moved = now
            self._report()
        if self.started and self.order.run == ["fail"] and now >= self.begun + START_SECONDS + 1.0:
            self._exit(Exit([1] * len(self.order.ranks), 0, failed=True, asked=self.stop, time=now))
        elif self.started and self.step >= self.total - 1e-9 and self.order.run != ["fail"]:
            self.step = float(self.total)
            self._save()
            self._exit(Exit([0] * len(self.order.ranks), asked=self.stop, time=now))
        elif self.stop_at is not None and now >= self.stop_at:
            self._leave(now)

    def _leave(self, now: float) -> None:
        if not self.started:
            self._exit(Exit([], asked=self.stop, time=now))
        elif self.stop == "save":
            self._save()
            self._report(stopped=True)
            self._exit(Exit([STOPPED] * len(self.order.ranks), 0, asked="save", time=now))
        else:
            codes = [-15] * len(self.order.ranks)
            self._exit(Exit(codes, 0, asked="now", terminated=True, time=now))

    def _save(self) -> None:
        self.step = int(self.step / len(self.order.ranks)) * len(self.order.ranks)
        self.checkpoints[self.job] = max(int(self.step), self.checkpoints.get(self.job, 0))
        self._report()

    def _report(self, *, stopped: bool = False) -> None:
        ranks = len(self.order.ranks)
        saved = self.checkpoints.get(self.job)
        lease = self.files.lease()
        for rank in range(ranks):
            self.files.write_progress(
                Progress(rank, int(self.step / ranks), self.first // ranks, self.rate / ranks,
                         None if saved is None else saved // ranks, stopped=stopped, time=self.moved,
                         lease=lease.lease if lease is not None else 0)
            )  # fmt: skip

    def _exit(self, ended: Exit) -> None:
        self.alive, self.ended_at = False, ended.time
        if self.started:
            self.steps_done.append((self.first, int(self.step)))
        self.files.write_exit(ended)

    def kill(self) -> None:
        """With its keeper: nobody writes down how it ended."""
        self.alive = False
        if self.started:
            self.steps_done.append((self.first, int(self.step)))


class Crash(BaseException):
    """The controller is killed."""


class ConnectionLost(BaseException):
    """Commands that were to follow do not arrive, nor do events that were under way; then all is compared."""


class World:
    """`point` is called after everything that becomes durable or is done, with a word on what it was."""

    def __init__(self, directory: Path, emulate: str, *, policy: str = "max-min-fairness", round_seconds: float = 2.0,
                 point: Callable[[str], None] = lambda _: None) -> None:  # fmt: skip
        self.directory, self.emulate = directory, emulate
        self.settings = ControllerSettings(
            directory, policy=policy, round_seconds=round_seconds, restart_seconds=0.1, emulate=emulate
        )
        self.now = 1_000_000.0
        self.point = point
        self.processes: list[Process] = []
        self.checkpoints: dict[str, int] = {}
        self.events: list[dict[str, Any]] = []
        self.store: Store = open_store(directory)
        self.clock = Clock(today=lambda: self.now)
        self.statistics = Statistics(self.now)
        self.end: list[JobRecord] = []
        self.supervisor: Supervisor
        self.session: Session
        self.epoch = 0
        self._flush_at = 0.0

    @contextmanager
    def running(self) -> Iterator[World]:
        """With time and processes replaced, an agent and a controller."""
        clock = SimpleNamespace(time=lambda: self.now, monotonic=lambda: self.now)
        with (
            patch.object(supervisor, "time", clock),
            patch.object(supervisor, "kill_remains", lambda *_: True),
            patch.object(process, "start", self._spawn),
            patch.object(process, "keeper_of", self._keeper_of),
            patch.object(process, "ask_to_stop", self._ask_to_stop),
            patch.object(durable_file, "_sync", lambda _: None),
        ):
            try:
                self.start_agent()
                self.survive(self.start_controller)
                yield self
            finally:
                self.store.close()

    def survive(self, action: Callable[[], object]) -> None:
        """Do something; if the controller is killed, start another."""
        try:
            action()
        except Crash:
            self.survive(self.start_controller)

    # Processes

    def _spawn(self, files: RunFiles) -> Any:
        run = next(run for run in self.supervisor.state.runs if run.directory == files.directory.name)
        order = files.order()
        assert order is not None
        places = frozenset((run.accelerator, worker) for worker in run.workers)
        for other in self.alive():
            assert other.job != run.job, f"{run.job} is started while it runs"
            assert other.lease == run.lease or not other.places & places, f"{other.job} runs where {run.job} starts"
        files.claim({"pid": 1, "start": 1, "boot": ""})
        new = Process(files, order, run.job, places, run.lease, self.now, float(self.checkpoints.get(run.job, 0)),
                      self.checkpoints)  # fmt: skip
        self.processes.append(new)
        return SimpleNamespace(poll=lambda: None if new.alive else 0)

    def alive(self) -> list[Process]:
        return [one for one in self.processes if one.alive]

    def _of(self, files: RunFiles) -> Process | None:
        return next((one for one in self.processes if one.files.directory == files.directory), None)

    def _keeper_of(self, files: RunFiles) -> Any:
        return self._of(files)

    def _ask_to_stop(self, files: RunFiles, *, save: bool) -> None:
        lease = files.lease() or LeaseState(0)
        wish = "save" if save and lease.stop != "now" else "now"
        files.write_lease(LeaseState(lease.lease, lease.until, lease.expires, wish, lease.pace))
        one = self._of(files)
        if one is not None and one.alive and one.stop != wish:
            one.stop = wish
            until = math.inf if one.order.run == ["ignore"] else STOP_SECONDS if wish == "now" else SAVE_SECONDS
            one.stop_at = self.now + min(until, one.order.grace_seconds)

    # The agent and the controller

    def start_agent(self) -> None:
        self.supervisor = Supervisor(
            self.directory / "agent", emulated_accelerators(self.emulate), emit=self.events.append, outside={}
        )
        self.supervisor.tick()

    def kill_agent(self) -> None:
        """It is started again at once, and the controller hears of it."""
        self.events.clear()
        self.start_agent()
        self.session.reconcile(self.supervisor.status())
        self.commit()

    def start_controller(self) -> None:
        self.events.clear()
        self.epoch = self.store.write(counters.take, counters.EPOCHS, 1)
        around = Surroundings(self.settings, self.store, catalog.builtin(), self.clock, self.statistics)
        self.supervisor.new_epoch(self.epoch)
        status = self.supervisor.status()
        self.session = Session(around, status["accelerators"], status["last_lease"])
        self.session.reconcile(status)
        self.commit()

    def commit(self) -> None:
        scheduler, doubtful = self.session.scheduler, False
        while scheduler.changes or scheduler.commands or doubtful:
            if doubtful:
                doubtful = False
                self.session.reconcile(self.supervisor.status())
            changes, commands = scheduler.take()
            ended: frozenset[str] = frozenset()
            if changes:
                ended = self.store.write(write_all, self.epoch, changes)
                self.point(f"{len(changes)} changes are durable")
            try:
                for command in self.session.written(ended, commands):
                    doubtful |= self.give(command)
                    self.point(f"{command} was given")
            except ConnectionLost:
                self.events.clear()
                self.session.reconcile(self.supervisor.status())

    def give(self, command: agent_messages.Command) -> bool:
        fields = TypeAdapter(type(command)).dump_python(command, mode="json")
        received = agent_messages.read_command({"command": agent_messages.NAMES[type(command)], **fields})
        handler: Callable[[Any], dict[str, Any]] = {
            agent_messages.Start: self.supervisor.start,
            agent_messages.End: self.supervisor.end,
            agent_messages.Extend: self.supervisor.extend,
            agent_messages.HandOver: self.supervisor.hand_over,
            agent_messages.Forget: self.supervisor.forget,
            agent_messages.Retire: self.supervisor.retire,
        }[type(command)]
        try:
            return self.session.answered(command, handler(received))
        except agent_messages.RefusedError as refused:
            self.session.refused(command, refused.code, str(refused))
        except InputError as error:
            self.session.refused(command, "bad-input", str(error))
        return False

    # Time

    def step(self, until: float = math.inf) -> None:
        """Let time pass until something happens, at most a second, and let everybody see it."""
        due = self.session.scheduler.next_due()
        soon = min([self.now + 1.0, until, *(one.next_time() for one in self.alive()), due or math.inf])
        self.now = max(soon, self.now) + 0.001
        for one in self.alive():
            one.advance(self.now)
        self.supervisor.tick()
        events, self.events[:] = list(self.events), []
        for event in events:
            runs.happened(self.session.scheduler, event)
        self.session.scheduler.tick()
        if self.now >= self._flush_at:
            self._flush_at = self.now + 1.0
            self.session.scheduler.flush_progress()
            self.session.look_for_cancels()
        self.commit()

    def run_for(self, seconds: float) -> None:
        until = self.now + seconds
        while self.now < until:
            self.step(until)

    def run_until(self, condition: Callable[[], bool], seconds: float = 600.0) -> None:
        until = self.now + seconds
        while not condition():
            assert self.now < until, f"waited {seconds} s in vain: {self.jobs()}"
            self.step(until)

    # Jobs

    def submit(self, steps: int | None = 20, **fields: Any) -> str:
        spec = {"run": ["steps"], "steps": steps, **fields}
        if "job_type" not in spec:
            spec.setdefault("throughputs", {"v100": 2.0, "k80": 1.0})
        team = spec.get("team")
        (job,) = self.store.write(submit, [Submission(spec=spec, steps=steps, team=team)], at=self.now)
        self.session.look_for_jobs()
        self.commit()
        return job.id

    def cancel(self, job: str) -> None:
        self.store.write(request_cancel, job, at=self.now)
        self.point(f"{job} is to be cancelled")
        self.session.scheduler.cancel(job)
        self.commit()

    def drain(self, workers: list[tuple[str, int]], *, on: bool) -> None:
        self.session.drain(workers, on=on)
        self.commit()

    def jobs(self) -> list[JobRecord]:
        return self.store.read(list_jobs, limit=1000, newest_first=False).jobs

    def job(self, name: str) -> JobRecord:
        return next(job for job in self.jobs() if job.id == name)

    def finish(self) -> None:
        """Until no job is active, and nothing is held."""
        self.run_until(lambda: not self.session.scheduler.jobs and not len(self.session.scheduler.leases))
