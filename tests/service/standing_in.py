"""A scheduler for tests of the service: a real store and a real engine, with no backend to run the jobs.

Jobs that the engine grants workers count as running from then on; tests end them by `finish`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from threading import RLock
from typing import TypeVar

from fairway.allocate.registry import policy_of
from fairway.cluster import Cluster
from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.messages import (
    BeginRound,
    Command,
    Event,
    Grant,
    JobArrived,
    JobCancelled,
    JobFinished,
    Revoke,
    RoundBegan,
    WorkersLeft,
)
from fairway.engine.training.options import EngineOptions
from fairway.jobs.description import JobDescription, job_of
from fairway.live.backend.accelerators import Accelerator
from fairway.live.backend.logs import LogBlock
from fairway.live.local.log_files import log_path, read_log
from fairway.live.local.programs import refuse_what_cannot_run
from fairway.live.training.engine_job import described_rates, engine_job
from fairway.live.training.settings import ControllerSettings
from fairway.live.training.start_command import program_of
from fairway.live.training.statistics import Statistics
from fairway.profiles import catalog
from fairway.store import Store
from fairway.store.job_changes import change_job, job_named, run_jobs
from fairway.store.leases import end_lease, grant_leases
from fairway.store.queries import jobs_since
from fairway.store.states import JobState
from fairway.store.workers import Device, drain_workers, register_agent, undrain_workers

T = TypeVar("T")


class StandIn:
    """What the service needs of a controller. `idle` lets it take no notice of jobs."""

    def __init__(
        self,
        directory: Path,
        store: Store,
        workers: str = "v100=2,k80=1",
        *,
        idle: bool = False,
        time_scale: float = 1.0,
    ) -> None:
        self.store = store
        self.cluster = Cluster.parse(workers)
        self.settings = ControllerSettings(directory, emulate=workers, time_scale=time_scale, round_seconds=3600.0)
        self.table = catalog.builtin()
        self.emulated = True
        self.caveats: tuple[str, ...] = ()
        self.healthy = True
        self.trouble: str | None = None
        self.idle = idle
        self._lock = RLock()
        self._origin = time.time()
        self._last_job = 0
        self._statistics = Statistics(self._origin)
        self._engine = TrainingEngine(self.cluster, policy_of(self.settings.policy), EngineOptions(3600.0))
        devices = [Device(name, f"emulated-{number}", True) for name in self.cluster.types
                   for number in range(self.cluster.workers[name])]  # fmt: skip
        store.write(register_agent, "local", devices, at=self._origin)

    def notify(self, cancelled: str | None = None) -> None:
        if self.idle:
            return
        with self._lock:
            if cancelled is not None:
                if cancelled in self._engine.jobs:
                    self._end(cancelled, JobState.CANCELLED, JobCancelled)
                return
            for record in self.store.read(jobs_since, self._last_job):
                self._last_job = record.number
                if record.state is not JobState.QUEUED:
                    continue
                spec = job_of(record.spec, record.id)
                rates, left = described_rates(spec, self.cluster, self.table), spec.seconds_left(datetime.now(UTC))
                job = engine_job(record.id, spec, rates, team=record.team, steps_left=spec.steps, slo_seconds=left)
                self._happen(JobArrived(job))

    def finish(self, job: str) -> None:
        """The job has done its work."""
        with self._lock:
            self._end(job, JobState.SUCCEEDED, JobFinished)

    def check(self, spec: JobDescription, team: str | None = None) -> None:  # noqa: ARG002
        described_rates(spec, self.cluster, self.table)
        refuse_what_cannot_run(program_of(spec))

    def log_path(self, job: str, rank: int) -> Path:
        """Where a test writes what a job would."""
        return log_path(self.settings.backend_directory, job, rank)

    def read_log(self, job: str, rank: int, position: int, most: int) -> LogBlock:
        return read_log(self.log_path(job, rank), position, most)

    def look(self, question: Callable[[TrainingEngine], T]) -> T:
        with self._lock:
            return question(self._engine)

    def now(self) -> float:
        return (time.time() - self._origin) * self.settings.time_scale

    def wall(self, engine_time: float) -> float:
        return self._origin + engine_time / self.settings.time_scale

    def devices(self) -> dict[tuple[str, int], Accelerator]:
        return {(name, number): Accelerator(name, number)
                for name in self.cluster.types for number in range(self.cluster.workers[name])}  # fmt: skip

    def drain(self, workers: Sequence[tuple[str, int]], *, on: bool) -> None:
        if on:
            self.store.write(drain_workers, workers, at=time.time())
            with self._lock:
                self._happen(*[WorkersLeft(accelerator, (number,), drain=True) for accelerator, number in workers])
        else:
            self.store.write(undrain_workers, workers)

    def statistics(self) -> Statistics:
        with self._lock:
            engine = self._engine
            return replace(self._statistics, rounds=engine.rounds, solves=engine.solves, round_ends_at=engine.round_end)

    def _end(self, job: str, state: JobState, event: Callable[[str], Event]) -> None:
        at = time.time()
        if self.store.read(job_named, job).active:
            self.store.write(change_job, job, state, at=at, exit_code=0)
        self._happen(event(job))

    def _happen(self, *events: Event) -> None:
        began = time.perf_counter()
        solves = self._engine.solves
        commands = self._engine.handle(self.now(), events)
        if self._engine.solves > solves:
            self._statistics.count_decision(time.perf_counter() - began)
        for command in commands:
            self._obey(command)

    def _obey(self, command: Command) -> None:
        at = time.time()
        match command:
            case Grant():
                self._statistics.leases_granted_total += 1
                self.store.write(grant_leases, [replace(command, until=self.wall(command.until))], at=at)
                self.store.write(run_jobs, dict.fromkeys(command.jobs, command.lease), at=at)
            case Revoke():
                for job in command.jobs:
                    if self.store.read(job_named, job).active:
                        self.store.write(change_job, job, JobState.QUEUED, at=at)
                self.store.write(end_lease, command.lease, at=at)
            case BeginRound() if command.at <= self.now():
                self._happen(RoundBegan())
