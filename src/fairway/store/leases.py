"""Leases: who may run on which workers. Two never hold the same worker, and a number is never used twice.

Leases on parts of workers may hold the same one, together never more than the whole of it.

A lease is planned when the engine grants it, and holds its workers once those before it have let go of them; where no
lease holds them, both happen at once. What comes late about a lease that has ended changes nothing, and the operation
says so by returning False.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from fairway.engine.training.messages import Grant
from fairway.errors import InputError
from fairway.store import counters
from fairway.store.database.parts import in_parts
from fairway.store.database.schema import held_parts, held_workers, jobs, lease_jobs, leases, workers
from fairway.store.errors import ConflictError, HeldError, IllegalChangeError, UnknownError
from fairway.store.records import LeaseRecord
from fairway.store.states import ACTIVE, JobState

_LEASE = select(leases).where(leases.c.number == bindparam("lease"))
_WORKERS = select(workers.c.number).where(
    workers.c.accelerator == bindparam("accelerator"), workers.c.number.in_(bindparam("values"))
)
_HOLDERS = select(held_workers.c.worker, held_workers.c.lease).where(
    held_workers.c.accelerator == bindparam("accelerator"),
    held_workers.c.worker.in_(bindparam("values")),
)
_PART_HOLDERS = select(held_parts.c.worker, held_parts.c.lease, held_parts.c.part).where(
    held_parts.c.accelerator == bindparam("accelerator"),
    held_parts.c.worker.in_(bindparam("values")),
)
_JOBS = select(jobs.c.id, jobs.c.state).where(jobs.c.id.in_(bindparam("values")))
_JOB_HOLDERS = select(lease_jobs.c.job, lease_jobs.c.lease).where(
    lease_jobs.c.held, lease_jobs.c.job.in_(bindparam("values"))
)
_HOLD = update(lease_jobs).where(lease_jobs.c.lease == bindparam("of_lease")).values(held=bindparam("is_held"))
_GRANT = update(leases).where(leases.c.number == bindparam("of_lease")).values(granted_at=bindparam("at"))
_ENDS = select(leases.c.number, leases.c.ended_at).where(leases.c.number.in_(bindparam("values")))
_END = (
    update(leases)
    .where(leases.c.number == bindparam("of_lease"))
    .values(ended_at=bindparam("at"), reason=bindparam("why"))
)
_RELEASE = delete(held_workers).where(held_workers.c.lease == bindparam("of_lease"))
_RELEASE_PARTS = delete(held_parts).where(held_parts.c.lease == bindparam("of_lease"))

_ROUNDING = 1e-6
"""Parts add up to a whole worker but for so much."""


def last_lease(connection: Connection) -> int:
    """The highest number that any lease ever had; new ones have to be above it."""
    return counters.last(connection, counters.LEASES)


def lease_numbered(connection: Connection, number: int) -> LeaseRecord:
    """A lease as it stands."""
    row = connection.execute(_LEASE, {"lease": number}).one_or_none()
    if row is None:
        raise UnknownError(f"no lease {number}")
    return LeaseRecord(*row)


def plan_lease(connection: Connection, grant: Grant, *, at: float) -> LeaseRecord:
    """Write down that a lease was granted, though its workers may still be held by another."""
    plan_leases(connection, [grant], at=at)
    return lease_numbered(connection, grant.lease)


def plan_leases(
    connection: Connection, grants: Sequence[Grant], *, at: float, to_ended: bool = False
) -> frozenset[str]:
    """Plan many leases at once, in the order of their numbers; returns those of their jobs that have ended.

    A job that has ended needs no workers, so that a lease for it is refused; with `to_ended` it is not, for who grants
    without knowing, and gives the lease back when told.
    """
    if not grants:
        return frozenset()
    ended = _check(connection, grants)
    if ended and not to_ended:
        job, state = next(iter(ended.items()))
        number = next(grant.lease for grant in grants if job in grant.jobs)
        raise IllegalChangeError(f"lease {number}: job '{job}' is {state} and needs no workers")
    counters.raise_to(connection, counters.LEASES, grants[-1].lease)
    rows = [
        {
            "number": grant.lease,
            "jobs": grant.jobs,
            "accelerator": grant.accelerator,
            "workers": grant.workers,
            "until": grant.until,
            "restart": grant.restart,
            "spread": grant.spread,
            "planned_at": at,
            "part": grant.part,
        }
        for grant in grants
    ]
    connection.execute(insert(leases), rows)
    members = [{"job": job, "lease": grant.lease, "held": False} for grant in grants for job in grant.jobs]
    connection.execute(insert(lease_jobs), members)
    return frozenset(ended)


def start_lease(connection: Connection, number: int, *, at: float) -> bool:
    """Let a planned lease hold its workers; returns False if it holds them already or has ended.

    Raises, and says by whom, if another lease holds one of them, or one of its jobs. If that is a later one, this news
    has come late: the backend lets nothing run on a worker before what ran there has ended. The lease then holds the
    job for the news of its end, and no worker.
    """
    lease = lease_numbered(connection, number)
    if lease.granted_at is not None or lease.ended_at is not None:
        return False
    try:
        _hold(connection, [lease], at)
    except HeldError:
        _refuse_held(connection, [lease], up_to=number)
        held = {job for job, _ in connection.execute(_JOB_HOLDERS, {"values": list(lease.jobs)})}
        if not held:
            connection.execute(_HOLD, [{"of_lease": number, "is_held": True}])
        connection.execute(_GRANT, [{"of_lease": number, "at": at}])
    return True


def grant_lease(connection: Connection, grant: Grant, *, at: float) -> LeaseRecord:
    """Plan a lease and let it hold its workers at once."""
    grant_leases(connection, [grant], at=at)
    return lease_numbered(connection, grant.lease)


def grant_leases(connection: Connection, grants: Sequence[Grant], *, at: float) -> None:
    """Grant many leases at once, in the order of their numbers, such as all those of a round."""
    plan_leases(connection, grants, at=at)
    _hold(connection, [_record(grant, at) for grant in grants], at)


def extend_leases(connection: Connection, until: float, *, at: float, only: Iterable[int] | None = None) -> int:
    """Let all leases that have not ended and are not taken back, or only some of them, run on; returns how many."""
    statement = update(leases).where(leases.c.ended_at.is_(None), leases.c.revoked_at.is_(None))
    if only is not None:
        statement = statement.where(leases.c.number.in_(list(only)))
    return connection.execute(statement.values(until=until, extended_at=at)).rowcount


def revoke_leases(connection: Connection, numbers: Sequence[int], *, at: float) -> None:
    """The engine has taken these leases back; they hold their workers until their jobs have stopped."""
    for some in in_parts(numbers):
        statement = update(leases).where(leases.c.number.in_(list(some)), leases.c.revoked_at.is_(None))
        connection.execute(statement.values(revoked_at=at))


def end_lease(connection: Connection, number: int, *, at: float, reason: str | None = None) -> bool:
    """End a lease and free its workers; returns False, and changes nothing, if it had ended before."""
    return number in end_leases(connection, [number], at=at, reason=reason)


def end_leases(
    connection: Connection, numbers: Sequence[int], *, at: float, reason: str | None = None
) -> frozenset[int]:
    """End many leases at once; returns those that had not ended before."""
    found = {
        row.number: row.ended_at for some in in_parts(numbers) for row in connection.execute(_ENDS, {"values": some})
    }
    for number in numbers:
        if number not in found:
            raise UnknownError(f"no lease {number}")
    ending = frozenset(number for number, ended_at in found.items() if ended_at is None)
    if ending:
        connection.execute(_RELEASE, [{"of_lease": number} for number in ending])
        connection.execute(_RELEASE_PARTS, [{"of_lease": number} for number in ending])
        connection.execute(_HOLD, [{"of_lease": number, "is_held": False} for number in ending])
        connection.execute(_END, [{"of_lease": number, "at": at, "why": reason} for number in ending])
    return ending


def open_leases(connection: Connection) -> list[LeaseRecord]:
    """All leases that have not ended, planned ones too, by number."""
    statement = select(leases).where(leases.c.ended_at.is_(None)).order_by(leases.c.number)
    return [LeaseRecord(*row) for row in connection.execute(statement)]


def _record(grant: Grant, at: float) -> LeaseRecord:
    return LeaseRecord(
        grant.lease, grant.jobs, grant.accelerator, grant.workers, grant.until, grant.restart, grant.spread, at,
        part=grant.part,
    )  # fmt: skip


def _hold(connection: Connection, planned: Sequence[LeaseRecord], at: float) -> None:
    """Let planned leases hold their workers and jobs."""
    if not planned:
        return
    _refuse_held(connection, planned)
    whole = [
        {"accelerator": lease.accelerator, "worker": worker, "lease": lease.number}
        for lease in planned
        if lease.part == 1
        for worker in lease.workers
    ]
    parts = [
        {"accelerator": lease.accelerator, "worker": worker, "lease": lease.number, "part": lease.part}
        for lease in planned
        if lease.part < 1
        for worker in lease.workers
    ]
    for table, held in ((held_workers, whole), (held_parts, parts)):
        if held:
            connection.execute(insert(table), held)
    connection.execute(_HOLD, [{"of_lease": lease.number, "is_held": True} for lease in planned])
    connection.execute(_GRANT, [{"of_lease": lease.number, "at": at} for lease in planned])


def _refuse_held(connection: Connection, planned: Sequence[LeaseRecord], *, up_to: float = math.inf) -> None:
    """Raise if a worker or a job is held, by a lease of before, with a number `up_to` this, or by another of these."""
    wanted = _by_type(planned)
    workers_of = {
        (accelerator, worker): lease
        for accelerator, numbers in wanted.items()
        for some in in_parts(numbers)
        for worker, lease in connection.execute(_HOLDERS, {"accelerator": accelerator, "values": some})
        if lease <= up_to
    }
    parts_of: dict[tuple[str, int], list[tuple[int, float]]] = {}
    for accelerator, numbers in wanted.items():
        for some in in_parts(numbers):
            for worker, lease, part in connection.execute(_PART_HOLDERS, {"accelerator": accelerator, "values": some}):
                if lease <= up_to:
                    parts_of.setdefault((accelerator, worker), []).append((lease, part))
    names = [job for lease in planned for job in lease.jobs]
    jobs_of = {
        job: lease
        for some in in_parts(names)
        for job, lease in connection.execute(_JOB_HOLDERS, {"values": some})
        if lease <= up_to
    }
    for lease in planned:
        wait = f"lease {lease.number} has to wait"
        for worker in lease.workers:
            key = (lease.accelerator, worker)
            parts = parts_of.setdefault(key, [])
            holder = workers_of.setdefault(key, lease.number) if lease.part == 1 else workers_of.get(key, lease.number)
            if holder != lease.number:
                raise HeldError(f"worker {lease.accelerator} {worker} is held by lease {holder}, {wait}")
            taken = sum(part for _, part in parts)
            if taken + lease.part > 1 + _ROUNDING:
                holders = f"{taken:g} of worker {lease.accelerator} {worker} are held by leases"
                raise HeldError(f"{holders} {', '.join(str(number) for number, _ in parts)}, {wait}")
            if lease.part < 1:
                parts.append((lease.number, lease.part))
        for job in lease.jobs:
            holder = jobs_of.setdefault(job, lease.number)
            if holder != lease.number:
                raise HeldError(f"job '{job}' holds lease {holder}, {wait}")


def _by_type(asked: Iterable[Grant | LeaseRecord]) -> dict[str, list[int]]:
    numbers: dict[str, list[int]] = {}
    for lease in asked:
        numbers.setdefault(lease.accelerator, []).extend(lease.workers)
    return numbers


def _check(connection: Connection, grants: Sequence[Grant]) -> dict[str, JobState]:
    """Refuse leases that make no sense: a number of before, jobs or workers that are not there.

    Returns the jobs that have ended, with their states.
    """
    last = last_lease(connection)
    for grant in grants:
        if grant.lease <= last:
            raise ConflictError(f"lease {grant.lease} cannot be new: numbers up to {last} were used")
        last = grant.lease
        for what, given in (("jobs", grant.jobs), ("workers", grant.workers)):
            if len(set(given)) != len(given) or not given:
                raise InputError(f"lease {last}: {what} {list(given)} given, expected at least one, none twice")
    names = [job for grant in grants for job in grant.jobs]
    states = {row.id: row.state for some in in_parts(names) for row in connection.execute(_JOBS, {"values": some})}
    there = {
        (accelerator, worker)
        for accelerator, numbers in _by_type(grants).items()
        for some in in_parts(numbers)
        for worker in connection.execute(_WORKERS, {"accelerator": accelerator, "values": some}).scalars()
    }
    for grant in grants:
        for job in grant.jobs:
            if job not in states:
                raise UnknownError(f"lease {grant.lease}: no job '{job}'")
        for worker in grant.workers:
            if (grant.accelerator, worker) not in there:
                raise UnknownError(f"lease {grant.lease}: no worker {grant.accelerator} {worker} is registered")
    return {job: state for job, state in states.items() if state not in ACTIVE}
