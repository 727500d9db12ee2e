"""Goes on where the last controller stopped: from what the store holds, the engine's first events and the leases.

Jobs keep their place in the queue and what they are owed. Leases that were not taken back stay held, so whoever runs
runs on. Those that were are only waited for.
"""

from __future__ import annotations

import json
import logging
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from fairway.cluster import Cluster
from fairway.engine.training_messages import Event, Grant, JobResumed, LeaseResumed, WorkersLeft
from fairway.errors import InputError
from fairway.jobs import Job
from fairway.live.assignments import ENDED, PLANNED, RUNNING, LiveJob, LiveLease
from fairway.live.job_spec import JobSpec, parse_job_spec
from fairway.live.scheduler import LiveScheduler
from fairway.live.standing import NEW, Standing
from fairway.live.verdict import back_off_seconds
from fairway.profiles.tables import ThroughputTable
from fairway.store.job_changes import change_job
from fairway.store.queries import Snapshot
from fairway.store.records import JobRecord, LeaseRecord, Reason, Worker
from fairway.store.states import HOLDING, JobState

_LOG = logging.getLogger(__name__)


def spec_of(record: JobRecord) -> JobSpec:
    """The description of a job that is in the store."""
    return parse_job_spec(json.dumps(record.spec), f"job '{record.id}'")


def engine_job(
    scheduler: LiveScheduler, record: JobRecord, job: LiveJob, cluster: Cluster, table: ThroughputTable | None
) -> tuple[Job, float | None]:
    """A job as the engine sees it, with its deadline on the engine's clock."""
    spec, clock = job.spec, scheduler.clock
    described = spec.job(job.id, cluster, datetime.fromtimestamp(record.submitted_at, UTC), table)
    rates = scheduler.beliefs.first(spec, described.throughputs, job.measured)
    deadline = None
    if spec.deadline is not None:
        deadline = clock.at(spec.deadline.timestamp())
    elif spec.slo_seconds is not None:
        deadline = clock.at(record.submitted_at) + spec.slo_seconds
    return replace(described, throughputs=rates, steps_left=record.steps_left, slo_seconds=None), deadline


def cluster_of(workers: list[Worker], prices: Mapping[str, float]) -> Cluster:
    """All the workers that ever were, by type; those that are gone are told to the engine afterwards."""
    counts: dict[str, int] = {}
    for worker in workers:
        counts[worker.accelerator] = max(counts.get(worker.accelerator, 0), worker.number + 1)
    return Cluster(counts, {name: prices[name] for name in counts} if prices else {})


def resume(
    scheduler: LiveScheduler,
    snapshot: Snapshot,
    standings: Mapping[str, Standing],
    cluster: Cluster,
) -> list[Event]:
    """Bring a new scheduler to where the last one was; returns what its engine was told for that."""
    now = scheduler.clock.now()
    events: list[Event] = []
    gone: dict[str, list[int]] = defaultdict(list)
    for worker in snapshot.workers:
        if worker.lost_at is not None or worker.drained_at is not None:
            gone[worker.accelerator].append(worker.number)
    measured: dict[str, dict[str, float]] = defaultdict(dict)
    for rate in snapshot.rates:
        if not rate.beside:
            measured[rate.job][rate.accelerator] = rate.steps_per_second
    for record in snapshot.jobs:
        try:
            job = LiveJob.of(record, spec_of(record))
            job.measured.update(measured[record.id])
            described, deadline = engine_job(scheduler, record, job, cluster, scheduler.table)
        except InputError as error:  # it was accepted for another cluster, or by another version
            _refuse(scheduler, record, str(error))
            continue
        scheduler.jobs[job.id] = job
        if job.cancelled:
            continue
        stands = standings.get(job.id, NEW)
        arrived = scheduler.clock.at(record.submitted_at)
        event = JobResumed(now, described, arrived, deadline, stands.isolated_seconds, stands.shares, stands.owed)
        wait = _rest_of_wait(record)
        if wait > 0:
            job.waiting = event
            scheduler.wait_before(job, wait)
        else:
            events.append(event)
    states = {record.id: record.state for record in snapshot.jobs}
    for lease in snapshot.leases:
        events += _lease_resumed(scheduler, lease, states, now)
    events += [WorkersLeft(now, name, tuple(numbers), drain=True) for name, numbers in gone.items()]
    for each in events:
        scheduler.tell(each, journal=False)
    return events


def _refuse(scheduler: LiveScheduler, record: JobRecord, why: str) -> None:
    _LOG.warning("%s", why)
    if record.state not in HOLDING:
        scheduler.change(change_job, record.id, JobState.FAILED, at=time.time(), reason=Reason("Unrunnable", why))


def _rest_of_wait(record: JobRecord) -> float:
    """How long a job still has to wait after its last failure."""
    if record.state is not JobState.QUEUED or record.reason_code != "BackOff":
        return 0.0
    return record.changed_at + back_off_seconds(record.failures) - time.time()


def _lease_resumed(
    scheduler: LiveScheduler, record: LeaseRecord, states: Mapping[str, JobState], now: float
) -> list[Event]:
    jobs = [scheduler.jobs[job] for job in record.jobs if job in scheduler.jobs]
    grant = Grant(
        record.number, record.jobs, record.accelerator, record.workers, record.until, record.restart, record.spread
    )
    lease = LiveLease(grant, held=record.held, revoked=record.revoked_at is not None)
    for job in record.jobs:
        runs = record.held and states.get(job) in HOLDING
        lease.runs[job] = ENDED if job not in scheduler.jobs else RUNNING if runs else PLANNED
    if not record.restart and not record.held:
        before = [other for name in record.jobs for other in scheduler.leases.of_job(name)]
        if before:
            old = max(before, key=lambda other: other.grant.lease)
            lease.follows = old.grant.lease
            for name in record.jobs:
                lease.runs[name], old.runs[name] = old.runs[name], ENDED
    scheduler.leases.add(lease)
    wanted = tuple(job.id for job in jobs if not job.cancelled)
    if lease.revoked or not wanted or lease.over:
        return []
    return [LeaseResumed(now, record.number, wanted, record.accelerator, record.workers, record.spread)]
