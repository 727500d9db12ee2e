"""The training engine: decides which job runs on which workers, round by round (Gavel §5).

Events say what has happened, and it answers with commands for what is to be done (`messages`); it reads no clock, and
touches nothing. When something changed that matters to the policy, the policy decides again as the next round begins.
Within a round no job is stopped: workers that become free go at once to jobs that wait. Between rounds, jobs that keep
their workers run on without a stop.

Its parts: `admission` takes jobs in, `job_table` holds them, `worker_pool` holds the workers, `leases` brings the two
together, `rounds` chooses the jobs of the next round.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fairway.allocate.allocation import Allocation
from fairway.allocate.arrays import FloatArray
from fairway.allocate.policy import Policy, UndecidedError
from fairway.allocate.problem import Problem
from fairway.cluster import Cluster
from fairway.engine.protocol import InvariantError, Story
from fairway.engine.training.admission import Admission
from fairway.engine.training.arrivals import Arrivals
from fairway.engine.training.invariants import contradictions
from fairway.engine.training.job_table import NONE, JobTable
from fairway.engine.training.leases import Leases
from fairway.engine.training.messages import (
    ArrivalsResumed,
    BeginRound,
    CheckpointKept,
    Command,
    Event,
    Extend,
    JobArrived,
    JobCancelled,
    JobFailed,
    JobFinished,
    JobResumed,
    LeaseResumed,
    PricesChanged,
    RateMeasured,
    Refuse,
    ReservationCancelled,
    Reserved,
    Retire,
    RoundBegan,
    StepsCounted,
    Undecided,
    WorkersJoined,
    WorkersLeft,
    WorkersReturned,
)
from fairway.engine.training.options import EngineOptions
from fairway.engine.training.pair_rates import PairRates, Partners
from fairway.engine.training.progress import advance
from fairway.engine.training.reservations import Reservations
from fairway.engine.training.rounds import Chosen, Rounds
from fairway.engine.training.worker_pool import WorkerPool
from fairway.errors import InputError


class TrainingEngine:
    """Events in, commands out. `handle` is all that a driver needs; the rest can be looked at.

    An event that cannot have happened raises a `TransitionError` and changes nothing; those before it in the same call
    have been taken in. `now` is the time of the last call, `round_end` when the present round ends, None while there is
    no job.
    """

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
        self.cluster = cluster
        self.types = cluster.types
        self.workers = WorkerPool(cluster)
        self.jobs = JobTable(len(self.types))
        self.allocation: Allocation | None = None
        self.solves = 0
        self.rounds = 0
        self.now = -math.inf
        self.round_end: float | None = None
        self._changed = False
        self._decided = -math.inf
        self._column = {name: column for column, name in enumerate(self.types)}
        self._prices = np.array([cluster.prices[name] for name in self.types]) if cluster.prices else None
        self._pair_rates = PairRates(self.types, partners if policy.space_sharing else None)
        self.arrivals = Arrivals(self.types, self._pair_rates)
        self._admission = Admission(
            cluster, self.jobs, self.workers, self._pair_rates, self.arrivals, dict(self.options.entities),
            self.options.packing,
        )  # fmt: skip
        self.reservations = Reservations(self.types, self._admission.entities)
        self._leases = Leases(
            self.types, self.jobs, self.workers, self._pair_rates, self.options.restart_seconds, self.options.last_lease
        )
        self._rounds = Rounds(
            len(self.types),
            round_seconds=self.options.round_seconds,
            restart_seconds=self.options.restart_seconds,
            agnostic=policy.agnostic,
            by_cost=policy.by_cost,
            whole_jobs=policy.whole_jobs,
            pair_rates=self._pair_rates if policy.by_work else None,
            packing=self.options.packing,
        )
        self._story: Story[Event | Command] = Story()
        self._handlers: dict[type, Callable[[Any], list[Command]]] = {
            RoundBegan: self._round_began,
            JobArrived: self._job_arrived,
            JobResumed: self._job_arrived,
            LeaseResumed: self._lease_resumed,
            ArrivalsResumed: self._arrivals_resumed,
            JobFinished: self._job_left,
            JobCancelled: self._job_left,
            JobFailed: self._job_failed,
            WorkersJoined: self._workers_joined,
            WorkersLeft: self._workers_left,
            WorkersReturned: self._workers_returned,
            RateMeasured: self._rate_measured,
            StepsCounted: self._steps_counted,
            CheckpointKept: self._checkpoint_kept,
            PricesChanged: self._prices_changed,
            Reserved: self._reserved,
            ReservationCancelled: self._reservation_cancelled,
        }

    def handle(self, now: float, events: Sequence[Event]) -> list[Command]:
        """Take in all that has happened at one moment, in this order, and say what is to be done now."""
        if not now >= self.now:
            first = events[0] if events else RoundBegan()
            raise self._story.error(first.cause, f"time went back from {self.now} s to {now} s: {first}")
        self.advance(now)
        remember = self._story.remember
        commands: list[Command] = []
        for event in events:
            answer = self._handlers[type(event)](event)
            remember((now, event))
            for command in answer:
                remember((now, command))
            commands += answer
        return commands

    def story(self, cause: str) -> str:
        """The last events and commands about a thing, such as "job a" or "worker v100/2", a line each."""
        return self._story.of(cause)

    def validate(self) -> None:
        """Raise an `InvariantError`, with a story, if jobs, leases and workers contradict each other."""
        for cause, what in contradictions(self):
            raise InvariantError(f"{what}:\n{self.story(cause)}")

    def advance(self, now: float) -> None:
        """Let time pass in which nothing happens."""
        if now > self.now:
            jobs = self.jobs
            if len(jobs):
                advance(
                    now, jobs.left, jobs.done, jobs.since, jobs.rate, jobs.sizes, jobs.pooled, jobs.isolated,
                    sum(self.workers.present.tolist()),
                )  # fmt: skip
                self._rounds.account(now - self.now, jobs)
            self.now = now

    # What happens to jobs

    def _job_arrived(self, event: JobArrived | JobResumed) -> list[Command]:
        job = event.job
        if job.id in self.jobs:
            raise self._story.error(event.cause, f"job '{job.id}' arrives but is here already")
        why_not = self._admission.add(event, self.now)
        if why_not is not None:
            return [Refuse(job.id, why_not)]
        self._changed = True
        if self.round_end is None:
            self.round_end = self.now
            return [BeginRound(self.now)]
        # The jobs before it have had their chance: what is free now, only this one might be able to use.
        room = (self.jobs.rates[-1] > 0) & (self.workers.room >= self.jobs.held[-1])
        return self._backfill() if room.any() else []

    def _job_left(self, event: JobFinished | JobCancelled | JobFailed) -> list[Command]:
        position = self._position(event)
        commands = self._release(position)
        commands.append(Retire(event.job, float(self.jobs.isolated[position])))
        if isinstance(event, JobFinished) and math.isinf(self.jobs.left[position]):
            done = float(self.jobs.done[position])
            self.arrivals.learn(int(self.jobs.group[position]), done, self.now)
            self._admission.learn_length(position, done)
        self._rounds.forget(int(self.jobs.number[position]))
        self._admission.remove(position)
        self._changed = True
        return commands + self._backfill()

    def _job_failed(self, event: JobFailed) -> list[Command]:
        if not event.retry:
            return self._job_left(event)
        return self._release(self._position(event)) + self._backfill()

    def _release(self, position: int) -> list[Command]:
        departures = self.workers.departures
        commands = self._leases.release(position, now=self.now, until=self._until)
        if self.workers.departures > departures:  # of workers that were drained while the job kept them
            self._workers_changed()
        return commands

    def _lease_resumed(self, event: LeaseResumed) -> list[Command]:
        column = self._type(event.accelerator)
        missing = [job for job in event.jobs if job not in self.jobs]
        if missing:
            raise self._story.error(event.cause, f"{event}, but there is no job '{missing[0]}'")
        if not self._leases.resume(event, column, now=self.now):
            raise self._story.error(event.cause, f"{event}, but not all of its workers are free")
        return []

    def _arrivals_resumed(self, event: ArrivalsResumed) -> list[Command]:
        self.arrivals.resume(event, self.now)
        return []

    def resumption(self) -> list[Event]:
        """The events by which a new engine, made with the same cluster, policy and options, goes on from here.

        What pairs are owed is not passed on: their members are owed it alone when the next decision comes.
        """
        events: list[Event] = [self.arrivals.resumption()]
        for column, name in enumerate(self.types):
            if joined := self.workers.count(column) - self.cluster.workers[name]:
                events.append(WorkersJoined(name, joined))
        events += [*self.reservations.known.values(), *(self.resumed(job) for job in self.jobs.ids)]
        events += self._leases.resumption()
        for column, name in enumerate(self.types):
            if gone := self.workers.gone(column):
                events.append(WorkersLeft(name, gone, drain=True))
        return events

    def resumed(self, job: str) -> JobResumed:
        """The event by which an engine takes a job in as it stands here, waiting."""
        return self._admission.resumed(job)

    # What happens to workers, rates and prices

    def _workers_joined(self, event: WorkersJoined) -> list[Command]:
        self.workers.join(self._type(event.accelerator), event.count)
        self._workers_changed()
        return self._backfill()

    def _workers_returned(self, event: WorkersReturned) -> list[Command]:
        self.workers.come_back(self._type_of(event), event.workers)
        self._workers_changed()
        return self._backfill()

    def _workers_left(self, event: WorkersLeft) -> list[Command]:
        commands = self._leases.leave(self._type_of(event), event.workers, now=self.now, drain=event.drain)
        self._workers_changed()
        return commands + self._backfill()

    def _workers_changed(self) -> None:
        self.jobs.pooled = self.jobs.rates @ self.workers.present
        self._changed = True

    def _rate_measured(self, event: RateMeasured) -> list[Command]:
        column = self._type(event.accelerator)
        positions = [self.jobs.position(job) for job in event.jobs if job in self.jobs]
        if len(positions) == 1 and len(event.jobs) == 1:
            (position,), (rate,) = positions, event.steps_per_second
            self.jobs.rates[position, column] = rate
            self.jobs.known[position, column] = not event.expected
            self.jobs.pooled[position] = self.jobs.rates[position] @ self.workers.present
            if self.jobs.on[position] == column and self.jobs.beside[position] == NONE:
                self.jobs.rate[position] = rate
            self._changed = True
        elif len(positions) == 2:
            self._pair_rates.measured(
                int(self.jobs.kind[positions[0]]), int(self.jobs.kind[positions[1]]), column, event.steps_per_second
            )
            self._leases.share_anew(column)
            self._changed = True
        return []

    def _steps_counted(self, event: StepsCounted) -> list[Command]:
        self.jobs.left[self._position(event)] = event.steps_left
        return []

    def _checkpoint_kept(self, event: CheckpointKept) -> list[Command]:
        self.jobs.bound[self._position(event)] = False
        return []

    def _prices_changed(self, event: PricesChanged) -> list[Command]:
        self._prices = np.array([event.prices[name] for name in self.types])
        self._changed = True
        return []

    def _reserved(self, event: Reserved) -> list[Command]:
        for name in event.workers:
            self._type(name)
        self.reservations.known[event.reservation] = event
        return []

    def _reservation_cancelled(self, event: ReservationCancelled) -> list[Command]:
        self.reservations.known.pop(event.reservation, None)
        return self._backfill()

    # Rounds

    def _round_began(self, event: RoundBegan) -> list[Command]:  # noqa: ARG002
        if self.round_end is None or self.now < self.round_end:
            return []
        if not len(self.jobs):
            self.round_end = None
            return []
        self.rounds += 1
        self.reservations.forget_past(self.now)
        # Where progress matters to the policy, jobs that only run on may in time be another matter, too.
        due = self.policy.by_progress and self.now >= self._decided + self._rounds.turn_seconds
        commands = self._decide() if self._changed or due else []
        self.round_end = self.now + self.options.round_seconds
        commands += self._assign(preempt=True)
        return [*commands, Extend(self.round_end), BeginRound(self.round_end)]

    def _backfill(self) -> list[Command]:
        """Give free workers to jobs that wait; no job is stopped."""
        if not self.workers.room.any() or self.round_end is None or self.round_end <= self.now:
            return []
        if not (self.jobs.on == NONE).any():
            return []
        # Who of the waiting jobs comes first is for the policy to say where it chooses whole jobs.
        commands = self._decide() if self.policy.whole_jobs and self._changed else []
        return commands + self._assign(preempt=False)

    def _decide(self) -> list[Command]:
        problem = self._problem()
        try:
            self.allocation = self.policy.allocate(problem)
        except UndecidedError as error:
            return [Undecided(str(error), self._newcomers())]
        self.solves += 1
        self._changed, self._decided = False, self.now
        self._rounds.follow(self.allocation, self.jobs)
        return []

    def _newcomers(self) -> tuple[str, ...]:
        """The jobs about which neither this engine nor the one that it goes on from has decided."""
        decided = set() if self.allocation is None else set(self.allocation.ids)
        new = np.logical_not(self.jobs.shares.any(axis=1))
        return tuple(job for position, job in enumerate(self.jobs.ids) if new[position] and job not in decided)

    def _problem(self) -> Problem:
        """The decision as the policy sees it."""
        jobs, now = self.jobs.copied(), self.now
        steps = jobs.left.copy()
        steps[np.isinf(steps)] = np.nan
        return Problem(
            types=self.types,
            workers=self.workers.present.astype(float),
            ids=tuple(jobs.ids),
            throughputs=jobs.rates,
            scale_factors=self.jobs.sizes,
            weights=jobs.weight,
            steps_left=steps,
            elapsed=now - jobs.arrival,
            isolated_elapsed=jobs.isolated,
            slo_seconds=jobs.deadline - now,
            team=jobs.team,
            entities=self._admission.entities,
            dollars_per_hour=self._prices,
            pairs=self._pair_rates.pairs(jobs.kind),
            previous=self.allocation,
            seed=self.options.seed + self.solves,
            demand=self.arrivals.demand,
            classes=jobs.group,
            done=jobs.done,
            likely=self.likely_steps(),
            on=jobs.on,
            beside=jobs.partners(),
            restart_seconds=self.options.restart_seconds,
        )

    def likely_steps(self, quantile: FloatArray | float = 0.5) -> FloatArray | None:
        """How many steps jobs have left that do not say so, going by those before them; None where all say so.

        NaN for those that do, and for all while too few jobs were seen. A quantile may be given for each that does not.
        """
        return self._admission.likely_steps(quantile)

    def choose(self, seconds: float, *, preempt: bool) -> Chosen:
        """Which jobs are to run for so many seconds, by the shares as they are; nothing is stopped or started."""
        return self._rounds.choose(
            self.jobs, self.workers, self._prices, self.reservations, now=self.now, seconds=seconds, preempt=preempt
        )

    def _assign(self, *, preempt: bool) -> list[Command]:
        """Let the rounds choose which jobs run, stop those that do not any more, and start those that newly do."""
        now, until = self.now, self._until
        chosen = self.choose(until - now, preempt=preempt)
        commands = self._leases.stop(chosen.stopped, now=now) if len(chosen.stopped) else []
        for members, column in zip(chosen.started, chosen.columns, strict=True):
            commands.append(
                self._leases.start(members, column, now=now, until=until, workers=chosen.workers.get(members[0]))
            )
        return commands

    # Looking things up

    @property
    def _until(self) -> float:
        """When leases end that are granted now: there are jobs, so there is a round."""
        assert self.round_end is not None
        return self.round_end

    def _position(self, event: JobFinished | JobFailed | JobCancelled | StepsCounted | CheckpointKept) -> int:
        if event.job not in self.jobs:
            raise self._story.error(event.cause, f"{event}, but there is no such job")
        return self.jobs.position(event.job)

    def _type_of(self, event: WorkersLeft | WorkersReturned) -> int:
        """The type of some workers, all of which have been here."""
        column = self._type(event.accelerator)
        count = self.workers.count(column)
        if not all(0 <= worker < count for worker in event.workers):
            raise self._story.error(event.cause, f"{event}, but there are only {count} {event.accelerator}")
        return column

    def _type(self, accelerator: str) -> int:
        if accelerator not in self._column:
            raise InputError(f"accelerator '{accelerator}' is not a type of this cluster; known: {self.types}")
        return self._column[accelerator]
