"""Brings the runs that the backend knows together with those that should be, after either side was away.

The store says what should be, the backend what is. Runs that should be are adopted, or started if the backend does not
know them; runs that should not be are asked to end. What is lost or has ended meanwhile is taken in first, the oldest
lease before those that followed it, so that workers are free in the store before others hold them.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from fairway.live.backend.commands import EndRun, RetireJob
from fairway.live.backend.status import BackendStatus, RunStatus
from fairway.live.training import reports
from fairway.live.training.commands import ask_to_hand_over, start
from fairway.live.training.leases import LiveLease

if TYPE_CHECKING:
    from fairway.live.training.scheduler import LiveScheduler

_LOG = logging.getLogger(__name__)

Key = tuple[int, str]
"""A run as the backend knows it: the number of the lease, and the job."""


def reconcile(scheduler: LiveScheduler, status: BackendStatus) -> None:
    """Compare, and do what is missing; `status` is all that the backend knows."""
    there: dict[Key, RunStatus] = {(run.lease, run.job): run for run in status.runs}
    _recognise(scheduler, there)
    expected = {(lease.number, name) for lease in scheduler.leases for name in _expected(lease)}
    for lease, name in _unknown(scheduler, expected, there):
        if lease.runs[name].state == "running":
            reports.lost(scheduler, lease, name)
    for (number, name), run in sorted(there.items()):
        if run.outcome is not None:
            reports.ended(scheduler, number, name, run.outcome)
    for (number, name), run in there.items():
        if run.outcome is None:
            _adopt(scheduler, number, name, run)
    for lease, name in _unknown(scheduler, expected, there):
        _close_gap(scheduler, lease, name)
    for name in status.former:
        if name not in scheduler.jobs and not scheduler.leases.of_job(name):
            scheduler.commands.append(RetireJob(name))


def _unknown(
    scheduler: LiveScheduler, expected: Collection[Key], there: Mapping[Key, RunStatus]
) -> Iterator[tuple[LiveLease, str]]:
    """The runs that should be and that the backend does not know, by the numbers of their leases."""
    for number, name in sorted(expected):
        lease = scheduler.leases.holding(number, name)
        if lease is not None and not any((known_as, name) in there for known_as in lease.runs[name].known_as):
            yield lease, name


def _expected(lease: LiveLease) -> list[str]:
    """The jobs that run under a lease, or are to."""
    return [name for name, run in lease.runs.items() if not run.over]


def _recognise(scheduler: LiveScheduler, there: Mapping[Key, RunStatus]) -> None:
    """Find out under which number the backend knows each run: another one, if it missed that it was handed over."""
    leases = list(scheduler.leases)
    taken = {(lease.number, name) for lease in leases for name in _expected(lease)}
    for lease in leases:
        for name in _expected(lease):
            if (lease.number, name) not in there and not lease.grant.restart:
                others = [key[0] for key in there.keys() - taken if key[1] == name and key[0] < lease.number]
                lease.runs[name].known_as = (*others, lease.number)
            else:
                lease.runs[name].known_as = (lease.number,)


def _adopt(scheduler: LiveScheduler, number: int, name: str, run: RunStatus) -> None:
    """The backend has a run that has not ended."""
    lease, job = scheduler.leases.holding(number, name), scheduler.jobs.get(name)
    if lease is None:
        _LOG.warning("job '%s' runs under lease %d, which has ended; it is asked to stop", name, number)
        scheduler.commands.append(EndRun(number, name, save=run.preemptible))
        return
    if job is None:
        save = name in scheduler.set_aside and run.preemptible
        scheduler.commands.append(EndRun(number, name, save=save))
        return
    if run.started is not None:
        reports.running(scheduler, lease, job, started_at=run.started)
    if run.steps is not None:
        reports.progressed(lease, job, number, run.steps, run.steps_per_second)
        reports.saved(scheduler, job, run.checkpoint_step)
    if lease.revoked or job.cancelled:
        save = job.spec.preemptible and not job.cancelled
        scheduler.commands.append(EndRun(number, name, save=save))
    elif number != lease.number:
        ask_to_hand_over(scheduler, lease, job)


def _close_gap(scheduler: LiveScheduler, lease: LiveLease, name: str) -> None:
    """The backend does not know a run that is planned."""
    job = scheduler.jobs.get(name)
    if job is None or job.cancelled or lease.revoked:
        reports.never_began(scheduler, lease, name)
    else:
        start(scheduler, lease, job)
