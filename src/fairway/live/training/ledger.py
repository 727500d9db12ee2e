"""What the store has to know of runs, each as one operation that can be done twice and that never contradicts it.

The owner of a job may cancel it at any moment, behind the controller's back; so every operation looks first at how the
job stands, and leaves one that has ended alone. `at` is when it is written down. When it happened may be earlier, if no
controller was there; the histories of leases and attempts go by that.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from fairway.engine.training.messages import Grant
from fairway.live.training.verdict import Verdict
from fairway.store.job_changes import (
    change_job,
    continue_job,
    count_failure,
    explain_jobs,
    job_named,
    record_checkpoint,
    record_progress_of_many,
    run_jobs,
)
from fairway.store.leases import end_leases, lease_numbered, plan_leases, start_lease
from fairway.store.records import Reason
from fairway.store.states import HOLDING, JobState

_CANCELLED = Reason("Cancelled", "cancelled while it ran")


@dataclass(frozen=True, slots=True)
class EndedMeanwhile:
    """Jobs that have ended in the store, while the engine still thought that they wait."""

    jobs: Collection[str]


def note_granted(connection: Connection, grants: Sequence[Grant], *, at: float) -> EndedMeanwhile:
    """The engine has granted leases; says which of their jobs need them no more."""
    return EndedMeanwhile(plan_leases(connection, grants, at=at, to_ended=True))


def note_running(connection: Connection, job: str, lease: int, *, started_at: float, at: float) -> None:
    """The processes of a job run under a lease."""
    start_lease(connection, lease, at=started_at)
    if job_named(connection, job).state is JobState.QUEUED:
        run_jobs(connection, {job: lease}, at=at, started_at=started_at)


def note_continued(connection: Connection, job: str, old: int, lease: int, *, at: float) -> None:
    """A job goes on under a new lease, which takes over the workers of the one before, if that had them already."""
    held = lease_numbered(connection, old).held
    end_leases(connection, [old], at=at, reason="one of its jobs goes on alone")
    if held:
        start_lease(connection, lease, at=at)
    if job_named(connection, job).state is JobState.RUNNING:
        continue_job(connection, job, lease)


def note_preempting(connection: Connection, jobs: Collection[str], *, at: float) -> None:
    """Jobs that run were asked to save and stop."""
    reason = Reason("Preempting", "others are owed more; it saves a checkpoint and stops")
    for job in jobs:
        if job_named(connection, job).state is JobState.RUNNING:
            change_job(connection, job, JobState.PREEMPTING, at=at, reason=reason)


def note_checkpoint(connection: Connection, job: str, steps_left: float, *, at: float) -> None:
    """A checkpoint was saved."""
    record_checkpoint(connection, job, steps_left, at=at)


def note_progress(connection: Connection, steps_left: Mapping[str, float]) -> None:
    """So many steps are left of jobs that run."""
    record_progress_of_many(connection, steps_left)


def note_end(
    connection: Connection, job: str, verdict: Verdict, exit_code: int | None, *, ended_at: float, at: float
) -> EndedMeanwhile:
    """The run of a job has ended. One that waits, because it never ran, waits on unless it has to end.

    Says so if the job was to go on, but its owner has taken it back in the meantime.
    """
    before = job_named(connection, job)
    state, reason = verdict.state, verdict.reason
    taken_back = state is JobState.QUEUED and before.cancel_requested_at is not None
    if taken_back:
        state, reason = JobState.CANCELLED, _CANCELLED
    code = exit_code if verdict.failed or state is JobState.SUCCEEDED else None
    if before.state in HOLDING:
        if verdict.failed and code is None:
            code = -1  # what counts as a failure has a code
        change_job(connection, job, state, at=at, exit_code=code, reason=reason, ended_at=ended_at)
    elif before.state is JobState.QUEUED:
        if verdict.failed:
            count_failure(connection, job, at=at, reason=reason)
        elif verdict.wait_seconds:
            explain_jobs(connection, {job: reason})
        if state is not JobState.QUEUED:
            change_job(connection, job, state, at=at, exit_code=code, reason=reason, ended_at=ended_at)
    return EndedMeanwhile((job,) if taken_back or (not before.active and verdict.state is JobState.QUEUED) else ())


def note_cancelled(connection: Connection, job: str, *, at: float) -> None:
    """A job whose owner has taken it back does not run any more."""
    if job_named(connection, job).state is JobState.QUEUED:
        change_job(connection, job, JobState.CANCELLED, at=at, reason=Reason("Cancelled", "cancelled while it waited"))


def note_hopeless(connection: Connection, job: str, why: str, *, at: float) -> None:
    """A job that waits for others waits in vain."""
    if job_named(connection, job).state is JobState.QUEUED:
        change_job(connection, job, JobState.CANCELLED, at=at, reason=Reason("DependencyFailed", why))


def note_unrunnable(connection: Connection, job: str, why: str, *, at: float) -> None:
    """A job that has just come can never run here."""
    if job_named(connection, job).active:
        change_job(connection, job, JobState.FAILED, at=at, reason=Reason("Unrunnable", why))


def note_set_aside(connection: Connection, job: str, why: str, *, at: float) -> None:
    """A job of before cannot run as things are; it waits until they are otherwise, also if it ran until now."""
    before, reason = job_named(connection, job), Reason("Unrunnable", why)
    if before.cancel_requested_at is not None and before.active:
        change_job(connection, job, JobState.CANCELLED, at=at, reason=_CANCELLED)
    elif before.state in HOLDING:
        note_preempting(connection, [job], at=at)
        change_job(connection, job, JobState.QUEUED, at=at, reason=reason)
    elif before.state is JobState.QUEUED:
        explain_jobs(connection, {job: reason})


def note_leases_over(connection: Connection, numbers: Sequence[int], *, at: float, reason: str | None = None) -> None:
    """Nothing runs under these leases any more."""
    end_leases(connection, numbers, at=at, reason=reason)
