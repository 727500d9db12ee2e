"""Writes down a run of training jobs as it happens, in columns that become a `TrainingRecord`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fairway.cluster import Cluster
from fairway.jobs import Job
from fairway.report.training.record import FloatArray, JobColumns, LeaseColumns, Outcome, Timeline, TrainingRecord
from fairway.sim.kept_decisions import KeptDecisions


@dataclass(slots=True)
class JobRow:
    """What is known of one job so far; NaN for what has not happened."""

    index: int
    job: Job
    arrival: float
    deadline: float
    start: float = np.nan
    finish: float = np.nan
    isolated_seconds: float = np.nan
    cost_dollars: float = 0.0
    preemptions: int = 0
    run_seconds: float = 0.0
    held: dict[int, float] = field(default_factory=dict)
    outcome: Outcome = Outcome.UNFINISHED


class Recorder:
    """Rows of jobs, leases and rounds; leases only if they are to be kept."""

    def __init__(self, types: int, *, keep_leases: bool) -> None:
        self._types = types
        self._keep = keep_leases
        self.decisions: KeptDecisions | None = None
        self.jobs: list[JobRow] = []
        self.busy_seconds = np.zeros(types)
        self.leases_granted = 0
        self._counts_leases = False
        self._leases: list[tuple[int, int, int, float, float, float, float]] = []
        self._workers: list[int] = []
        self._offsets = [0]
        self._times: list[float] = []
        self._waiting: list[int] = []
        self._running: list[int] = []
        self._busy: list[Sequence[float]] = []

    def job(self, job: Job, arrival: float, deadline: float | None) -> JobRow:
        """A job has arrived."""
        row = JobRow(len(self.jobs), job, arrival, np.nan if deadline is None else deadline)
        self.jobs.append(row)
        return row

    def lease(
        self,
        members: tuple[JobRow, ...],
        column: int,
        workers: tuple[int, ...],
        start: float,
        end: float,
        steps: tuple[float, ...],
        *,
        held: float,
    ) -> None:
        """A lease has ended: count its time, and keep it if leases are kept. Parts of workers count as such."""
        seconds = (end - start) * held
        self.busy_seconds[column] += seconds
        for member in members:
            member.run_seconds += end - start
            member.held[column] = member.held.get(column, 0.0) + seconds / len(members)
        self._counts_leases = True
        if self._keep:
            self.keep_lease(members, column, workers, start, end, steps)

    def keep_lease(
        self,
        members: tuple[JobRow, ...],
        column: int,
        workers: tuple[int, ...],
        start: float,
        end: float,
        steps: tuple[float, ...],
    ) -> None:
        """Write a lease down, unless it took no time."""
        if end > start:
            partner, partner_steps = (members[1].index, steps[1]) if len(members) > 1 else (-1, 0.0)
            self._leases.append((members[0].index, partner, column, start, end, steps[0], partner_steps))
            self._workers.extend(workers)
            self._offsets.append(len(self._workers))

    def round(self, time: float, waiting: int, running: int, busy: Sequence[float]) -> None:
        """A round has begun and been decided."""
        self._times.append(time)
        self._waiting.append(waiting)
        self._running.append(running)
        self._busy.append(busy)

    def _has_parts(self) -> bool:
        return any(row.job.part < 1 for row in self.jobs)

    def _held_seconds(self) -> FloatArray:
        held = np.zeros((len(self.jobs), self._types))
        for number, row in enumerate(self.jobs):
            for column, seconds in row.held.items():
                held[number, column] = seconds
        return held

    def record(
        self,
        *,
        policy: str,
        cluster: Cluster,
        settings: Mapping[str, Any],
        window: tuple[int, int] | None,
        end: float,
        rounds: int,
        solves: int,
        wall_seconds: float,
    ) -> TrainingRecord:
        """Everything, as columns."""
        rows, size, in_parts = self.jobs, len(self.jobs), self._has_parts()
        counted = np.ones(size, dtype=bool)
        if window is not None:
            counted = (np.arange(size) >= window[0]) & (np.arange(size) < window[1])
        jobs = JobColumns(
            ids=tuple(row.job.id for row in rows),
            job_types=tuple(row.job.job_type for row in rows),
            entities=tuple(row.job.entity for row in rows),
            arrival=np.array([row.arrival for row in rows]),
            start=np.array([row.start for row in rows]),
            finish=np.array([row.finish for row in rows]),
            scale_factor=np.array(
                [row.job.scale_factor * (row.job.part if in_parts else 1) for row in rows],
                dtype=float if in_parts else np.int64,
            ),
            weight=np.array([row.job.weight for row in rows]),
            isolated_seconds=np.array([row.isolated_seconds for row in rows]),
            deadline=np.array([row.deadline for row in rows]),
            cost_dollars=np.array([row.cost_dollars for row in rows]),
            preemptions=np.array([row.preemptions for row in rows], dtype=np.int64),
            outcome=np.array([row.outcome for row in rows], dtype=np.int64),
            counted=counted,
            types=cluster.types,
            run_seconds=np.array([row.run_seconds for row in rows]) if self._counts_leases else None,
            held_seconds=self._held_seconds() if self._counts_leases else None,
        )
        columns = np.array(self._leases, dtype=float).reshape(len(self._leases), 7).T
        leases = LeaseColumns(
            job=columns[0].astype(np.int64),
            partner=columns[1].astype(np.int64),
            accelerator=columns[2].astype(np.int64),
            start=columns[3],
            end=columns[4],
            steps=columns[5],
            partner_steps=columns[6],
            offset=np.array(self._offsets, dtype=np.int64),
            workers=np.array(self._workers, dtype=np.int64),
        )
        counted_in = float if in_parts else np.int64
        timeline = Timeline(
            time=np.array(self._times),
            waiting=np.array(self._waiting, dtype=np.int64),
            running=np.array(self._running, dtype=np.int64),
            busy=np.array(self._busy, dtype=counted_in).reshape(len(self._busy), self._types),
        )
        return TrainingRecord(
            policy=policy,
            cluster=cluster,
            settings=settings,
            jobs=jobs,
            leases=leases,
            timeline=timeline,
            makespan_seconds=end,
            busy_seconds=self.busy_seconds,
            rounds=rounds,
            solves=solves,
            leases_granted=self.leases_granted,
            wall_seconds=wall_seconds,
            decisions=()
            if self.decisions is None
            else tuple((each.number, each.time, each.body) for each in self.decisions.kept),
        )
