"""Goes on where the last controller stopped: from what the store holds, the engine's first events and the leases.

Jobs keep their place in the queue and what they are owed. Leases that were not taken back stay held, so whoever runs
runs on. Those that were are only waited for.
"""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from fairway.cluster import Cluster
from fairway.engine.training import TransitionError
from fairway.engine.training_messages import Event, Grant, JobResumed, LeaseResumed, WorkersLeft
from fairway.errors import InputError
from fairway.jobs import Job
from fairway.live import ledger
from fairway.live.acceptance import Acceptance
from fairway.live.assignments import LiveJob, LiveLease, Run
from fairway.live.job_spec import JobSpec, parse_job_spec
from fairway.live.orders import inherit, take_back
from fairway.live.scheduler import LiveScheduler
from fairway.live.standing import NEW, Standing
from fairway.live.verdict import back_off_seconds
from fairway.profiles import catalog
from fairway.store.queries import Snapshot
from fairway.store.records import JobRecord, LeaseRecord, Worker
from fairway.store.states import HOLDING, JobState

_LOG = logging.getLogger(__name__)


def spec_of(record: JobRecord) -> JobSpec:
    """The description of a job that is in the store."""
    return parse_job_spec(json.dumps(record.spec), f"job '{record.id}'")


@dataclass(frozen=True, slots=True)
class Reader:
    """Makes of a job in the store one that can be scheduled; refuses what can never run here, by `InputError`."""

    scheduler: LiveScheduler
    cluster: Cluster
    acceptance: Acceptance

    def read(self, record: JobRecord, measured: Mapping[str, float] | None = None) -> tuple[LiveJob, Job, float | None]:
        """The job as it is in the world and as the engine sees it, with its deadline on the engine's clock."""
        clock, spec = self.scheduler.clock, spec_of(record)
        job = LiveJob.of(record, spec)
        job.measured.update(measured or {})
        described = Job(
            id=record.id,
            throughputs=self.scheduler.beliefs.first(
                spec, spec.rates(self.cluster, self.scheduler.table), job.measured
            ),
            scale_factor=spec.accelerators.count,
            weight=record.weight,
            steps_left=record.steps_left,
            entity=record.team,
            job_type=spec.job_type,
            preemptible=spec.preemptible,
        )
        deadline = None
        if spec.deadline is not None:
            deadline = clock.at(spec.deadline.timestamp())
        elif spec.slo_seconds is not None:
            deadline = clock.at(record.submitted_at) + spec.slo_seconds
        self.acceptance.check(described, deadline)
        return job, described, deadline


def cluster_of(workers: list[Worker], prices: Mapping[str, float]) -> Cluster:
    """All the workers that ever were, by type; those that are gone are told to the engine afterwards."""
    counts: dict[str, int] = {}
    for worker in workers:
        counts[worker.accelerator] = max(counts.get(worker.accelerator, 0), worker.number + 1)
    missing = [name for name in counts if prices and name not in prices]
    if missing:
        raise InputError(f"prices: none given for '{missing[0]}'; give one for every accelerator type, or none at all")
    return catalog.priced(Cluster(counts, {name: prices[name] for name in counts} if prices else {}))


def resume(
    scheduler: LiveScheduler, reader: Reader, snapshot: Snapshot, standings: Mapping[str, Standing]
) -> list[Event]:
    """Bring a new scheduler to where the last one was; returns what its engine was told for that.

    Jobs that their owners have taken back are among them, to be cancelled like any other.
    """
    now = scheduler.time()  # the same for all: the engine has less to do while no time passes
    told: list[Event] = []
    _resume_jobs(scheduler, reader, snapshot, standings, now, told)
    states = {record.id: record.state for record in snapshot.jobs}
    for lease in snapshot.leases:
        _resume_lease(scheduler, lease, states, now, told)
    gone: dict[str, list[int]] = defaultdict(list)
    for worker in snapshot.workers:
        if worker.lost_at is not None or worker.drained_at is not None:
            gone[worker.accelerator].append(worker.number)
    for name, numbers in gone.items():
        _tell(scheduler, WorkersLeft(now, name, tuple(numbers), drain=True), told)
    return told


def _tell(scheduler: LiveScheduler, event: Event, told: list[Event]) -> None:
    told.append(event)
    scheduler.tell(event, journal=False)


def _resume_jobs(
    scheduler: LiveScheduler,
    reader: Reader,
    snapshot: Snapshot,
    standings: Mapping[str, Standing],
    now: float,
    told: list[Event],
) -> None:
    measured: dict[str, dict[str, float]] = defaultdict(dict)
    for rate in snapshot.rates:
        if not rate.beside:
            measured[rate.job][rate.accelerator] = rate.steps_per_second
    for record in snapshot.jobs:
        try:
            job, described, deadline = reader.read(record, measured.get(record.id))
        except InputError as error:  # it was accepted for another policy or cluster, or by another version
            _LOG.warning("job '%s' is set aside: %s", record.id, error)
            scheduler.set_aside.add(record.id)
            scheduler.change(ledger.note_set_aside, record.id, str(error), at=scheduler.clock.today())
            continue
        scheduler.jobs[job.id] = job
        stands = standings.get(job.id, NEW)
        event = JobResumed(
            now,
            described,
            scheduler.clock.at(record.submitted_at),
            deadline,
            stands.isolated_seconds,
            stands.shares,
            stands.owed,
        )
        wait = _rest_of_wait(record, scheduler.clock.today())
        if wait > 0:
            job.waiting = event
            scheduler.wait_before(job, wait)
        else:
            _tell(scheduler, event, told)


def _rest_of_wait(record: JobRecord, today: float) -> float:
    """How long a job still has to wait after its last failure."""
    if record.state is not JobState.QUEUED or record.reason_code != "BackOff":
        return 0.0
    return record.changed_at + back_off_seconds(record.failures) - today


def _resume_lease(
    scheduler: LiveScheduler, record: LeaseRecord, states: Mapping[str, JobState], now: float, told: list[Event]
) -> None:
    grant = Grant(
        record.number, record.jobs, record.accelerator, record.workers, record.until, record.restart, record.spread
    )
    lease = LiveLease(grant, revoked=record.revoked_at is not None)
    for job in record.jobs:
        runs = record.held and states.get(job) in HOLDING
        lease.runs[job] = Run((record.number,), "running" if runs else "planned")
    before = [] if record.restart or record.held else scheduler.leases.of_job(record.jobs[0])
    scheduler.leases.add(lease)
    if before:
        inherit(lease, before[-1])
    wanted = tuple(job for job in record.jobs if job in scheduler.jobs)
    if lease.revoked or not wanted:
        return
    event = LeaseResumed(now, record.number, wanted, record.accelerator, record.workers, record.spread)
    try:
        _tell(scheduler, event, told)
    except TransitionError as error:  # it cannot stay as it is, but its jobs can save and stop
        told.pop()
        _LOG.error("lease %d cannot be adopted and is taken back: %s", record.number, error)
        take_back(scheduler, [lease], [(lease, job) for job in wanted], save=True)
