"""Runs the training engine in virtual time on a stream of submissions, and records what happens.

A run begins with an engine that knows nothing yet, or goes on from wherever another driver has brought one.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from fairway.allocate.packing.requests import WHOLE
from fairway.allocate.policy import Policy
from fairway.allocate.registry import policy_of
from fairway.cluster import Cluster
from fairway.compat.gavel.run import simulate_gavel
from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.messages import (
    BeginRound,
    Event,
    Grant,
    JobArrived,
    JobFinished,
    JobResumed,
    LeaseResumed,
    PricesChanged,
    RateMeasured,
    Refuse,
    Retire,
    Revoke,
    RoundBegan,
)
from fairway.engine.training.options import EngineOptions
from fairway.engine.training.pair_rates import Partners
from fairway.jobs import Job
from fairway.options import text_of
from fairway.profiles import ThroughputTable
from fairway.report.training.record import Outcome, TrainingRecord
from fairway.sim.kept_decisions import KeptDecisions
from fairway.sim.loop import LATE, URGENT, Handle, Loop
from fairway.sim.profiling import ProfiledPartners
from fairway.sim.submissions import PriceChange, Progress, Submission, TrainingOptions
from fairway.sim.training_recorder import JobRow, Recorder


def simulate_training(
    submissions: Iterable[Submission],
    cluster: Cluster,
    policy: str | Policy,
    options: TrainingOptions,
    *,
    table: ThroughputTable | None = None,
    settings: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> TrainingRecord:
    """Run the submissions, which come in order of arrival, under a policy.

    The policy is an object, or a name with options; `table` says which jobs may share.
    """
    if options.compat == "gavel":
        record = simulate_gavel(submissions, cluster, policy, options, table=table, progress=progress)
        return replace(record, settings=settings or {})
    if options.packing == "whole":
        submissions = (replace(coming, job=replace(coming.job, part=1.0)) for coming in submissions)
    start = time.perf_counter()
    engine = TrainingEngine(
        cluster,
        policy_of(policy),
        EngineOptions(
            options.round_seconds, options.restart_seconds, options.entities, options.seed, packing=options.packing
        ),
        partners=_partners(table, options),
    )
    named = policy if isinstance(policy, str) else text_of(policy)
    run = TrainingRun(engine, submissions, cluster, options, table=table, progress=progress, policy=named)
    run.loop.run()
    return run.recorder.record(
        policy=named,
        cluster=cluster,
        settings=settings or {},
        window=options.window,
        end=run.loop.now,
        rounds=run.engine.rounds,
        solves=run.engine.solves,
        wall_seconds=time.perf_counter() - start,
    )


def _partners(table: ThroughputTable | None, options: TrainingOptions) -> Partners | None:
    if table is None or options.profiling is None:
        return table
    return ProfiledPartners(table, options.profiling, options.seed)


@dataclass(slots=True)
class _Lease:
    """A lease that is held: `begin` is when its jobs make progress, after what a restart takes."""

    members: tuple[_Job, ...]
    column: int
    workers: tuple[int, ...]
    start: float
    begin: float
    rates: tuple[float, ...]
    finishes: list[Handle]

    part: float = 1.0

    @property
    def held(self) -> float:
        """The workers that its jobs have, a part of one counted as that."""
        return len(self.workers) * self.part


@dataclass(slots=True)
class _Job:
    row: JobRow
    left: float


class TrainingRun:
    """The world of one run: the loop, the engine, and the jobs as they really are.

    Jobs that the engine has already go on from where they are, those that hold workers without a stop; the engine is
    the run's from then on. `steps_left` says how long jobs really are, where that is not what they have said. Decisions
    are kept with the leases where the name of the `policy` is given, by which it can be asked again.
    """

    def __init__(
        self,
        engine: TrainingEngine,
        submissions: Iterable[Submission],
        cluster: Cluster,
        options: TrainingOptions,
        *,
        table: ThroughputTable | None = None,
        progress: Progress | None = None,
        steps_left: Mapping[str, float] | None = None,
        policy: str | None = None,
    ) -> None:
        self.loop = Loop(max(engine.now, 0.0))
        self.recorder = Recorder(len(cluster.types), keep_leases=options.keep_leases)
        if options.keep_leases and policy is not None:
            self.recorder.decisions = KeptDecisions(policy)
        self.engine = engine
        self._options = options
        self._table = table
        self._progress = progress
        self._steps_left = steps_left or {}
        self._coming: Iterator[Submission] = iter(submissions)
        self._next: Submission | None = None
        self._present: dict[str, _Job] = {}
        self._leases: dict[int, _Lease] = {}
        self._types = cluster.types
        self._column = {name: column for column, name in enumerate(cluster.types)}
        self._prices = [cluster.prices.get(name, 0.0) for name in cluster.types]
        self._paid_until = self.loop.now
        self._ended = 0
        self._to_end = math.inf if options.window is None else options.window[1] - options.window[0]
        self._all_came = False
        self._draws = random.Random(options.seed + 5)
        self._measured: set[tuple[tuple[str | None, ...], int]] = set()
        for change in options.price_changes:
            self.loop.at(change.time, partial(self._change_prices, change), URGENT)
        self._go_on()
        self._schedule_arrival()

    @property
    def jobs_come(self) -> bool:
        """Whether more jobs will arrive."""
        return not self._all_came

    def _go_on(self) -> None:
        """Take over the jobs and leases that the engine has, and the round that it is in."""
        for event in self.engine.resumption():
            if isinstance(event, JobResumed):
                row = self.recorder.job(event.job, event.arrived, event.deadline)
                self._present[event.job.id] = _Job(row, self._length(event.job))
            elif isinstance(event, LeaseResumed):
                since = self.engine.jobs.since[self.engine.jobs.position(event.jobs[0])]
                self._hold(event, max(float(since), self.loop.now))
        ends = self.engine.round_end
        if ends is not None:
            self.loop.at(max(ends, self.loop.now), self._begin_round, LATE)

    def _schedule_arrival(self) -> None:
        """Let the next job arrive at its time, together with the jobs behind it that come at the same moment."""
        first = self._next or next(self._coming, None)
        self._next = None
        if first is None:
            self._all_came = True
            return
        together = [first]
        for submission in self._coming:
            if submission.arrival != first.arrival:
                self._next = submission
                break
            together.append(submission)
        self.loop.at(first.arrival, partial(self._arrive, together))

    def _arrive(self, submissions: list[Submission]) -> None:
        for submission in submissions:
            row = self.recorder.job(submission.job, self.loop.now, submission.deadline)
            self._present[submission.job.id] = _Job(row, self._length(submission.job))
        self._schedule_arrival()
        self._happen(*[JobArrived(self._as_said(coming.job), coming.deadline) for coming in submissions])

    def _as_said(self, job: Job) -> Job:
        """The job as the engine is told of it."""
        if self._options.hide_lengths:
            return replace(job, steps_left=None)
        if self._options.wrong_lengths != 1.0 and job.steps_left is not None:
            factor = self._options.wrong_lengths ** self._draws.uniform(-1.0, 1.0)
            return replace(job, steps_left=job.steps_left * factor)
        return job

    def _length(self, job: Job) -> float:
        steps = self._steps_left.get(job.id, job.steps_left)
        assert steps is not None, f"job '{job.id}' does not say how many steps it takes"
        return steps

    def _finish(self, job: _Job) -> None:
        job.row.finish = self.loop.now
        job.row.outcome = Outcome.COMPLETED
        self._happen(JobFinished(job.row.job.id))

    def _begin_round(self) -> None:
        profiling = self._options.profiling
        measured = () if profiling is None or not profiling.watches else self._measured_pairs()
        self._happen(*measured, RoundBegan())
        engine = self.engine
        running = int(np.count_nonzero(engine.jobs.on >= 0))
        pool = engine.workers
        in_parts = not engine.jobs.plain and (engine.jobs.part < WHOLE).any()
        busy = (pool.present - pool.room / WHOLE if in_parts else pool.present - pool.free).tolist()
        self.recorder.round(self.loop.now, len(engine.jobs) - running, running, busy)
        if self._progress is not None:
            self._progress(self._ended, self.loop.now)

    def _measured_pairs(self) -> Iterator[RateMeasured]:
        """How fast jobs that share have been running, once for every two job types and accelerator type."""
        for lease in self._leases.values():
            if len(lease.members) == 2 and lease.begin < self.loop.now:
                kinds = tuple(member.row.job.job_type for member in lease.members)
                if (kinds, lease.column) not in self._measured:
                    self._measured |= {(kinds, lease.column), (kinds[::-1], lease.column)}
                    names = tuple(member.row.job.id for member in lease.members)
                    yield RateMeasured(names, self._types[lease.column], lease.rates)

    def _change_prices(self, change: PriceChange) -> None:
        for lease in self._leases.values():
            self._pay(lease)
        self._paid_until = self.loop.now
        self._prices = [change.prices[name] for name in self._types]
        self._happen(PricesChanged(change.prices))

    def _happen(self, *events: Event) -> None:
        """Hand the engine all that happens at this moment, and do what it wants done."""
        solves, previous = self.engine.solves, self.engine.allocation
        commands = self.engine.handle(self.loop.now, events)
        if self.recorder.decisions is not None and self.engine.solves > solves:
            self.recorder.decisions.decided(self.engine, previous)
        for command in commands:
            if isinstance(command, Grant):
                self._grant(command)
            elif isinstance(command, Revoke):
                self._end_lease(command.lease, preempted=command.restart)
            elif isinstance(command, BeginRound):
                self.loop.at(command.at, self._begin_round, LATE)
            elif isinstance(command, Retire):
                self._let_go(command)
            elif isinstance(command, Refuse):
                self._present[command.job].row.outcome = Outcome.UNRUNNABLE
                self._end(self._present.pop(command.job))

    def _grant(self, grant: Grant) -> None:
        self._hold(grant, self.loop.now + (self._options.restart_seconds if grant.restart else 0.0))
        self.recorder.leases_granted += 1

    def _hold(self, lease: Grant | LeaseResumed, begin: float) -> None:
        """Let the jobs of a lease run from a time on."""
        now = self.loop.now
        members = tuple(self._present[job] for job in lease.jobs)
        rates = self._rates(members, lease)
        finishes = []
        for member, rate in zip(members, rates, strict=True):
            if math.isnan(member.row.start):
                member.row.start = now
            if rate > 0:  # two jobs that were only believed to fit together make no progress
                finishes.append(self.loop.at(begin + member.left / rate, partial(self._finish, member)))
        self._leases[lease.lease] = _Lease(
            members, self._column[lease.accelerator], lease.workers, now, begin, rates, finishes, lease.part
        )

    def _rates(self, members: tuple[_Job, ...], grant: Grant | LeaseResumed) -> tuple[float, ...]:
        """How fast jobs really run there."""
        first = members[0].row.job
        if len(members) == 1:
            apart = first.spread_throughputs if grant.spread else None
            return ((apart or first.throughputs)[grant.accelerator],)
        second = members[1].row.job
        assert self._table is not None
        assert first.job_type is not None
        assert second.job_type is not None
        together = self._table.pair_rates(first.job_type, second.job_type, first.scale_factor)
        return together.get(grant.accelerator, (0.0, 0.0))

    def _end_lease(self, number: int, *, preempted: bool) -> None:
        lease = self._leases.pop(number)
        now = self.loop.now
        seconds = max(now - lease.begin, 0.0)
        steps = []
        for finish in lease.finishes:
            finish.cancel()
        for member, rate in zip(lease.members, lease.rates, strict=True):
            steps.append(min(rate * seconds, member.left))
            member.left -= steps[-1]
            member.row.preemptions += preempted
        self._pay(lease)
        self.recorder.lease(
            tuple(member.row for member in lease.members),
            lease.column,
            lease.workers,
            lease.start,
            now,
            tuple(steps),
            held=lease.held,
        )

    def _pay(self, lease: _Lease) -> None:
        hours = (self.loop.now - max(lease.start, self._paid_until)) / 3600
        each = self._prices[lease.column] * lease.held * hours / len(lease.members)
        for member in lease.members:
            member.row.cost_dollars += each

    def _let_go(self, retire: Retire) -> None:
        job = self._present.pop(retire.job)
        job.row.isolated_seconds = retire.isolated_seconds
        self._end(job)

    def _end(self, job: _Job) -> None:
        window = self._options.window
        self._ended += window is None or window[0] <= job.row.index < window[1]
        if self._ended == self._to_end or (self._all_came and not self._present):
            self.loop.stop()
