"""Runs one workload twice, live and in the simulator, and compares.

The simulator is told what a restart costs. That is measured first, in a short live run of other jobs: of the time that
a lease is counted for, the part in which no step is done, from the decision to the first step, and from the last step
until the engine hears of the end.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean

import numpy as np
from sqlalchemy import Connection, select

from benchmarks._live_trace import all_lives
from benchmarks._live_workload import Workload
from fairway.live.training.controller import Controller
from fairway.live.training.settings import ControllerSettings
from fairway.report.training.record import TrainingRecord
from fairway.sim.submissions import TrainingOptions
from fairway.sim.training import simulate_training
from fairway.store import open_store
from fairway.store.database.schema import leases
from fairway.store.queries import list_jobs
from fairway.store.records import JobRecord, LeaseRecord
from fairway.store.states import JobState
from fairway.store.submissions import Submission, submit

SHIFT_SECONDS = 0.2
"""By how much of the wall clock things may happen earlier or later without harm; restarts vary as much."""


@dataclass(frozen=True, slots=True)
class LiveRun:
    """What came of a workload; times are seconds of the wall clock since the run began."""

    arrivals: Mapping[str, float]
    finishes: Mapping[str, float]
    leases: list[LeaseRecord]
    idle: list[float]
    preemptions: int
    late: float

    @property
    def mean_jct(self) -> float:
        return mean(self.finishes[job] - self.arrivals[job] for job in self.arrivals)

    @property
    def makespan(self) -> float:
        return max(self.finishes.values())

    @property
    def lost_per_lease(self) -> float:
        """Seconds per lease in which no step was done."""
        return mean(self.idle)


def run_live(
    workload: Workload,
    policy: str,
    round_seconds: float,
    restart_seconds: float,
    *,
    backend: str = "local",
    once_all_came: Callable[[Controller], None] | None = None,
) -> LiveRun:
    """Run a workload; rounds and restarts are in seconds of the wall clock. `once_all_came` may look at it meanwhile.

    Another backend than that of this machine has the accelerators of the workload by itself.
    """
    with tempfile.TemporaryDirectory(prefix="fairway-") as name:
        directory = Path(name)
        traces = directory / "traces"
        traces.mkdir()
        settings = ControllerSettings(
            directory,
            policy=policy,
            round_seconds=round_seconds * workload.time_scale,
            restart_seconds=restart_seconds * workload.time_scale,
            time_scale=workload.time_scale,
            emulate=workload.emulate if backend == "local" else None,
            backend=backend,
        )
        with open_store(directory) as store:
            controller = Controller(settings, store)
            controller.start()
            try:
                began, late = time.time(), 0.0
                arrivals = {}
                for at, document in workload.described(traces):
                    time.sleep(max(began + at - time.time(), 0.0))
                    store.write(submit, [Submission(spec=document, id=document["name"], steps=document["steps"])],
                                at=time.time())  # fmt: skip
                    controller.notify()
                    late = max(late, time.time() - began - at)
                    arrivals[document["name"]] = at
                    _progress(store.read(list_jobs, limit=1000).jobs, began)
                if once_all_came is not None:
                    time.sleep(2 * round_seconds)  # until the last ones have been decided about
                    once_all_came(controller)
                jobs = store.read(list_jobs, limit=1000).jobs
                while any(job.active for job in jobs):
                    time.sleep(1.0)
                    jobs = store.read(list_jobs, limit=1000).jobs
                    _progress(jobs, began)
                statistics = controller.statistics()
            finally:
                controller.shut_down()
            failed = [job for job in jobs if job.state is not JobState.SUCCEEDED]
            assert not failed, f"jobs did not succeed: {failed}"
            held = store.read(_all_leases)
            finishes = {job.id: (job.ended_at or 0.0) - began for job in jobs}
            return LiveRun(
                arrivals, finishes, held, _idle_seconds(held, workload, traces), statistics.preemptions_total, late
            )


def run_simulated(workload: Workload, policy: str, round_seconds: float, restart_seconds: float) -> TrainingRecord:
    """Run the same in virtual time."""
    scale = workload.time_scale
    options = TrainingOptions(round_seconds * scale, restart_seconds * scale)
    return simulate_training(workload.jobs, workload.cluster, policy, options)


def simulated_seconds(record: TrainingRecord, time_scale: float) -> tuple[float, float]:
    """Mean completion time and makespan, in seconds of the wall clock."""
    jobs = record.jobs
    return float(np.mean(jobs.finish - jobs.arrival)) / time_scale, float(np.max(jobs.finish)) / time_scale


def simulated_often(
    workload: Workload, policy: str, round_seconds: float, restart_seconds: float, *, runs: int, seed: int
) -> list[tuple[float, float]]:
    """The same, with every job arriving up to `SHIFT_SECONDS` later, another time in each run.

    Who is preempted hangs on who was a moment earlier, so that one run alone says little about the next.
    """
    draws = np.random.default_rng(seed)
    found = []
    for _ in range(runs):
        shifts = draws.uniform(0.0, SHIFT_SECONDS * workload.time_scale, len(workload.jobs))
        moved = [replace(job, arrival=job.arrival + shift) for job, shift in zip(workload.jobs, shifts, strict=True)]
        moved.sort(key=lambda job: job.arrival)
        record = run_simulated(replace(workload, jobs=tuple(moved)), policy, round_seconds, restart_seconds)
        found.append(simulated_seconds(record, workload.time_scale))
    return found


def _all_leases(connection: Connection) -> list[LeaseRecord]:
    return [LeaseRecord(*row) for row in connection.execute(select(leases).order_by(leases.c.number))]


def _idle_seconds(held: list[LeaseRecord], workload: Workload, traces: Path) -> list[float]:
    """For each lease, the seconds in which no step was done; steps take as long as their pace says."""
    steps = {(life.job, life.lease): len(life.steps) for life in all_lives(sorted(traces.iterdir()))}
    jobs = {submission.job.id: submission.job for submission in workload.jobs}
    idle = []
    for lease in held:
        (name,) = lease.jobs
        rate = jobs[name].throughputs[lease.accelerator] * workload.time_scale
        over = lease.revoked_at or lease.ended_at
        if lease.granted_at is not None and over is not None:
            idle.append(over - lease.planned_at - steps.get((name, lease.number), 0) / rate)
    return idle


def _progress(jobs: list[JobRecord], began: float) -> None:
    if time.time() - _said[0] > 10:
        _said[0] = time.time()
        active = [job for job in jobs if job.active]
        running = sum(job.state is not JobState.QUEUED for job in active)
        text = f"  {time.time() - began:4.0f} s: {len(jobs) - len(active)} of {len(jobs)} jobs done, {running} running"
        print(text, file=sys.stderr, flush=True)


_said = [0.0]
