"""A scheduler for tests of the service: a real store and a real engine, with nobody to run the jobs.

Jobs that the engine grants workers count as running from then on; tests end them by `finish`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar

from fairway.allocate.registry import policy_of
from fairway.cluster import Cluster
from fairway.engine.training import EngineOptions, TrainingEngine
from fairway.engine.training_messages import (
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
from fairway.live.job_spec import JobSpec, parse_job_spec
from fairway.live.settings import ControllerSettings
from fairway.live.statistics import Statistics
from fairway.profiles import catalog
from fairway.store import Store
from fairway.store.columns import json_text
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
        self.healthy = True
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
                spec = parse_job_spec(json_text(record.spec), record.id)
                job = spec.job(record.id, self.cluster, datetime.now(UTC), self.table)
                self._tell(JobArrived(self.now(), replace(job, entity=record.team)))

    def finish(self, job: str) -> None:
        """The job has done its work."""
        with self._lock:
            self._end(job, JobState.SUCCEEDED, JobFinished)

    def check(self, spec: JobSpec, team: str | None = None) -> None:  # noqa: ARG002
        spec.rates(self.cluster, self.table)

    def look(self, question: Callable[[TrainingEngine], T]) -> T:
        with self._lock:
            return question(self._engine)

    def now(self) -> float:
        return (time.time() - self._origin) * self.settings.time_scale

    def wall(self, engine_time: float) -> float:
        return self._origin + engine_time / self.settings.time_scale

    def devices(self) -> list[dict[str, Any]]:
        return [{"accelerator": name, "number": number, "description": f"{name} {number} (emulated)", "emulated": True}
                for name in self.cluster.types for number in range(self.cluster.workers[name])]  # fmt: skip

    def drain(self, workers: Sequence[tuple[str, int]], *, on: bool) -> None:
        if on:
            self.store.write(drain_workers, workers, at=time.time())
            with self._lock:
                for accelerator, number in workers:
                    self._tell(WorkersLeft(self.now(), accelerator, (number,), drain=True))
        else:
            self.store.write(undrain_workers, workers)

    def statistics(self) -> Statistics:
        with self._lock:
            engine = self._engine
            return replace(self._statistics, rounds=engine.rounds, solves=engine.solves, round_ends_at=engine.round_end)

    def _end(self, job: str, state: JobState, event: Callable[[float, str], Event]) -> None:
        at = time.time()
        if self.store.read(job_named, job).active:
            self.store.write(change_job, job, state, at=at, exit_code=0)
        self._tell(event(self.now(), job))

    def _tell(self, event: Event) -> None:
        began = time.perf_counter()
        solves = self._engine.solves
        commands = self._engine.handle(event)
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
                self._tell(RoundBegan(self.now()))
