"""A controller's session and a simulated machine in one thread: anything can be killed between any two deeds.

Store, session, engine and the agent's table of runs are the real ones; time and processes are simulated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from fairway.errors import InputError
from fairway.live import durable_file
from fairway.live.backend.answers import Refusal, RefusedError
from fairway.live.backend.commands import RunCommand
from fairway.live.backend.status import BackendStatus, MachineSize
from fairway.live.local.agent.run_table import RunTable
from fairway.live.training import reports
from fairway.live.training.clock import Clock
from fairway.live.training.session import Session, Surroundings, write_all
from fairway.live.training.settings import ControllerSettings
from fairway.live.training.statistics import Statistics
from fairway.profiles import catalog
from fairway.store import Store, counters, open_store
from fairway.store.job_changes import request_cancel
from fairway.store.queries import list_jobs
from fairway.store.records import JobRecord
from fairway.store.submissions import Submission, submit
from tests.engine.training.validated import validated_engines
from tests.live.backend.simulated import Process, SimulatedMachine


class Crash(BaseException):
    """The controller is killed."""


class ConnectionLost(BaseException):
    """Commands that were to follow do not arrive, nor do events that were under way; then all is compared."""


class World:
    """`point` is called after everything that becomes durable or is done, with a word on what it was."""

    def __init__(self, directory: Path, emulate: str, *, policy: str = "max-min-fairness", round_seconds: float = 2.0,
                 point: Callable[[str], None] = lambda _: None,
                 machines: Sequence[MachineSize] = ()) -> None:  # fmt: skip
        self.machine = SimulatedMachine(directory / "agent", emulate)
        self.settings = ControllerSettings(
            directory, policy=policy, round_seconds=round_seconds, restart_seconds=0.1, emulate=emulate
        )
        self.point, self.machines = point, machines
        self.store: Store = open_store(directory)
        self.clock = Clock(machine=self.machine)
        self.statistics = Statistics(self.now)
        self.end: list[JobRecord] = []
        self.session: Session
        self.epoch = 0
        self._flush_at = 0.0

    @contextmanager
    def running(self) -> Iterator[World]:
        """With an agent and a controller; nothing waits for the disk."""
        with validated_engines(), patch.object(durable_file, "_sync", lambda _: None):
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

    # The machine

    @property
    def now(self) -> float:
        return self.machine.now

    @now.setter
    def now(self, now: float) -> None:
        self.machine.now = now

    @property
    def processes(self) -> list[Process]:
        return self.machine.processes

    @property
    def table(self) -> RunTable:
        return self.machine.table

    def status(self) -> BackendStatus:
        return self.machine.table.status()

    def alive(self) -> list[Process]:
        return self.machine.alive()

    # The agent and the controller

    def start_agent(self) -> None:
        self.machine.start_agent()

    def kill_agent(self) -> None:
        """It is started again at once, and the controller hears of it."""
        self.machine.reports.clear()
        self.start_agent()
        self.session.reconcile(self.status())
        self.commit()

    def start_controller(self) -> None:
        self.machine.reports.clear()
        self.epoch = self.store.write(counters.take, counters.EPOCHS, 1)
        around = Surroundings(self.settings, self.store, catalog.builtin(), self.clock, self.statistics)
        self.table.new_epoch(self.epoch)
        status = self.status()
        self.session = Session(around, status.accelerators, status.last_lease, self.machines)
        self.session.reconcile(status)
        self.commit()

    def commit(self) -> None:
        scheduler, doubtful = self.session.scheduler, False
        while scheduler.changes or scheduler.commands or doubtful:
            if doubtful:
                doubtful = False
                self.session.reconcile(self.status())
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
                self.machine.reports.clear()
                self.session.reconcile(self.status())

    def give(self, command: RunCommand) -> bool:
        try:
            return self.session.answered(command, self.machine.carry_out(command))
        except RefusedError as refused:
            self.session.refused(command, refused.code, str(refused))
        except InputError as error:
            self.session.refused(command, Refusal.BAD_INPUT, str(error))
        return False

    # Time

    def step(self, until: float = math.inf) -> None:
        """Let time pass until something happens, at most a second, and let agent and controller see it."""
        due = self.session.scheduler.seconds_until_due()
        wait = 1.0 if due is None else min(due, 1.0)
        soon = min([self.now + wait, until, *(one.next_time() for one in self.alive())])
        self.machine.advance_to(max(soon, self.now) + 0.001)
        for report in self.machine.take_reports():
            reports.happened(self.session.scheduler, report)
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
