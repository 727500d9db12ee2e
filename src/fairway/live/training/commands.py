"""What the engine wants done, as changes for the store and commands for the backend.

Leases that are granted are started, those that are taken back are asked to end. Of two jobs that shared, the one that
stays is handed over to a new lease: it runs on, and nothing of it is stopped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from fairway.engine.training.messages import (
    BeginRound,
    Command,
    Event,
    Extend,
    Grant,
    JobArrived,
    JobResumed,
    Refuse,
    Revoke,
    Undecided,
)
from fairway.live.backend.commands import EndRun, ExtendLeases, HandOverRun
from fairway.live.training import ledger
from fairway.live.training.engine_job import is_unknown
from fairway.live.training.leases import LiveJob, LiveLease, LiveRun
from fairway.live.training.start_command import start_of
from fairway.store.leases import extend_leases, revoke_leases

if TYPE_CHECKING:
    from fairway.live.training.scheduler import LiveScheduler


def follow(scheduler: LiveScheduler, events: Sequence[Event], commands: Sequence[Command]) -> None:
    """See to what the engine wants done because of the events of one moment."""
    arrivals = {event.job.id: event for event in events if isinstance(event, JobArrived | JobResumed)}
    for part in _parts(commands):
        _change_leases(scheduler, part)
    for command in commands:
        match command:
            case Extend():
                until = scheduler.clock.wall(command.until)
                scheduler.change(extend_leases, until, at=scheduler.clock.today())
                scheduler.commands.append(ExtendLeases(until))
            case BeginRound():
                wait = scheduler.clock.wall_seconds(command.at - scheduler.engine.now)
                scheduler.round_due = scheduler.clock.seconds() + wait
                scheduler.at(command.at, partial(scheduler.begin_round, command.at))
            case Refuse():
                scheduler.refuse(arrivals[command.job], command.reason)
            case Undecided():
                # At the engine's time, which is before that of the next round, however long this one took.
                scheduler.at(scheduler.engine.now, partial(scheduler.suspects.undecided, command))


def _parts(commands: Sequence[Command]) -> Iterator[list[Command]]:
    """The commands of one event after another, as far as it matters: a later event may take back what one granted."""
    part: list[Command] = []
    granted = False
    for command in commands:
        if granted and isinstance(command, Revoke):
            yield part
            part, granted = [], False
        part.append(command)
        granted |= isinstance(command, Grant)
    yield part


def _change_leases(scheduler: LiveScheduler, commands: Sequence[Command]) -> None:
    grants = [command for command in commands if isinstance(command, Grant)]
    staying = {job for grant in grants if not grant.restart for job in grant.jobs}
    revokes = [command for command in commands if isinstance(command, Revoke)]
    for restart in (True, False):
        _revoke(scheduler, [revoke for revoke in revokes if revoke.restart is restart], staying, save=restart)
    if grants:
        _grant(scheduler, grants)


def _revoke(scheduler: LiveScheduler, revokes: Sequence[Revoke], staying: set[str], *, save: bool) -> None:
    jobs: list[tuple[LiveLease, str]] = []
    taken: list[LiveLease] = []
    for revoke in revokes:
        lease = scheduler.leases.get(revoke.lease)
        if save:
            scheduler.statistics.preemptions_total += len(revoke.jobs)
        if lease is not None:  # otherwise its runs have ended, which is why it is taken back
            taken.append(lease)
            jobs += [(lease, job) for job in revoke.jobs if job not in staying]
    take_back(scheduler, taken, jobs, save=save)


def take_back(
    scheduler: LiveScheduler, leases: Sequence[LiveLease], jobs: Sequence[tuple[LiveLease, str]], *, save: bool
) -> None:
    """Ask jobs to end, each under its lease; the leases are to hold their workers no longer than that takes."""
    at = scheduler.clock.today()
    new = [lease.number for lease in leases if not lease.revoked]
    for lease in leases:
        lease.revoked = True
    if new:
        scheduler.change(revoke_leases, new, at=at)
    ending = [(lease, name) for lease, name in jobs if not lease.runs[name].over]
    running = [name for lease, name in ending if lease.runs[name].state == "running"]
    if save and running:
        scheduler.change(ledger.note_preempting, running, at=at)
    for lease, name in ending:
        ask_to_end(scheduler, lease, name)


def ask_to_end(scheduler: LiveScheduler, lease: LiveLease, name: str) -> None:
    """Ask one job to end: after a checkpoint, unless it cannot be preempted or its owner has taken it back."""
    job = scheduler.jobs.get(name)
    save = job is not None and job.spec.preemptible and not job.cancelled
    scheduler.commands.append(EndRun(lease.runs[name].known_as[-1], name, save=save))


def _grant(scheduler: LiveScheduler, grants: Sequence[Grant]) -> None:
    clock = scheduler.clock
    leases = [LiveLease(replace(grant, until=clock.wall(grant.until))) for grant in grants]
    scheduler.statistics.leases_granted_total += len(leases)
    scheduler.change(ledger.note_granted, [lease.grant for lease in leases], at=clock.today())
    for lease in leases:
        scheduler.leases.add(lease)
        if not lease.grant.restart:
            _hand_over(scheduler, lease)
        else:
            for name in lease.grant.jobs:
                start(scheduler, lease, scheduler.jobs[name])


def _hand_over(scheduler: LiveScheduler, lease: LiveLease) -> None:
    """The one that its job shared with has left: it goes on, alone, under the new lease."""
    (name,) = lease.grant.jobs
    *_, old = (other for other in scheduler.leases.of_job(name) if other is not lease)
    inherit(lease, old)
    job = scheduler.jobs[name]
    job.steps_per_second = None  # how fast it was beside the other says nothing any more
    ask_to_hand_over(scheduler, lease, job)
    close_if_over(scheduler, old, scheduler.clock.today(), None)


def inherit(lease: LiveLease, old: LiveLease) -> None:
    """Let the one job of a lease go on under it as it ran under the old one, which still holds the workers."""
    (name,) = lease.grant.jobs
    run = old.runs[name]
    lease.runs[name], lease.follows = LiveRun((*run.known_as, lease.number), run.state), old.number
    run.state = "ended"


def ask_to_hand_over(scheduler: LiveScheduler, lease: LiveLease, job: LiveJob) -> None:
    """Let the backend know under which lease a job goes on."""
    before = next(number for number in reversed(lease.runs[job.id].known_as) if number != lease.number)
    rate = pace(scheduler, lease.grant, job)
    scheduler.commands.append(HandOverRun(job.id, before, lease.number, lease.grant.until, rate))


def start(scheduler: LiveScheduler, lease: LiveLease, job: LiveJob) -> None:
    """Have a job started under a lease."""
    grant = lease.grant
    places = tuple(scheduler.places.get((grant.accelerator, worker), worker) for worker in grant.workers)
    rate = pace(scheduler, grant, job)
    command = start_of(
        job.spec,
        job.id,
        grant,
        attempt=job.attempts + 1,
        steps_per_second=rate,
        user=scheduler.user_of(job.team),
        log_bytes=scheduler.log_bytes,
    )
    scheduler.commands.append(replace(command, workers=places))


def pace(scheduler: LiveScheduler, grant: Grant, job: LiveJob) -> float | None:
    """The rate to emulate: what the profile says, alone or beside another; None where it says nothing."""
    table, spec = scheduler.table, job.spec
    if is_unknown(spec):
        return None
    members = [scheduler.jobs[name].spec.job_type for name in grant.jobs if name in scheduler.jobs]
    if len(members) == 2 and table is not None and members[0] is not None and members[1] is not None:
        together = table.pair_rates(members[0], members[1], spec.workers)
        return together.get(grant.accelerator, (0.0, 0.0))[grant.jobs.index(job.id)] or None
    if spec.throughputs is not None:
        return {name.lower(): rate for name, rate in spec.throughputs.items()}.get(grant.accelerator.lower()) or None
    if table is None or spec.job_type is None:
        return None
    rate = table.rates(spec.job_type, spec.workers, spread=grant.spread).get(grant.accelerator, 0.0)
    return rate * grant.part or None


def close_if_over(scheduler: LiveScheduler, lease: LiveLease, ended_at: float, reason: str | None) -> None:
    """End a lease in the store when nothing runs under it, and let the one that follows it hold its workers."""
    if not lease.over:
        return
    following = scheduler.leases.following(lease.number)
    scheduler.leases.drop(lease)
    if following is None:
        scheduler.change(ledger.note_leases_over, [lease.number], at=ended_at, reason=reason)
        return
    following.follows = None
    (name,) = following.grant.jobs
    scheduler.change(ledger.note_continued, name, lease.number, following.number, at=ended_at)
