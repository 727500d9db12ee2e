"""What happens to a job after it was taken in: its states with its attempts, its progress, its measured rates.

A message that names the lease it comes from counts only while the job runs under that lease: one that comes late, from
a former holder, changes nothing and the operation returns False. Progress never goes back beyond the last checkpoint:
when an attempt ends before the job does, what is left is what was left at the checkpoint.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, Double, and_, bindparam, case, delete, func, insert, or_, select, update

from fairway.errors import InputError
from fairway.store.database.parts import in_parts
from fairway.store.database.schema import attempts, jobs, lease_jobs, rates
from fairway.store.errors import HeldError, IllegalChangeError, StoreError, UnknownError
from fairway.store.records import JobRecord, MeasuredRate, Reason
from fairway.store.states import ACTIVE, FOLLOWING, HOLDING, JobState

_JOB = select(jobs).where(jobs.c.id == bindparam("job"))
_OPEN_LEASE = select(attempts.c.lease).where(attempts.c.job == bindparam("job"), attempts.c.ended_at.is_(None))
_STATES = select(jobs.c.id, jobs.c.state, jobs.c.attempts).where(jobs.c.id.in_(bindparam("values")))
_LEASES = select(lease_jobs.c.job, lease_jobs.c.lease).where(
    lease_jobs.c.held, lease_jobs.c.job.in_(bindparam("values"))
)
_RUN = (
    update(jobs)
    .where(jobs.c.id == bindparam("of_job"))
    .values(
        state=JobState.RUNNING,
        changed_at=bindparam("at"),
        started_at=func.coalesce(jobs.c.started_at, bindparam("started")),
        attempts=jobs.c.attempts + 1,
        exit_code=None,
        reason_code=None,
        reason=None,
    )
)
_END = (
    update(attempts)
    .where(attempts.c.job == bindparam("of_job"), attempts.c.ended_at.is_(None))
    .values({name: bindparam(name) for name in ("ended_at", "outcome", "exit_code", "reason")})
)
_EXPLAIN = (
    update(jobs)
    .where(
        jobs.c.id == bindparam("of_job"),
        jobs.c.state == JobState.QUEUED,
        # Most reasons are those of the round before; rows that would not change are not written.
        or_(
            jobs.c.reason_code.is_distinct_from(bindparam("code")),
            jobs.c.reason.is_distinct_from(bindparam("sentence")),
        ),
    )
    .values(reason_code=bindparam("code"), reason=bindparam("sentence"))
)


_PROGRESS = (
    update(jobs)
    .where(jobs.c.id == bindparam("of_job"), or_(*(jobs.c.state == state for state in sorted(HOLDING))))
    .values(
        steps_left=case(
            (jobs.c.checkpoint_steps_left < bindparam("left"), jobs.c.checkpoint_steps_left),
            else_=bindparam("left", type_=Double),
        )
    )
)


_FORGET_RATE = delete(rates).where(
    and_(
        rates.c.job == bindparam("of_job"),
        rates.c.accelerator == bindparam("on"),
        rates.c.beside == bindparam("with"),
    )
)


def job_named(connection: Connection, job: str) -> JobRecord:
    """A job as it stands."""
    row = connection.execute(_JOB, {"job": job}).one_or_none()
    if row is None:
        raise UnknownError(f"no job '{job}'")
    return JobRecord(*row)


def change_job(
    connection: Connection,
    job: str,
    state: JobState,
    *,
    at: float,
    lease: int | None = None,
    exit_code: int | None = None,
    reason: Reason | None = None,
    ended_at: float | None = None,
) -> bool:
    """Move a job to another state; raises if it cannot follow the one that it is in.

    To run, a job needs a lease that is held for it; that begins an attempt, which ends as the job leaves its workers.
    Back in the queue, the attempt counts as preempted if the job was being preempted, as failed if there is an exit
    code, and as lost otherwise. Returns False, and changes nothing, if `lease` is not the one that the job runs under.
    `ended_at` is when its processes ended, if that was before the controller could write it down.
    """
    if state is JobState.RUNNING:
        if lease is None:
            raise StoreError(f"job '{job}' cannot run without a lease")
        run_jobs(connection, {job: lease}, at=at)
        return True
    before = job_named(connection, job)
    if _is_late(connection, before, lease):
        return False
    _require_following(job, before.state, state)
    values: dict[str, object] = {"state": state, "changed_at": at}
    values["reason_code"], values["reason"] = (reason.code, reason.sentence) if reason else (None, None)
    end = at if ended_at is None else ended_at
    if state is not JobState.PREEMPTING:
        values["exit_code"] = exit_code
        if before.state in HOLDING:
            outcome = _outcome(before.state, state, exit_code)
            sentence = reason.sentence if reason else None
            connection.execute(
                _END, {"of_job": job, "ended_at": end, "outcome": outcome, "exit_code": exit_code, "reason": sentence}
            )
            values["failures"] = before.failures + (outcome == "failed")
            values["steps_left"] = _kept(before)
    if state not in ACTIVE:
        values["ended_at"] = end
        if state is JobState.SUCCEEDED and before.steps is not None:
            values["steps_left"] = 0.0
    connection.execute(update(jobs).where(jobs.c.number == before.number).values(values))
    return True


def run_jobs(connection: Connection, under: Mapping[str, int], *, at: float, started_at: float | None = None) -> None:
    """Move many jobs to running at once, each under a lease that is held for it, such as all those of a round.

    `started_at` is when their processes started, if that was before the controller could write it down.
    """
    start = at if started_at is None else started_at
    names = list(under)
    found = {row.id: row for some in in_parts(names) for row in connection.execute(_STATES, {"values": some})}
    held = {tuple(row) for some in in_parts(names) for row in connection.execute(_LEASES, {"values": some})}
    for job, lease in under.items():
        if job not in found:
            raise UnknownError(f"no job '{job}'")
        _require_following(job, found[job].state, JobState.RUNNING)
        if (job, lease) not in held:
            raise HeldError(f"lease {lease} is not held for job '{job}'")
    if under:
        connection.execute(
            insert(attempts),
            [
                {"job": job, "attempt": found[job].attempts + 1, "lease": lease, "started_at": start}
                for job, lease in under.items()
            ],
        )
        connection.execute(_RUN, [{"of_job": job, "at": at, "started": start} for job in under])


def continue_job(connection: Connection, job: str, lease: int) -> None:
    """A running job goes on under a new lease without a stop, such as when the one that it shared with has left."""
    before = job_named(connection, job)
    if before.state is not JobState.RUNNING:
        raise IllegalChangeError(f"job '{job}' is {before.state} and cannot go on under lease {lease}")
    if (job, lease) not in {tuple(row) for row in connection.execute(_LEASES, {"values": [job]})}:
        raise HeldError(f"lease {lease} is not held for job '{job}'")
    connection.execute(update(attempts).where(attempts.c.job == job, attempts.c.ended_at.is_(None)).values(lease=lease))


def count_failure(connection: Connection, job: str, *, at: float, reason: Reason) -> None:
    """An attempt of a job that waits failed before anything of it ran."""
    before = job_named(connection, job)
    if before.state is JobState.QUEUED:
        values = {
            "failures": before.failures + 1,
            "changed_at": at,
            "reason_code": reason.code,
            "reason": reason.sentence,
        }
        connection.execute(update(jobs).where(jobs.c.number == before.number).values(values))


def request_cancel(connection: Connection, job: str, *, at: float, reason: Reason | None = None) -> JobState:
    """Take a job back; returns the state that it is in then.

    One that waits is cancelled at once. One that runs has to be stopped first; that it should be is remembered. One
    that has ended stays as it is.
    """
    before = job_named(connection, job)
    if before.state is JobState.QUEUED:
        change_job(connection, job, JobState.CANCELLED, at=at, reason=reason)
        return JobState.CANCELLED
    if before.state in HOLDING and before.cancel_requested_at is None:
        connection.execute(
            update(jobs).where(jobs.c.number == before.number).values(cancel_requested_at=at, changed_at=at)
        )
    return before.state


def explain_jobs(connection: Connection, reasons: Mapping[str, Reason]) -> None:
    """Write down why jobs wait; those that do not wait any more are left alone."""
    rows = [{"of_job": job, "code": reason.code, "sentence": reason.sentence} for job, reason in reasons.items()]
    if rows:
        connection.execute(_EXPLAIN, rows)


def record_progress(connection: Connection, job: str, steps_left: float, *, lease: int | None = None) -> bool:
    """Write down how many steps a running job has left; what its last checkpoint has done stays done."""
    before = job_named(connection, job)
    if before.state not in HOLDING or _is_late(connection, before, lease):
        return False
    left = min(_amount(steps_left), _or_infinite(before.checkpoint_steps_left))
    connection.execute(update(jobs).where(jobs.c.number == before.number).values(steps_left=left))
    return True


def record_progress_of_many(connection: Connection, steps_left: Mapping[str, float]) -> None:
    """The same for many jobs at once, whatever their leases; those that do not run are left alone."""
    if steps_left:
        connection.execute(_PROGRESS, [{"of_job": job, "left": _amount(left)} for job, left in steps_left.items()])


def record_checkpoint(
    connection: Connection,
    job: str,
    steps_left: float,
    *,
    at: float,
    lease: int | None = None,
    path: str | None = None,
) -> bool:
    """Write down that a checkpoint was saved with so many steps left.

    Returns False, and changes nothing, if an earlier one is further on, if the job has ended or if `lease` is not the
    one that it runs under. Without `lease` it is taken as found on the disk, also while the job waits.
    """
    before = job_named(connection, job)
    left = _amount(steps_left)
    if before.state not in ACTIVE or _is_late(connection, before, lease):
        return False
    if left > _or_infinite(before.checkpoint_steps_left):
        return False
    values = {
        "checkpoint_steps_left": left,
        "checkpoint_at": at,
        "checkpoint": path,
        "steps_left": min(left, _or_infinite(before.steps_left)),
    }
    connection.execute(update(jobs).where(jobs.c.number == before.number).values(values))
    return True


def record_rates(
    connection: Connection,
    of: Sequence[str],
    accelerator: str,
    steps_per_second: Sequence[float],
    *,
    at: float,
) -> None:
    """Write down how fast a job, or each of two that share, was seen to run; replaces what was seen before."""
    if len(of) != len(steps_per_second) or len(of) not in {1, 2}:
        raise InputError(
            f"rates: {len(steps_per_second)} given for {len(of)} jobs, expected one for each of one or two"
        )
    for position, job in enumerate(of):
        job_named(connection, job)
        beside = of[1 - position] if len(of) == 2 else ""
        replace_rates(connection, [MeasuredRate(job, accelerator, beside, steps_per_second[position], at)])


def replace_rates(connection: Connection, measured: Sequence[MeasuredRate]) -> None:
    """Write down how fast jobs were seen to run, many at once, each in place of what was seen before."""
    if not measured:
        return
    keys = [{"of_job": one.job, "on": one.accelerator, "with": one.beside} for one in measured]
    connection.execute(_FORGET_RATE, keys)
    rows = [
        {
            "job": one.job,
            "accelerator": one.accelerator,
            "beside": one.beside,
            "steps_per_second": _amount(one.steps_per_second),
            "measured_at": one.measured_at,
        }
        for one in measured
    ]
    connection.execute(insert(rates), rows)


def _require_following(job: str, before: JobState, state: JobState) -> None:
    if state not in FOLLOWING[before]:
        following = " or ".join(sorted(FOLLOWING[before])) or "nothing"
        raise IllegalChangeError(f"job '{job}' is {before} and cannot become {state}; after {before} comes {following}")


def _is_late(connection: Connection, job: JobRecord, lease: int | None) -> bool:
    """Whether a message comes from a lease that the job does not run under any more."""
    return lease is not None and connection.execute(_OPEN_LEASE, {"job": job.id}).scalar_one_or_none() != lease


def _outcome(before: JobState, state: JobState, exit_code: int | None) -> str:
    if state is not JobState.QUEUED:
        return state.value
    if before is JobState.PREEMPTING:
        return "preempted"
    return "lost" if exit_code is None else "failed"


def _kept(job: JobRecord) -> float | None:
    """The steps that are left when an attempt is over: as of the last checkpoint, or all of them without one."""
    return job.steps if job.checkpoint_steps_left is None else job.checkpoint_steps_left


def _or_infinite(value: float | None) -> float:
    return math.inf if value is None else value


def _amount(value: float) -> float:
    if not (math.isfinite(value) and value >= 0):
        raise InputError(f"{value} given, expected a finite number of at least 0")
    return float(value)
