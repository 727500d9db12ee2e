"""Tells the engine and the store how fast jobs were seen to run, where that is news.

The engine is told of a rate that differs from what it believes, and decides anew; small differences are noise. Of a job
of which nothing was known, one measurement says what to expect on the other accelerator types.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairway.engine.training_messages import Grant, RateMeasured
from fairway.live.assignments import LiveJob, LiveLease
from fairway.live.beliefs import is_telling, is_unknown
from fairway.store.job_changes import replace_rates
from fairway.store.records import MeasuredRate

if TYPE_CHECKING:
    from fairway.live.scheduler import LiveScheduler


def tell(scheduler: LiveScheduler) -> None:
    """Look at all leases; to be called before a round begins."""
    news: list[MeasuredRate] = []
    for lease in scheduler.leases:
        if lease.revoked or not all(name in scheduler.engine.jobs for name in lease.grant.jobs):
            continue
        members = [scheduler.jobs[name] for name in lease.grant.jobs]
        reported = [job.steps_per_second for job in members]
        rates = [rate / scheduler.clock.time_scale for rate in reported if rate]
        if len(rates) == len(members):
            _compare(scheduler, lease, members, rates)
            if not lease.recorded or _differ(rates, lease.recorded):
                lease.recorded = tuple(rates)
                news += _measured(lease.grant, rates, scheduler.clock.today())
    if news:
        scheduler.change(replace_rates, news)


def _measured(grant: Grant, rates: Sequence[float], at: float) -> list[MeasuredRate]:
    others = [*grant.jobs[1:], ""] if len(grant.jobs) == 1 else grant.jobs[::-1]
    rows = zip(grant.jobs, others, rates, strict=True)
    return [MeasuredRate(name, grant.accelerator, beside, rate, at) for name, beside, rate in rows]


def _compare(scheduler: LiveScheduler, lease: LiveLease, members: Sequence[LiveJob], rates: Sequence[float]) -> None:
    names, accelerator = lease.grant.jobs, lease.grant.accelerator
    table = scheduler.engine.jobs
    believed = lease.told or [float(table.rate[table.position(name)]) for name in names]
    if _differ(rates, believed):
        lease.told = tuple(rates)
        scheduler.tell(RateMeasured(scheduler.time(), names, accelerator, tuple(rates)))
        if len(members) == 1:
            members[0].measured[accelerator] = rates[0]
            _expect_elsewhere(scheduler, members[0], accelerator, rates[0])


def _differ(rates: Sequence[float], others: Sequence[float]) -> bool:
    return any(is_telling(rate, other) for rate, other in zip(rates, others, strict=True))


def _expect_elsewhere(scheduler: LiveScheduler, job: LiveJob, seen_on: str, rate: float) -> None:
    """What was seen of a job on one type says what to expect on those where nothing was."""
    if not is_unknown(job.spec):
        return
    table = scheduler.engine.jobs
    believed = dict(zip(scheduler.engine.types, table.rates[table.position(job.id)].tolist(), strict=True))
    for other, before in believed.items():
        if before and other not in job.measured:
            expected = scheduler.beliefs.elsewhere(seen_on, rate, other)
            scheduler.tell(RateMeasured(scheduler.time(), (job.id,), other, (expected,)))
