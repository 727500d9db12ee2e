"""Drives the training engine through a workload and checks, at every event, what must always hold."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable
from itertools import count

import numpy as np

from fairway.allocate.registry import policy_of
from fairway.cluster import Cluster
from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.messages import (
    BeginRound,
    Command,
    Event,
    Extend,
    Grant,
    JobArrived,
    JobFinished,
    Refuse,
    Retire,
    Revoke,
    RoundBegan,
    WorkersJoined,
    WorkersLeft,
)
from fairway.engine.training.options import EngineOptions
from fairway.engine.training.pair_rates import Partners
from fairway.jobs import Job

_LATE = 2


class CheckedDriver:
    """A world that believes nothing: it runs leases itself and holds the engine to its promises."""

    def __init__(
        self, cluster: Cluster, policy: str, options: EngineOptions | None = None, partners: Partners | None = None
    ) -> None:
        self.cluster = cluster
        self.engine = TrainingEngine(cluster, policy_of(policy), options, partners=partners)
        self.partners = partners
        self.jobs: dict[str, Job] = {}
        self.left: dict[str, float] = {}
        self.held: dict[int, Grant] = {}
        self.begun: dict[int, float] = {}
        self.gone: set[tuple[str, int]] = set()
        self.count = dict(cluster.workers)
        self.arrived: dict[str, float] = {}
        self.finished: dict[str, float] = {}
        self.refused: dict[str, str] = {}
        self.isolated: dict[str, float] = {}
        self.log: list[Event | Command] = []
        self.handled: list[tuple[float, Event, list[Command]]] = []
        self.waits: dict[str, float] = {}
        self._queue: list[tuple[float, int, int, Event | tuple[int, str]]] = []
        self._order = count()
        self.now = 0.0

    def push(self, time: float, event: Event, priority: int = 1) -> None:
        heapq.heappush(self._queue, (time, priority, next(self._order), event))

    def submit(self, jobs: Iterable[tuple[float, Job]]) -> None:
        for time, job in jobs:
            self.push(time, JobArrived(job))

    def run(self, until: float = math.inf) -> None:
        while self._queue and self._queue[0][0] <= until:
            time, _, _, event = heapq.heappop(self._queue)
            assert time >= self.now
            self.now = time
            if isinstance(event, tuple):
                lease, job = event
                if lease not in self.held or self.left[job] > self._done(lease, job) + 1e-6:
                    continue
                event = JobFinished(job)
                self.finished[job] = time
            if isinstance(event, JobArrived):
                self.jobs[event.job.id], self.arrived[event.job.id] = event.job, time
                assert event.job.steps_left is not None
                self.left[event.job.id] = event.job.steps_left
            if isinstance(event, WorkersLeft):
                self.gone |= {(event.accelerator, worker) for worker in event.workers}
            if isinstance(event, WorkersJoined):
                self.count[event.accelerator] += event.count
            commands = self.engine.handle(time, [event])
            self.engine.validate()
            self.handled.append((time, event, commands))
            self._apply(event, commands)
            if not any(entry[0] == time for entry in self._queue):
                self._check_work_is_conserved()

    def _done(self, lease: int, job: str) -> float:
        return self.rates(self.held[lease])[job] * max(self.now - self.begun[lease], 0.0)

    def rates(self, grant: Grant) -> dict[str, float]:
        first = self.jobs[grant.jobs[0]]
        if len(grant.jobs) == 1:
            table = first.spread_throughputs if grant.spread and first.spread_throughputs else first.throughputs
            return {first.id: table[grant.accelerator]}
        second = self.jobs[grant.jobs[1]]
        assert self.partners is not None
        assert first.job_type is not None
        assert second.job_type is not None
        both = self.partners.pair_rates(first.job_type, second.job_type, first.scale_factor)[grant.accelerator]
        return dict(zip(grant.jobs, both, strict=True))

    def _apply(self, event: Event, commands: list[Command]) -> None:
        self.log += [event, *commands]
        for command in commands:
            match command:
                case Grant():
                    self._check_grant(command)
                    restart = self.engine.options.restart_seconds if command.restart else 0.0
                    self.held[command.lease], self.begun[command.lease] = command, self.now + restart
                    for job, rate in self.rates(command).items():
                        finish = self.now + restart + self.left[job] / rate
                        heapq.heappush(self._queue, (finish, 1, next(self._order), (command.lease, job)))
                case Revoke():
                    for job in self.held[command.lease].jobs:
                        self.left[job] = max(self.left[job] - self._done(command.lease, job), 0.0)
                    assert self.held.pop(command.lease).jobs == command.jobs
                case BeginRound():
                    self.push(command.at, RoundBegan(), _LATE)
                case Refuse():
                    self.refused[command.job] = command.reason
                case Retire():
                    self.isolated[command.job] = command.isolated_seconds
                case Extend():
                    assert command.until > self.now

    def _check_grant(self, grant: Grant) -> None:
        assert grant.lease not in self.held
        scale = {self.jobs[job].scale_factor for job in grant.jobs}
        assert scale == {len(set(grant.workers))} == {len(grant.workers)}, "a gang gets its workers all at once"
        for other in self.held.values():
            shared = set(other.workers) & set(grant.workers) if other.accelerator == grant.accelerator else set()
            assert not shared, "two leases never hold the same worker"
            assert not set(other.jobs) & set(grant.jobs), "a job runs in one place"
        for worker in grant.workers:
            assert 0 <= worker < self.count[grant.accelerator]
            assert (grant.accelerator, worker) not in self.gone
        assert all(rate > 0 for rate in self.rates(grant).values())
        assert not set(grant.jobs) & set(self.finished)

    def _check_work_is_conserved(self) -> None:
        running = {job for grant in self.held.values() for job in grant.jobs}
        for name in self.cluster.types:
            gone = sum(1 for accelerator, _ in self.gone if accelerator == name)
            used = sum(len(grant.workers) for grant in self.held.values() if grant.accelerator == name)
            free = self.count[name] - gone - used
            assert free == self.engine.workers.free[self.cluster.types.index(name)]
            for job in self.jobs.values():
                waits = job.id not in running and job.id not in self.finished and job.id not in self.refused
                if waits and job.id in self.engine.jobs:
                    fits = job.scale_factor <= free and job.throughputs.get(name, 0.0) > 0
                    assert not fits, f"{job.id} waits while {free} workers of {name} idle at {self.now} s"

    @property
    def jct(self) -> np.ndarray:
        return np.array([self.finished[job] - self.arrived[job] for job in self.jobs if job in self.finished])
