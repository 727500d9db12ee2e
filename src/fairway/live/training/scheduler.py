"""Between the engine and the world: turns what happens into the engine's events, and its commands into deeds.

Nothing here waits for anything. What happens is taken in at once, and two lists grow: changes for the store, and
commands for the backend. The controller makes the changes durable, all together, before it gives the commands; if it is
killed in between, the next one finds in the store what should be, at the backend what is, and closes the gap
(`reconcile`). The backend may be given a command twice, which does no harm.

This file has the jobs, the workers and the clock, and `take_in`, the one place that hands events to the engine. What
the engine wants done is in `commands`, what runs report in `reports`, how fast they run in `measurements`.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Concatenate, ParamSpec

import numpy as np
from sqlalchemy import Connection

from fairway.allocate.decision_document import decision_document
from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.messages import (
    CheckpointKept,
    Event,
    JobArrived,
    JobCancelled,
    JobFailed,
    JobResumed,
    RoundBegan,
    StepsCounted,
    WorkersLeft,
    WorkersReturned,
)
from fairway.engine.training.reasons import Room, blocked
from fairway.engine.training.reasons import reasons as waiting_reasons
from fairway.jobs import Entity
from fairway.live.backend.commands import RetireJob, RunCommand
from fairway.live.backend.demand import JobDemand
from fairway.live.backend.logs import LOG_BYTES
from fairway.live.training import ledger, measurements
from fairway.live.training.admission.gate import Gate
from fairway.live.training.admission.priorities import Priorities, PriorityClass
from fairway.live.training.admission.quotas import Quotas
from fairway.live.training.beliefs import Beliefs
from fairway.live.training.clock import Clock
from fairway.live.training.commands import ask_to_end, follow, take_back
from fairway.live.training.decision.suspects import Suspects
from fairway.live.training.demand import demand_of
from fairway.live.training.leases import Leases, LiveJob
from fairway.live.training.standing import standing_document
from fairway.live.training.statistics import Statistics
from fairway.profiles.tables import ThroughputTable
from fairway.store.job_changes import explain_jobs
from fairway.store.journal import Step, record_decision, record_steps
from fairway.store.records import Reason, Worker
from fairway.store.standing import save_standing

P = ParamSpec("P")

Change = Callable[[Connection], object]
"""Something to be written to the store."""

_LOG = logging.getLogger(__name__)

_UNDECIDED = Reason("WaitingForRound", "nothing is decided about it yet; the next round does")


class LiveScheduler:
    """The engine with its jobs and leases as they are in the world.

    `changes` are for the store, `commands` for the backend, both in order. `workers` are all that ever were, as the
    store has them, and `places` their numbers at the backend. Jobs that are `set_aside` cannot be scheduled as things
    are, but could be again. While it is `closing` nothing is decided. `round_due` is when the next round should begin,
    on the machine's monotonic clock, None while there is nothing to decide about. `user_of` says as which
    user of the machine the jobs of a team run; `log_bytes` are kept of what each process of a job prints.
    """

    def __init__(
        self,
        engine: TrainingEngine,
        clock: Clock,
        *,
        policy: str,
        table: ThroughputTable | None,
        statistics: Statistics,
        workers: Iterable[Worker] = (),
        places: Mapping[tuple[str, int], int] | None = None,
        user_of: Callable[[str | None], str | None] = lambda _: None,
        log_bytes: int = LOG_BYTES,
        quotas: Mapping[str, Mapping[str, int]] | None = None,
        entities: Mapping[str, Entity] | None = None,
        priority_classes: Mapping[str, PriorityClass] | None = None,
    ) -> None:
        self.engine, self.clock, self.policy, self.table = engine, clock, policy, table
        self.statistics = statistics
        self.workers = {(worker.accelerator, worker.number): worker for worker in workers}
        self.places = places or {}
        self.user_of, self.log_bytes = user_of, log_bytes
        self.beliefs = Beliefs(engine.types, table)
        self.jobs: dict[str, LiveJob] = {}
        self.set_aside: set[str] = set()
        self.leases = Leases()
        self.changes: list[Change] = []
        self.commands: list[RunCommand] = []
        self.closing = False
        self.round_due: float | None = None
        self._refused: dict[str, JobArrived | JobResumed] = {}
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._count = itertools.count()
        self._reasons: dict[str, Reason] = {}
        self._solves = engine.solves
        self.suspects = Suspects(self)
        self.gate = Gate(self)
        self.priorities = Priorities(priority_classes or {}, entities or {})
        self.quotas = Quotas(quotas or {}, entities or {}, engine.types)
        self._steps: list[Step] | None = None

    # Time

    def seconds_until_due(self) -> float | None:
        """In how many seconds `tick` has to be called at the latest."""
        return self.clock.seconds_until(self._timers[0][0]) if self._timers else None

    def tick(self) -> None:
        """Do what is due; what comes due meanwhile is left for the next time, so that this ends."""
        now = self.clock.now()
        while self._timers and self._timers[0][0] <= now:
            heapq.heappop(self._timers)[2]()

    def at(self, engine_time: float, action: Callable[[], None]) -> None:
        """Do something at a time of the engine's clock."""
        heapq.heappush(self._timers, (engine_time, next(self._count), action))

    def time(self) -> float:
        """The time of what happens now, for the engine; never before the last thing that it took in."""
        return max(self.clock.now(), self.engine.now)

    # Jobs

    def arrive(self, arrivals: Sequence[tuple[LiveJob, JobArrived | JobResumed]]) -> None:
        """New jobs are to be scheduled, or such as had to wait until now."""
        self.jobs.update((job.id, job) for job, _ in arrivals)
        self.take_in(*[event for _, event in arrivals])
        engine, room = self.engine, Room.of(self.engine, self._drained())
        for job, _ in arrivals:
            if job.id in engine.jobs and not self.leases.of_job(job.id):
                reason = blocked(engine, engine.jobs.position(job.id), room)
                self.explain({job.id: _UNDECIDED if reason is None else Reason(reason.code, reason.sentence)})

    def take_out(self, name: str) -> None:
        """Take a job out of the engine, to be brought back as it stands there; what it runs saves and stops."""
        job = self.jobs[name]
        job.waiting = self.engine.resumed(name)
        self.take_in(JobFailed(name))

    def bring_back(self, name: str) -> None:
        """Let a job that was taken out go back to the engine."""
        if name in self.jobs:
            self._return(self.jobs[name])

    def wait_before(self, job: LiveJob, seconds: float) -> None:
        """Let a job rest for some seconds of the wall clock before it goes back to the engine."""
        self.at(self.clock.now() + seconds * self.clock.time_scale, partial(self._return, job))

    def _return(self, job: LiveJob) -> None:
        if job.waiting is not None and self.jobs.get(job.id) is job and not self.closing:
            event, job.waiting = job.waiting, None
            self.take_in(event)

    def cancel(self, name: str) -> None:
        """The owner of a job has taken it back."""
        job = self.jobs.get(name)
        if job is None or job.cancelled:
            return
        job.cancelled, job.waiting = True, None
        self._refused.pop(name, None)
        if name in self.engine.jobs:
            self.take_in(JobCancelled(name))
        for lease in self.leases.of_job(name):
            ask_to_end(self, lease, name)
        if not self.leases.of_job(name):
            self.change(ledger.note_cancelled, name, at=self.clock.today())
            self.retire(name)

    def retire(self, name: str) -> None:
        """A job has ended."""
        self.gate.ended(self.jobs.pop(name, None), name)
        self._reasons.pop(name, None)
        if not self.leases.of_job(name):
            self.commands.append(RetireJob(name))

    def lease_of(self, name: str) -> int | None:
        """The number of the lease that a job holds as far as the engine knows."""
        if name not in self.engine.jobs:
            return None
        number = int(self.engine.jobs.lease[self.engine.jobs.position(name)])
        return number if number >= 0 else None

    # Workers

    def drain(self, names: Iterable[tuple[str, int]], *, on: bool) -> None:
        """Nothing is to run on these workers any more, or again."""
        by_type: dict[str, list[int]] = {}
        for name in dict.fromkeys(names):
            worker = self.workers[name]
            self.workers[name] = replace(worker, drained_at=self.clock.today() if on else None)
            if worker.lost_at is None:  # what is lost is not back because it may be used again
                by_type.setdefault(worker.accelerator, []).append(worker.number)
        kind = partial(WorkersLeft, drain=True) if on else WorkersReturned
        events: list[Event] = [kind(accelerator, tuple(numbers)) for accelerator, numbers in by_type.items()]
        if not on:  # jobs for which there was no room may find some now
            events += self._refused.values()
            self._refused.clear()
        self.take_in(*events)
        self._explain_all()

    def demand(self) -> tuple[JobDemand, ...]:
        """What the jobs that run or wait ask of the machines; nothing any more while all is to stop."""
        if self.closing:
            return ()
        return demand_of(self.engine, {name: event.job for name, event in self._refused.items()})

    def _drained(self) -> dict[str, int]:
        """How many workers of each type are drained."""
        counts: dict[str, int] = {}
        for worker in self.workers.values():
            if worker.drained_at is not None and worker.lost_at is None:
                counts[worker.accelerator] = counts.get(worker.accelerator, 0) + 1
        return counts

    # Rounds

    def begin_round(self, at: float) -> None:
        """The time has come at which the engine wanted to begin a round."""
        if self.closing:
            return
        events: list[Event] = [*measurements.news(self), *self._checkpoints_kept(), *self._steps_counted()]
        self.flush_progress()
        self.take_in(*events, RoundBegan(), at=max(self.time(), at))

    def _checkpoints_kept(self) -> Iterator[CheckpointKept]:
        """The jobs that turned out to keep checkpoints, of which the engine does not know it yet."""
        for position in np.flatnonzero(self.engine.jobs.bound).tolist():
            job = self.jobs.get(self.engine.jobs.ids[position])
            if job is not None and job.resumes:
                yield CheckpointKept(job.id)

    def _steps_counted(self) -> Iterator[StepsCounted]:
        """How many steps the jobs that run have left."""
        for job in self.jobs.values():
            left = job.steps_left(job.steps_done)
            if left is not None and job.id in self.engine.jobs and self._runs(job.id):
                yield StepsCounted(job.id, left)

    def _runs(self, name: str) -> bool:
        return any(lease.runs[name].state == "running" and not lease.revoked for lease in self.leases.of_job(name))

    def flush_progress(self) -> None:
        """Write down how far jobs are."""
        news: dict[str, float] = {}
        for job in self.jobs.values():
            if not job.reported:
                job.reported = True
                left = job.steps_left(job.steps_done)
                if left is not None:
                    news[job.id] = left
        if news:
            self.change(ledger.note_progress, news)

    # The engine

    def take_in(self, *events: Event, at: float | None = None, journal: bool = True) -> None:
        """Hand the engine all that has happened at one moment, now or `at` a time, and see to what it wants done."""
        if self.closing or not events:
            return
        now = self.time() if at is None else at
        rounds, previous, began = self.engine.rounds, self.engine.allocation, time.perf_counter()
        commands = self.engine.handle(now, events)
        seconds = time.perf_counter() - began
        if journal:
            self._record(Step(now, events, commands))
        if isinstance(events[-1], RoundBegan):
            self.round_due = None  # unless another is to follow, which a command says
            if not len(self.engine.jobs):
                self.at(now, self.suspects.decided)
            self.statistics.rounds += self.engine.rounds - rounds
            self._explain_all()
            self.save_standing()
        if self.engine.solves > self._solves:
            self._solves = self.engine.solves
            self.statistics.count_decision(seconds)
            self.at(now, self.suspects.decided)
            allocation = self.engine.allocation
            assert allocation is not None
            document = decision_document(self.policy, allocation.problem, allocation, self._reasons, previous)
            self.change(record_decision, document, at=self.clock.today())
            self._steps = None  # what follows comes behind the decision
        follow(self, events, commands)

    def _record(self, step: Step) -> None:
        """Have a step of the engine written to the journal, together with those before it that are not yet."""
        if self._steps is None:
            self._steps = []
            self.change(record_steps, self._steps, at=self.clock.today())
        self._steps.append(step)

    def take(self) -> tuple[list[Change], list[RunCommand]]:
        """What is to be written now, and what is to be asked of the backend when that is durable."""
        changes, self.changes = self.changes, []
        commands, self.commands = self.commands, []
        self._steps = None
        return changes, commands

    def refuse(self, event: JobArrived | JobResumed, why: str) -> None:
        """The engine has no room for a job as long as workers are away; the job arrives again when they are back."""
        self._refused[event.job.id] = event
        drained, job = self._drained(), event.job
        back = dict(zip(self.engine.types, self.engine.workers.present.tolist(), strict=True))
        fits = any(
            rate > 0 and back.get(accelerator, 0) + drained.get(accelerator, 0) >= job.scale_factor
            for accelerator, rate in job.throughputs.items()
        )
        self.explain({job.id: Reason("WorkersDrained" if fits else "WorkersLost", why)})

    def _explain_all(self) -> None:
        """Write down why jobs wait, where that has changed."""
        found = waiting_reasons(self.engine, drained=self._drained()).items()
        self.explain({job: Reason(reason.code, reason.sentence) for job, reason in found})

    def explain(self, reasons: Mapping[str, Reason]) -> None:
        """Write down why jobs wait, where that is new."""
        new = {job: reason for job, reason in reasons.items() if self._reasons.get(job) != reason}
        self._reasons.update(new)
        if new:
            self.change(explain_jobs, new)

    def unexplain(self, name: str) -> None:
        """Something else was written down about a job, so that what is known of it is news again."""
        self._reasons.pop(name, None)

    def save_standing(self) -> None:
        """Write down what every job is owed."""
        waiting = {job.id: job.waiting for job in self.jobs.values() if job.waiting is not None}
        self.change(save_standing, standing_document(self.engine, waiting), at=self.clock.today())

    # Stopping

    def close(self) -> None:
        """Ask all that runs to save and stop; nothing new begins."""
        self.save_standing()
        self.closing, self.round_due = True, None
        leases = list(self.leases)
        take_back(self, leases, [(lease, name) for lease in leases for name in lease.runs], save=True)

    def change(
        self, operation: Callable[Concatenate[Connection, P], object], /, *arguments: P.args, **options: P.kwargs
    ) -> None:
        """Have something written to the store, after all that was asked for before."""
        self.changes.append(lambda connection: operation(connection, *arguments, **options))
