"""What the store has to know of runs, each as one operation that can be told twice and that never contradicts it.

The owner of a job may cancel it at any moment, behind the controller's back; so every operation looks first at how the
job stands, and leaves one that has ended alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection

from fairway.live.verdict import Verdict
from fairway.store.job_changes import (
    change_job,
    continue_job,
    count_failure,
    job_named,
    record_checkpoint,
    record_progress,
    run_jobs,
)
from fairway.store.leases import end_leases, start_lease
from fairway.store.records import Reason
from fairway.store.states import HOLDING, JobState


def note_running(connection: Connection, job: str, lease: int, *, at: float) -> None:
    """The processes of a job run under a lease."""
    start_lease(connection, lease, at=at)
    if job_named(connection, job).state is JobState.QUEUED:
        run_jobs(connection, {job: lease}, at=at)


def note_continued(connection: Connection, job: str, old: int, lease: int, *, at: float) -> None:
    """A job goes on under a new lease, and the one before is over."""
    end_leases(connection, [old], at=at, reason="one of its jobs goes on alone")
    start_lease(connection, lease, at=at)
    if job_named(connection, job).state is JobState.RUNNING:
        continue_job(connection, job, lease)


def note_preempting(connection: Connection, jobs: Sequence[str], *, at: float) -> None:
    """Jobs that run were asked to save and stop."""
    for job in jobs:
        if job_named(connection, job).state is JobState.RUNNING:
            reason = Reason("Preempting", "others are owed more; it saves a checkpoint and stops")
            change_job(connection, job, JobState.PREEMPTING, at=at, reason=reason)


def note_checkpoint(connection: Connection, job: str, steps_left: float | None, *, at: float) -> None:
    """A checkpoint was saved."""
    if steps_left is not None:
        record_checkpoint(connection, job, steps_left, at=at)


def note_progress(connection: Connection, job: str, steps_left: float) -> None:
    """So many steps are left."""
    record_progress(connection, job, steps_left)


def note_end(connection: Connection, job: str, verdict: Verdict, exit_code: int | None, *, at: float) -> None:
    """The run of a job has ended. One that waits, because it never ran, waits on unless it has to end."""
    before = job_named(connection, job).state
    code = exit_code if verdict.failed or verdict.state is JobState.SUCCEEDED else None
    if before in HOLDING:
        if verdict.failed and code is None:
            code = -1  # what counts as a failure has a code
        change_job(connection, job, verdict.state, at=at, exit_code=code, reason=verdict.reason)
    elif before is JobState.QUEUED:
        if verdict.failed and verdict.reason is not None:
            count_failure(connection, job, at=at, reason=verdict.reason)
        if verdict.state is not JobState.QUEUED:
            change_job(connection, job, verdict.state, at=at, exit_code=code, reason=verdict.reason)


def note_leases_over(connection: Connection, numbers: Sequence[int], *, at: float, reason: str | None = None) -> None:
    """Nothing runs under these leases any more."""
    end_leases(connection, numbers, at=at, reason=reason)
