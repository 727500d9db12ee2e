"""The training engine: decides which job runs on which workers, round by round (Gavel §5).

It is told what happens (`training_messages`) and answers with what is to be done; it reads no clock, touches nothing.
When something changed that matters to the policy, the policy decides again as the next round begins. Within a round
nobody is stopped: workers that become free go at once to jobs that wait. Between rounds, jobs that keep their workers
run on without a stop.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fairway.allocate.allocation import Allocation
from fairway.allocate.arrays import FloatArray, IntArray
from fairway.allocate.policy import Policy
from fairway.allocate.problem import Problem
from fairway.cluster import Cluster
from fairway.engine.job_table import NONE, JobTable
from fairway.engine.pair_rates import PairRates, Partners
from fairway.engine.progress import advance
from fairway.engine.rounds import Rounds
from fairway.engine.training_messages import (
    BeginRound,
    Command,
    Event,
    Extend,
    Grant,
    JobArrived,
    JobCancelled,
    JobFailed,
    JobFinished,
    JobResumed,
    LeaseResumed,
    PricesChanged,
    RateMeasured,
    Refuse,
    Retire,
    Revoke,
    RoundBegan,
    StepsCounted,
    WorkersJoined,
    WorkersLeft,
    WorkersReturned,
)
from fairway.engine.worker_pool import WorkerPool
from fairway.errors import FairwayError, InputError
from fairway.jobs import Entity, Job

_STORY = 10_000
"""How many of the last events a story is told from."""


class TransitionError(FairwayError):
    """Something happened that cannot have happened, such as a job finishing twice; carries the job's story."""


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """How the engine turns shares into rounds.

    `restart_seconds` is what it costs to stop a job and start it again elsewhere; decisions take it into account.
    `entities` are the teams that policies know. `seed` is for policies that draw. `last_lease` is the highest number
    that a lease ever had, for an engine that goes on where another stopped.
    """

    round_seconds: float = 360.0
    restart_seconds: float = 0.0
    entities: Mapping[str, Entity] = field(default_factory=dict)
    seed: int = 0
    last_lease: int = 0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.round_seconds) and self.round_seconds > 0):
            raise InputError(f"round_seconds: {self.round_seconds} given, expected seconds above 0")
        if not (math.isfinite(self.restart_seconds) and self.restart_seconds >= 0):
            raise InputError(f"restart_seconds: {self.restart_seconds} given, expected seconds of at least 0")


class TrainingEngine:
    """Events in, commands out. `handle` is all that a driver needs; the rest can be looked at."""

    def __init__(
        self,
        cluster: Cluster,
        policy: Policy,
        options: EngineOptions | None = None,
        *,
        partners: Partners | None = None,
    ) -> None:
        self.options = options or EngineOptions()
        self.policy = policy
        self.types = cluster.types
        self.workers = WorkerPool(cluster)
        self.jobs = JobTable(len(self.types))
        self.allocation: Allocation | None = None
        self.solves = 0
        self.rounds = 0
        self._cluster = cluster
        self._described: dict[str, Job] = {}
        self._column = {name: column for column, name in enumerate(self.types)}
        self._prices = np.array([cluster.prices[name] for name in self.types]) if cluster.prices else None
        self._entities = dict(self.options.entities)
        shares = getattr(policy, "space_sharing", False)
        self._pair_rates = PairRates(self.types, partners if shares else None)
        self._rounds = Rounds(
            len(self.types),
            round_seconds=self.options.round_seconds,
            restart_seconds=self.options.restart_seconds,
            agnostic=bool(getattr(policy, "agnostic", False)),
        )
        self._now = -math.inf
        self._round_end: float | None = None
        self._changed = False
        self._leases = self.options.last_lease
        self._past: deque[tuple[Event, list[Command]]] = deque(maxlen=_STORY)
        self._handlers: dict[type, Callable[[Any], list[Command]]] = {
            RoundBegan: self._round_began,
            JobArrived: self._job_arrived,
            JobResumed: self._job_arrived,
            LeaseResumed: self._lease_resumed,
            JobFinished: self._job_left,
            JobCancelled: self._job_left,
            JobFailed: self._job_failed,
            WorkersJoined: self._workers_joined,
            WorkersLeft: self._workers_left,
            WorkersReturned: self._workers_returned,
            RateMeasured: self._rate_measured,
            StepsCounted: self._steps_counted,
            PricesChanged: self._prices_changed,
        }

    def handle(self, event: Event) -> list[Command]:
        """Take in what happened, and say what is to be done now."""
        if event.time < self._now:
            raise TransitionError(f"time went back from {self._now} s to {event.time} s: {event}")
        self._advance(event.time)
        commands = self._handlers[type(event)](event)
        self._past.append((event, commands))
        return commands

    @property
    def now(self) -> float:
        """The time of the last event."""
        return self._now

    @property
    def round_end(self) -> float | None:
        """When the present round ends; None while there is nothing to do."""
        return self._round_end

    def story(self, job: str) -> str:
        """What the last events did to a job, one line each."""
        lines = []
        for event, commands in self._past:
            about = [message for message in (event, *commands) if _concerns(message, job)]
            lines += [f"{event.time:.3f} s: {message}" for message in about]
        return "\n".join(lines) or f"nothing is known of job '{job}'"

    def _advance(self, now: float) -> None:
        if now > self._now:
            jobs = self.jobs
            if len(jobs):
                advance(
                    now, jobs.left, jobs.since, jobs.rate, jobs.scale, jobs.pooled, jobs.isolated,
                    int(self.workers.present.sum()),
                )  # fmt: skip
                self._rounds.account(now - self._now, jobs)
            self._now = now

    # What happens to jobs

    def _job_arrived(self, event: JobArrived | JobResumed) -> list[Command]:
        job = event.job
        if job.id in self.jobs:
            raise TransitionError(f"job '{job.id}' arrives but is here already:\n{self.story(job.id)}")
        rates, spread = self._rates_of(job)
        if not ((rates > 0) & (self.workers.present >= job.scale_factor)).any():
            return [Refuse(job.id, self._why_not(job))]
        self.jobs.add(
            job.id,
            time=event.arrived if isinstance(event, JobResumed) else event.time,
            rates=rates,
            spread=spread,
            scale=job.scale_factor,
            weight=job.weight,
            steps=math.inf if job.steps_left is None else job.steps_left,
            deadline=math.nan if event.deadline is None else event.deadline,
            team=self._team(job.entity),
            kind=self._pair_rates.kind(job.job_type if job.preemptible else None, job.scale_factor),
            fixed=not job.preemptible,
        )
        self.jobs.pooled[-1] = rates @ self.workers.present
        self._described[job.id] = job
        self._changed = True
        if isinstance(event, JobResumed):
            self.jobs.since[-1], self.jobs.isolated[-1] = event.time, event.isolated_seconds
            self.jobs.shares[-1] = [event.shares.get(name, 0.0) for name in self.types]
            self.jobs.owed[-1] = [event.owed.get(name, 0.0) for name in self.types]
        if self._round_end is None:
            self._round_end = event.time
            return [BeginRound(event.time)]
        # The others have had their chance: what is free now, only this one might be able to use.
        room = (rates > 0) & (self.workers.free >= job.scale_factor)
        return self._backfill() if room.any() else []

    def _job_left(self, event: JobFinished | JobCancelled | JobFailed) -> list[Command]:
        position = self._position(event)
        commands = self._release(position)
        commands.append(Retire(event.job, float(self.jobs.isolated[position])))
        self._rounds.forget(int(self.jobs.number[position]))
        self.jobs.remove(position)
        del self._described[event.job]
        self._changed = True
        return commands + self._backfill()

    def _job_failed(self, event: JobFailed) -> list[Command]:
        if not event.retry:
            return self._job_left(event)
        return self._release(self._position(event)) + self._backfill()

    def _release(self, position: int) -> list[Command]:
        """End the lease of a job; one that it shared with runs on alone on the same workers."""
        jobs = self.jobs
        lease, column = int(jobs.lease[position]), int(jobs.on[position])
        if lease == NONE:
            return []
        beside = int(jobs.beside[position])
        self._stop(np.array([position]))
        if beside == NONE:
            self.workers.give_back(column, lease)
            return [Revoke(lease, (jobs.ids[position],), restart=False)]
        other = int(jobs.positions(np.array([beside]))[0])
        self._leases += 1
        workers, spread = self.workers.hand_over(column, lease, self._leases)
        self._run((other,), self._leases, column, spread, restart=False)
        self._rounds.part(jobs, other, column)
        both = tuple(jobs.ids[member] for member in sorted((position, other)))
        return [Revoke(lease, both, restart=False), self._grant((other,), column, workers, spread, restart=False)]

    def _lease_resumed(self, event: LeaseResumed) -> list[Command]:
        column = self._type(event.accelerator)
        missing = [job for job in event.jobs if job not in self.jobs]
        if missing or not self.workers.hold(column, event.workers, event.lease):
            raise TransitionError(f"{event}, but {f'job {missing[0]!r}' if missing else 'a worker'} cannot be held")
        members = tuple(self.jobs.position(job) for job in event.jobs)
        self._leases = max(self._leases, event.lease)
        self._run(members, event.lease, column, event.spread, restart=False)
        for member in members:
            self.jobs.since[member] = event.time
            self._rounds.part(self.jobs, member, column)
        return []

    def resumption(self) -> list[Event]:
        """What to tell a new engine, made with the same cluster, policy and options, for it to go on from here.

        What pairs are owed is not passed on: their members are owed it alone when the next decision comes.
        """
        jobs, now = self.jobs, self._now
        events: list[Event] = []
        for column, name in enumerate(self.types):
            if joined := self.workers.count(column) - self._cluster.workers[name]:
                events.append(WorkersJoined(now, name, joined))
        leases: dict[int, list[int]] = {}
        for position, name in enumerate(jobs.ids):
            events.append(self.resumed(name))
            if jobs.lease[position] != NONE:
                leases.setdefault(int(jobs.lease[position]), []).append(position)
        for lease, members in leases.items():
            column = int(jobs.on[members[0]])
            workers, names = self.workers.held_by(column, lease), tuple(jobs.ids[member] for member in members)
            spread = self.workers.spans_nodes(column, workers)
            events.append(LeaseResumed(now, lease, names, self.types[column], workers, spread))
        for column, name in enumerate(self.types):
            if gone := self.workers.gone(column):
                events.append(WorkersLeft(now, name, gone, drain=True))
        return events

    def resumed(self, job: str) -> JobResumed:
        """What to tell an engine for it to take a job in as it stands here, waiting."""
        jobs, position = self.jobs, self.jobs.position(job)
        left, deadline = float(jobs.left[position]), float(jobs.deadline[position])
        return JobResumed(
            self._now,
            replace(
                self._described[job],
                throughputs=self._by_type(jobs.rates[position]),
                spread_throughputs=self._by_type(jobs.spread[position]),
                steps_left=None if math.isinf(left) else left,
            ),
            float(jobs.arrival[position]),
            None if math.isnan(deadline) else deadline,
            float(jobs.isolated[position]),
            self._by_type(jobs.shares[position]),
            self._by_type(jobs.owed[position]),
        )

    def _by_type(self, values: FloatArray) -> dict[str, float]:
        return dict(zip(self.types, values.tolist(), strict=True))

    # What happens to workers, rates and prices

    def _workers_joined(self, event: WorkersJoined) -> list[Command]:
        self.workers.join(self._type(event.accelerator), event.count)
        self._workers_changed()
        return self._backfill()

    def _workers_returned(self, event: WorkersReturned) -> list[Command]:
        self.workers.come_back(self._type(event.accelerator), event.workers)
        self._workers_changed()
        return self._backfill()

    def _workers_left(self, event: WorkersLeft) -> list[Command]:
        column = self._type(event.accelerator)
        commands: list[Command] = []
        kept = self._kept_to_the_end(column, event.workers) if event.drain else []
        for lease in self.workers.leave(column, event.workers, except_held_by=kept):
            held = np.flatnonzero(self.jobs.lease == lease)
            names = tuple(self.jobs.ids[position] for position in held)
            commands.append(Revoke(lease, names, restart=event.drain))
            self._stop(held)
            self.workers.give_back(column, lease)
        self._workers_changed()
        return commands + self._backfill()

    def _kept_to_the_end(self, column: int, workers: tuple[int, ...]) -> list[int]:
        """The leases on these workers whose jobs are not to be stopped."""
        fixed = set(self.jobs.lease[self.jobs.fixed > 0].tolist())
        return [lease for lease in self.workers.holders(column, workers) if lease in fixed]

    def _workers_changed(self) -> None:
        self.jobs.pooled = self.jobs.rates @ self.workers.present
        self._changed = True

    def _rate_measured(self, event: RateMeasured) -> list[Command]:
        column = self._type(event.accelerator)
        positions = [self.jobs.position(job) for job in event.jobs if job in self.jobs]
        if len(positions) == 1 and len(event.jobs) == 1:
            (position,), (rate,) = positions, event.steps_per_second
            self.jobs.rates[position, column] = rate
            self.jobs.pooled[position] = self.jobs.rates[position] @ self.workers.present
            if self.jobs.on[position] == column and self.jobs.beside[position] == NONE:
                self.jobs.rate[position] = rate
            self._changed = True
        elif len(positions) == 2:
            self._pair_rates.measured(
                int(self.jobs.kind[positions[0]]), int(self.jobs.kind[positions[1]]), column, event.steps_per_second
            )
            self._changed = True
        return []

    def _steps_counted(self, event: StepsCounted) -> list[Command]:
        self.jobs.left[self._position(event)] = event.steps_left
        return []

    def _prices_changed(self, event: PricesChanged) -> list[Command]:
        self._prices = np.array([event.prices[name] for name in self.types])
        self._changed = True
        return []

    # Rounds

    def _round_began(self, event: RoundBegan) -> list[Command]:
        if self._round_end is None or event.time < self._round_end:
            return []
        if not len(self.jobs):
            self._round_end = None
            return []
        self.rounds += 1
        if self._changed:
            self._decide()
        self._round_end = event.time + self.options.round_seconds
        commands = self._assign(preempt=True)
        return [*commands, Extend(self._round_end), BeginRound(self._round_end)]

    def _backfill(self) -> list[Command]:
        """Give free workers to jobs that wait; nobody is stopped."""
        if not self.workers.free.any() or self._round_end is None or self._round_end <= self._now:
            return []
        return self._assign(preempt=False) if (self.jobs.on == NONE).any() else []

    def _decide(self) -> None:
        problem = self._problem()
        self.allocation = self.policy.allocate(problem)
        self.solves += 1
        self._changed = False
        self._rounds.follow(self.allocation, self.jobs)

    def _problem(self) -> Problem:
        """The decision as the policy sees it."""
        jobs, now = self.jobs, self._now
        steps = jobs.left.copy()
        steps[np.isinf(steps)] = np.nan
        return Problem(
            types=self.types,
            workers=self.workers.present.astype(float),
            ids=tuple(jobs.ids),
            throughputs=jobs.rates.copy(),
            scale_factors=jobs.scale.astype(float),
            weights=jobs.weight.copy(),
            steps_left=steps,
            elapsed=now - jobs.arrival,
            isolated_elapsed=jobs.isolated.copy(),
            slo_seconds=jobs.deadline - now,
            team=jobs.team.copy(),
            entities=self._entities,
            dollars_per_hour=self._prices,
            pairs=self._pair_rates.pairs(jobs.kind),
            previous=self.allocation,
            seed=self.options.seed + self.solves,
        )

    def _assign(self, *, preempt: bool) -> list[Command]:
        """Let the rounds choose who runs, stop those who do not any more, and start those who newly do."""
        jobs = self.jobs
        assert self._round_end is not None
        chosen = self._rounds.choose(jobs, self.workers.free, seconds=self._round_end - self._now, preempt=preempt)
        commands: list[Command] = []
        if len(chosen.stopped):
            leases, columns = jobs.lease[chosen.stopped].tolist(), jobs.on[chosen.stopped].tolist()
            holders: dict[int, list[str]] = {}
            for position, lease, column in zip(chosen.stopped.tolist(), leases, columns, strict=True):
                if lease in holders:
                    holders[lease].append(jobs.ids[position])
                else:
                    holders[lease] = [jobs.ids[position]]
                    self.workers.give_back(column, lease)
            commands += [Revoke(lease, tuple(names)) for lease, names in holders.items()]
            self._stop(chosen.stopped)
        for members, column in zip(chosen.started, chosen.columns, strict=True):
            self._leases += 1
            workers, spread = self.workers.take(column, int(jobs.scale[members[0]]), self._leases)
            self._run(members, self._leases, column, spread, restart=True)
            commands.append(self._grant(members, column, workers, spread, restart=True))
        return commands

    def _grant(
        self, members: tuple[int, ...], column: int, workers: tuple[int, ...], spread: bool, *, restart: bool
    ) -> Grant:
        assert self._round_end is not None
        names = tuple([self.jobs.ids[member] for member in members])
        return Grant(self._leases, names, self.types[column], workers, self._round_end, restart, spread)

    def _run(self, members: tuple[int, ...], lease: int, column: int, spread: bool, *, restart: bool) -> None:
        """Write down that these jobs, one or two that share, hold a lease."""
        rows = self.jobs.rows
        together = self._pair_rates.of(*self.jobs.kind[list(members)]) if len(members) == 2 else None
        for side, member in enumerate(members):
            row = rows[member]
            if together is not None:
                row["beside"], row["rate"] = rows["number"][members[1 - side]], together[column, side]
            else:
                row["beside"], row["rate"] = NONE, row["spread" if spread else "rates"][column]
            row["on"], row["lease"] = column, lease
            if restart:
                row["since"] = self._now + self.options.restart_seconds

    def _stop(self, positions: IntArray) -> None:
        """Write down that these jobs hold nothing."""
        rows = self.jobs.rows
        for name in ("on", "lease", "beside", "charged"):
            rows[name][positions] = NONE
        rows["rate"][positions] = 0.0
        rows["since"][positions] = self._now

    # Looking things up

    def _position(self, event: JobFinished | JobFailed | JobCancelled | StepsCounted) -> int:
        if event.job not in self.jobs:
            raise TransitionError(f"{event}, but there is no such job:\n{self.story(event.job)}")
        return self.jobs.position(event.job)

    def _type(self, accelerator: str) -> int:
        if accelerator not in self._column:
            raise InputError(f"accelerator '{accelerator}' is not a type of this cluster; known: {self.types}")
        return self._column[accelerator]

    def _team(self, entity: str | None) -> int:
        if entity is None:
            return NONE
        if entity not in self._entities:
            self._entities[entity] = Entity()
        return list(self._entities).index(entity)

    def _rates_of(self, job: Job) -> tuple[FloatArray, FloatArray]:
        """A job's rates by type, consolidated (spread where it fits on no node) and spread; 0 where it cannot run."""
        spread = job.spread_throughputs or job.throughputs
        rates, apart = np.zeros(len(self.types)), np.zeros(len(self.types))
        for column, name in enumerate(self.types):
            apart[column] = spread.get(name, job.throughputs.get(name, 0.0))
            together = self._cluster.consolidates(name, job.scale_factor)
            rates[column] = job.throughputs.get(name, 0.0) if together else apart[column]
        return rates, apart

    def _why_not(self, job: Job) -> str:
        able = [name for name in self.types if job.throughputs.get(name, 0.0) > 0]
        if not able:
            return f"job '{job.id}' has no rate above 0 on any accelerator type of this cluster"
        most = max(int(self.workers.present[self._column[name]]) for name in able)
        return f"job '{job.id}' asks for {job.scale_factor} workers of one type, but there are at most {most}"


def _concerns(message: object, job: str) -> bool:
    named = getattr(message, "job", None)
    if isinstance(named, Job):
        named = named.id
    return named == job or job in getattr(message, "jobs", ())
