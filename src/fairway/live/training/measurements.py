"""How fast jobs were seen to run, for the engine and the store, where that is news.

A rate that differs from what the engine believes is an event, after which the policy decides anew; small differences
are noise. Of a job of which nothing was known, one measurement says what to expect on the other accelerator types.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from fairway.engine.training.messages import Grant, RateMeasured
from fairway.live.training.beliefs import is_telling
from fairway.live.training.engine_job import is_unknown
from fairway.live.training.leases import LiveJob, LiveLease
from fairway.magnitudes import FACTORS
from fairway.store.job_changes import replace_rates
from fairway.store.records import MeasuredRate

if TYPE_CHECKING:
    from fairway.live.training.scheduler import LiveScheduler


def news(scheduler: LiveScheduler) -> list[RateMeasured]:
    """What the engine is to know before a round begins, of all leases; what is new to the store is written."""
    events: list[RateMeasured] = []
    measured: list[MeasuredRate] = []
    for lease in scheduler.leases:
        if lease.revoked or not all(name in scheduler.engine.jobs for name in lease.grant.jobs):
            continue
        members = [scheduler.jobs[name] for name in lease.grant.jobs]
        reported = [job.steps_per_second for job in members]
        scaled = [rate / scheduler.clock.time_scale for rate in reported if rate]
        rates = [rate for rate in scaled if rate > 0 and rate in FACTORS]  # a job may report whatever it likes
        if len(rates) == len(members):
            events += _compared(scheduler, lease, members, rates)
            if not lease.recorded or _differ(rates, lease.recorded):
                lease.recorded = tuple(rates)
                measured += _measured(lease.grant, rates, scheduler.clock.today())
    if measured:
        scheduler.change(replace_rates, measured)
    return events


def _measured(grant: Grant, rates: Sequence[float], at: float) -> list[MeasuredRate]:
    others = [*grant.jobs[1:], ""] if len(grant.jobs) == 1 else grant.jobs[::-1]
    rows = zip(grant.jobs, others, rates, strict=True)
    return [MeasuredRate(name, grant.accelerator, beside, rate, at) for name, beside, rate in rows]


def _compared(
    scheduler: LiveScheduler, lease: LiveLease, members: Sequence[LiveJob], rates: Sequence[float]
) -> Iterator[RateMeasured]:
    names, accelerator = lease.grant.jobs, lease.grant.accelerator
    table = scheduler.engine.jobs
    believed = lease.believed or [float(table.rate[table.position(name)]) for name in names]
    first_seen = len(members) == 1 and is_unknown(members[0].spec) and accelerator not in members[0].measured
    if first_seen or _differ(rates, believed):
        lease.believed = tuple(rates)
        yield RateMeasured(names, accelerator, tuple(rates))
        if len(members) == 1:
            members[0].measured[accelerator] = rates[0]
            yield from _expected_elsewhere(scheduler, members[0], accelerator, rates[0])


def _differ(rates: Sequence[float], others: Sequence[float]) -> bool:
    return any(is_telling(rate, other) for rate, other in zip(rates, others, strict=True))


def _expected_elsewhere(scheduler: LiveScheduler, job: LiveJob, seen_on: str, rate: float) -> Iterator[RateMeasured]:
    """What was seen of a job on one type says what to expect on those where nothing was."""
    if not is_unknown(job.spec):
        return
    table = scheduler.engine.jobs
    believed = dict(zip(scheduler.engine.types, table.rates[table.position(job.id)].tolist(), strict=True))
    for other, before in believed.items():
        if before and other not in job.measured:
            expected = scheduler.beliefs.elsewhere(seen_on, rate, other)
            yield RateMeasured((job.id,), other, (expected,), expected=True)
