"""Goes on where the last controller stopped: from what the store holds, the engine's first events and the leases.

Jobs keep their place in the queue and what they are owed. Leases that were not taken back stay held, so the jobs that
run run on. Leases that were are held only until their runs have ended.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fairway.cluster import Cluster
from fairway.engine.protocol import TransitionError
from fairway.engine.training.messages import ArrivalsResumed, Event, Grant, JobResumed, LeaseResumed, WorkersLeft
from fairway.errors import InputError
from fairway.jobs import Job
from fairway.jobs.description import JobDescription, job_of
from fairway.live.training import ledger
from fairway.live.training.commands import inherit, take_back
from fairway.live.training.decision.acceptance import Acceptance
from fairway.live.training.engine_job import deadline_on, described_rates, engine_job
from fairway.live.training.leases import LiveJob, LiveLease, LiveRun
from fairway.live.training.scheduler import LiveScheduler
from fairway.live.training.standing import NEW, Standing
from fairway.live.training.verdict import BACK_OFF
from fairway.magnitudes import FACTORS
from fairway.profiles import catalog
from fairway.store.dependencies import Need
from fairway.store.queries import Snapshot
from fairway.store.records import JobRecord, LeaseRecord, Worker
from fairway.store.states import HOLDING, JobState

_LOG = logging.getLogger(__name__)


def spec_of(record: JobRecord) -> JobDescription:
    """The description of a job that is in the store."""
    return job_of(record.spec, f"job '{record.id}'")


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
        rates = described_rates(spec, self.cluster, self.scheduler.table)
        believed = self.scheduler.beliefs.first(spec, rates, job.measured)
        described = engine_job(
            record.id,
            spec,
            believed,
            team=record.team,
            steps_left=record.steps_left,
            measured=job.measured,
            resumes=job.resumes,
            priority=self.scheduler.priorities.of(spec, record.team),
        )
        deadline = deadline_on(clock, spec, record.submitted_at)
        self.acceptance.check(described, deadline)
        return job, described, deadline


def cluster_of(workers: list[Worker], prices: Mapping[str, float]) -> Cluster:
    """All the workers that ever were, by type; those that are gone leave the engine afterwards."""
    counts: dict[str, int] = {}
    for worker in workers:
        counts[worker.accelerator] = max(counts.get(worker.accelerator, 0), worker.number + 1)
    missing = [name for name in counts if prices and name not in prices]
    if missing:
        raise InputError(f"prices: none given for '{missing[0]}'; give one for every accelerator type, or none at all")
    priced = {name: prices[name] for name in counts} if prices else {}
    return catalog.priced(Cluster(counts, priced, _node_sizes(workers)))


def _node_sizes(workers: list[Worker]) -> dict[str, int]:
    """How many workers of a type a node has, where there are several nodes and all of them have as many, in a row.

    The name of a device has that of its node before a slash, where there are nodes (`Accelerator.lasting_name`).
    """
    nodes: dict[str, dict[int, str]] = defaultdict(dict)
    for worker in workers:
        nodes[worker.accelerator][worker.number] = worker.device.rpartition("/")[0]
    sizes: dict[str, int] = {}
    for name, of in nodes.items():
        size = sum(node == of.get(0) for node in of.values())
        blocks = {(number // size if size else number, node) for number, node in of.items()}
        if 1 < len(set(of.values())) == len(blocks) == len({block for block, _ in blocks}):
            sizes[name] = size
    return sizes


def resume(
    scheduler: LiveScheduler,
    reader: Reader,
    snapshot: Snapshot,
    standings: Mapping[str, Standing],
    learned: ArrivalsResumed | None = None,
    needs: Mapping[str, Sequence[Need]] | None = None,
) -> tuple[float, list[Event]]:
    """Bring a new scheduler to where the last one was; returns the events that its engine took in for that, and when.

    Jobs that their owners have taken back are among them, to be cancelled like any other.
    """
    now = scheduler.time()  # the same for all: the engine has less to do while no time passes
    events: list[Event] = [] if learned is None else [learned]
    events += [*_resumed_jobs(scheduler, reader, snapshot, standings, needs or {})]
    scheduler.take_in(*events, at=now, journal=False)
    states = {record.id: record.state for record in snapshot.jobs}
    for lease in snapshot.leases:
        events += _resume_lease(scheduler, lease, states, now)
    gone: dict[str, list[int]] = defaultdict(list)
    for worker in snapshot.workers:
        if worker.lost_at is not None or worker.drained_at is not None:
            gone[worker.accelerator].append(worker.number)
    left = [WorkersLeft(name, tuple(numbers), drain=True) for name, numbers in gone.items()]
    scheduler.take_in(*left, at=now, journal=False)
    return now, [*events, *left]


def _resumed_jobs(
    scheduler: LiveScheduler,
    reader: Reader,
    snapshot: Snapshot,
    standings: Mapping[str, Standing],
    needs: Mapping[str, Sequence[Need]],
) -> Iterator[JobResumed]:
    """The jobs as they stood; those that rest after a failure come back to the engine later."""
    measured: dict[str, dict[str, float]] = defaultdict(dict)
    for rate in snapshot.rates:
        if not rate.beside and rate.steps_per_second in FACTORS:
            measured[rate.job][rate.accelerator] = rate.steps_per_second
    found: list[tuple[JobRecord, LiveJob, JobResumed]] = []
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
        arrived = scheduler.clock.past(record.submitted_at)
        event = JobResumed(
            described, arrived, deadline, stands.isolated_seconds, stands.shares, stands.owed, stands.steps_done
        )
        found.append((record, job, event))
        if _was_let_in(record):
            scheduler.gate.count(job)
    for record, job, event in found:
        wait = _rest_of_wait(record, scheduler.clock.today())
        if wait > 0:
            job.waiting = event
            scheduler.wait_before(job, wait)
        elif _was_let_in(record) or scheduler.gate.lets_in(job, event, needs.get(job.id, ())):
            yield event


def _was_let_in(record: JobRecord) -> bool:
    """Whether a job has been scheduled before, so that it need not wait at the gate again."""
    return record.state in HOLDING or record.attempts > 0 or record.failures > 0


def _rest_of_wait(record: JobRecord, today: float) -> float:
    """How long a job still has to wait after its last failure; all of it, if the clock was set back to before that."""
    if record.state is not JobState.QUEUED or record.reason_code != "BackOff":
        return 0.0
    return BACK_OFF.seconds(record.failures) - max(today - record.changed_at, 0.0)


def _resume_lease(
    scheduler: LiveScheduler, record: LeaseRecord, states: Mapping[str, JobState], now: float
) -> list[LeaseResumed]:
    """Hold a lease of before. The engine takes it in unless it is to end, by itself, since it may be refused."""
    grant = Grant(
        record.number, record.jobs, record.accelerator, record.workers, record.until, record.restart, record.spread,
        record.part,
    )  # fmt: skip
    lease = LiveLease(grant, revoked=record.revoked_at is not None)
    for job in record.jobs:
        runs = record.held and states.get(job) in HOLDING
        lease.runs[job] = LiveRun((record.number,), "running" if runs else "planned")
    before = [] if record.restart or record.held else scheduler.leases.of_job(record.jobs[0])
    scheduler.leases.add(lease)
    if before:
        inherit(lease, before[-1])
    wanted = tuple(job for job in record.jobs if job in scheduler.jobs)
    if lease.revoked or not wanted:
        return []
    event = LeaseResumed(record.number, wanted, record.accelerator, record.workers, record.spread, record.part)
    try:
        scheduler.take_in(event, at=now, journal=False)
    except TransitionError as error:  # it cannot stay as it is, but its jobs can save and stop
        _LOG.error("lease %d cannot be adopted and is taken back: %s", record.number, error)
        take_back(scheduler, [lease], [(lease, job) for job in wanted], save=True)
        return []
    return [event]
