"""The jobs of a live cluster as a table, with the columns that a simulated run has, as far as they are known live.

Times are of the wall clock: moments are seconds since 1970. Two jobs that share a worker count half of it each. What
has not ended is counted up to now.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairway.client.records import Job, Lease


def job_rows(jobs: Sequence[Job], now: float) -> dict[str, list[Any]]:
    """The columns; jobs have to come with their leases."""
    held = [_held(job, now) for job in jobs]
    sharing = _sharing(jobs)
    types = sorted({lease.accelerator for job in jobs for lease in job.leases if lease.accelerator is not None})
    columns: dict[str, list[Any]] = {
        "id": [job.id for job in jobs],
        "name": [job.name for job in jobs],
        "team": [job.team for job in jobs],
        "workers": [job.count for job in jobs],
        "weight": [job.weight for job in jobs],
        "priority_class": [job.priority_class for job in jobs],
        "state": [job.state for job in jobs],
        "submitted_at": [job.submitted_at for job in jobs],
        "started_at": [job.started_at for job in jobs],
        "ended_at": [job.ended_at for job in jobs],
        "jct": [_since(job.submitted_at, job.ended_at) for job in jobs],
        "wait": [_wait(job, run, now) for job, run in zip(jobs, held, strict=True)],
        "run": held,
        "attempts": [job.attempt_count for job in jobs],
        "failures": [job.failures for job in jobs],
        "preemptions": [max(job.attempt_count - 1 - job.failures, 0) for job in jobs],
        "steps": [job.steps for job in jobs],
        "steps_left": [job.steps_left for job in jobs],
    }
    for name in types:
        columns[f"{name}_seconds"] = [
            sum(
                _seconds(lease, now) * lease.part * len(lease.workers) / sharing.get(lease.number, 1)
                for lease in job.leases
                if lease.accelerator == name
            )
            for job in jobs
        ]
    return columns


def _held(job: Job, now: float) -> float:
    return sum(_seconds(lease, now) for lease in job.leases)


def _seconds(lease: Lease, now: float) -> float:
    return 0.0 if lease.granted_at is None else max((lease.ended_at or now) - lease.granted_at, 0.0)


def _sharing(jobs: Sequence[Job]) -> dict[int, int]:
    """How many of the jobs have held each lease."""
    counts: dict[int, int] = {}
    for job in jobs:
        for lease in job.leases:
            counts[lease.number] = counts.get(lease.number, 0) + 1
    return counts


def _since(start: float | None, end: float | None) -> float | None:
    return None if start is None or end is None else end - start


def _wait(job: Job, run: float, now: float) -> float | None:
    total = _since(job.submitted_at, job.ended_at or now)
    return None if total is None else max(total - run, 0.0)
