"""Between the engine and the world: turns what happens into the engine's events, and its commands into deeds.

Nothing here waits for anything. What happens is taken in at once, and two lists grow: changes for the store, and
commands for the backend. The controller makes the changes durable, all together, before it gives the commands; if it is
killed in between, the next one finds in the store what should be, at the backend what is, and closes the gap
(`reconcile`). Commands can be given twice, so being told the same thing again does no harm.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Concatenate, ParamSpec

from sqlalchemy import Connection

from fairway.engine.reasons import reasons as waiting_reasons
from fairway.engine.training import TrainingEngine
from fairway.engine.training_messages import (
    BeginRound,
    Event,
    Extend,
    Grant,
    JobCancelled,
    JobFailed,
    JobFinished,
    RateMeasured,
    Refuse,
    Revoke,
    RoundBegan,
    StepsCounted,
    WorkersLeft,
    WorkersReturned,
)
from fairway.live import ledger
from fairway.live.assignments import ENDED, PLANNED, RUNNING, Leases, LiveJob, LiveLease
from fairway.live.beliefs import Beliefs, is_telling, is_unknown
from fairway.live.clock import Clock
from fairway.live.local import agent_messages
from fairway.live.local.granted import start_of
from fairway.live.local.process import FAILED_TO_START, LOST, STOPPED_EARLY
from fairway.live.standing import standing_document
from fairway.live.statistics import Statistics
from fairway.live.verdict import judged
from fairway.profiles.tables import ThroughputTable
from fairway.store.decisions import decision_document
from fairway.store.job_changes import explain_jobs, record_rates
from fairway.store.journal import record_decision, record_step
from fairway.store.leases import extend_leases, plan_leases, revoke_leases
from fairway.store.records import Reason
from fairway.store.standing import save_standing
from fairway.store.states import ACTIVE, JobState

P = ParamSpec("P")

_LOG = logging.getLogger(__name__)


class LiveScheduler:
    """The engine with its jobs and leases as they are in the world.

    `changes` are for the store, `commands` for the backend, both in order. `retired` are jobs that have ended.
    """

    def __init__(
        self,
        engine: TrainingEngine,
        clock: Clock,
        *,
        policy: str,
        table: ThroughputTable | None,
        statistics: Statistics,
    ) -> None:
        self.engine, self.clock, self.policy, self.table = engine, clock, policy, table
        self.statistics = statistics
        self.beliefs = Beliefs(engine.types, table)
        self.jobs: dict[str, LiveJob] = {}
        self.leases = Leases()
        self.changes: list[Callable[[Connection], object]] = []
        self.commands: list[agent_messages.Command] = []
        self.closing = False
        self.round_at: float | None = None
        self._parked: dict[str, Event] = {}
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._count = itertools.count()
        self._reasons: dict[str, Reason] = {}
        self._told = engine.solves

    # Time

    def next_due(self) -> float | None:
        """When `tick` has to be called at the latest, on the wall clock."""
        return self.clock.wall(self._timers[0][0]) if self._timers else None

    def tick(self) -> None:
        """Do what is due."""
        while self._timers and self._timers[0][0] <= self.clock.now():
            heapq.heappop(self._timers)[2]()

    def at(self, engine_time: float, action: Callable[[], None]) -> None:
        """Do something at a time of the engine's clock."""
        heapq.heappush(self._timers, (engine_time, next(self._count), action))

    # Jobs

    def arrive(self, job: LiveJob, event: Event) -> None:
        """A job is to be scheduled: a new one, or one of before."""
        self.jobs[job.id] = job
        self.tell(event)

    def wait_before(self, job: LiveJob, seconds: float) -> None:
        """Let a job rest for some seconds of the wall clock before it goes back to the engine."""
        self.at(self.clock.now() + seconds * self.clock.time_scale, partial(self._return, job))

    def _return(self, job: LiveJob) -> None:
        if job.waiting is not None and job.id in self.jobs and not job.cancelled:
            event, job.waiting = replace(job.waiting, time=self._time()), None
            self.tell(event)

    def cancel(self, name: str) -> None:
        """The owner of a job has taken it back."""
        job = self.jobs.get(name)
        if job is None or job.cancelled:
            return
        job.cancelled = True
        self._parked.pop(name, None)
        if name in self.engine.jobs:
            self.tell(JobCancelled(self._time(), name))
        job.waiting = None
        for lease in self.leases.of_job(name):
            self._ask_to_end(lease, name, save=False)
        self._retire_if_over(job)

    # Workers

    def drain(self, workers: Mapping[str, Sequence[int]], *, on: bool) -> None:
        """Nothing is to run on these workers any more, or again."""
        for accelerator, numbers in workers.items():
            kind = partial(WorkersLeft, drain=True) if on else WorkersReturned
            self.tell(kind(self._time(), accelerator, tuple(numbers)))
        if not on:
            self._try_parked()

    def lose(self, workers: Mapping[str, Sequence[int]]) -> None:
        """These workers are gone."""
        for accelerator, numbers in workers.items():
            self.tell(WorkersLeft(self._time(), accelerator, tuple(numbers)))

    def _try_parked(self) -> None:
        parked, self._parked = self._parked, {}
        for event in parked.values():
            self.tell(replace(event, time=self._time()))

    # What runs report

    def happened(self, event: Mapping[str, Any]) -> None:
        """Something happened to a run."""
        lease, job = self.leases.get(event["lease"]), self.jobs.get(event["job"])
        name = event["event"]
        if name in {"exited", "failed-to-start"}:
            self._ended(event["lease"], event["job"], event)
        elif lease is None or job is None or lease.runs.get(job.id) == ENDED:
            return
        elif name == "started":
            self._running(lease, job, at=event.get("started") or event["time"])
        elif name == "steps":
            job.steps_done, job.steps_per_second = event["steps"], event["steps_per_second"]
            job.reported = False
        elif name == "checkpointed":
            self.change(ledger.note_checkpoint, job.id, job.steps_left(event["checkpoint_step"]), at=event["time"])

    def _running(self, lease: LiveLease, job: LiveJob, *, at: float) -> None:
        if lease.runs[job.id] == RUNNING:
            return
        lease.runs[job.id], lease.held = RUNNING, True
        self.statistics.restarts_total += job.attempts > 0
        job.attempts += 1
        job.steps_per_second = None
        self.change(ledger.note_running, job.id, lease.grant.lease, at=at)
        if lease.revoked:
            self.change(ledger.note_preempting, [job.id], at=at)

    def _ended(self, number: int, name: str, outcome: Mapping[str, Any]) -> None:
        """A run is over; `outcome` says how."""
        self.commands.append(agent_messages.Forget(number, name))
        lease, job = self.leases.get(number), self.jobs.get(name)
        if lease is None or lease.runs.get(name, ENDED) == ENDED:
            return
        at = time.time()
        if job is None:  # it has ended under another lease, and this one was taken back before it got to run
            lease.runs[name] = ENDED
            self._close_if_over(lease, at, "its job has ended")
            self.commands.append(agent_messages.Retire(name))
            return
        kind = outcome["kind"]
        if lease.runs[name] == PLANNED and kind not in {FAILED_TO_START, STOPPED_EARLY}:
            self._running(lease, job, at=at)  # it was too quick for anybody to see it run
        lease.runs[name] = ENDED
        saved = outcome.get("checkpoint_step")
        self.change(ledger.note_checkpoint, name, job.steps_left(saved), at=at)
        verdict = judged(
            kind,
            why=outcome.get("reason") or kind,
            cancelled=job.cancelled,
            failures=job.failures,
            retries=job.spec.retries,
        )
        job.failures += verdict.failed
        self.statistics.count_end(verdict)
        self.change(ledger.note_end, name, verdict, outcome.get("code"), at=at)
        self._close_if_over(lease, at, verdict.reason.sentence if verdict.reason else None)
        if verdict.state in ACTIVE:
            self._back_to_waiting(job, lease, verdict.wait_seconds, saved)
        else:
            if name in self.engine.jobs:
                done = verdict.state is JobState.SUCCEEDED
                self.tell(JobFinished(self._time(), name) if done else JobFailed(self._time(), name))
            self._retire(job)

    def _back_to_waiting(self, job: LiveJob, lease: LiveLease, seconds: float, saved: float | None) -> None:
        job.steps_done = saved or 0
        left = job.steps_left(job.steps_done)
        if job.id not in self.engine.jobs:
            return
        if left is not None:
            self.tell(StepsCounted(self._time(), job.id, left))
        if seconds:
            job.waiting = self.engine.resumed(job.id)
            self.tell(JobFailed(self._time(), job.id))
            self.wait_before(job, seconds)
        elif not lease.revoked:
            self.tell(JobFailed(self._time(), job.id, retry=True))

    def _close_if_over(self, lease: LiveLease, at: float, reason: str | None) -> None:
        """End a lease in the store when nothing runs under it, and let the one that follows it hold its workers."""
        if not lease.over:
            return
        number = lease.grant.lease
        self.leases.drop(number)
        following = next((other for other in self.leases if other.follows == number), None)
        if following is None:
            self.change(ledger.note_leases_over, [number], at=at, reason=reason)
            return
        following.follows, following.held = None, True
        for name, state in following.runs.items():
            if state == RUNNING:
                self.change(ledger.note_continued, name, number, following.grant.lease, at=at)

    def _retire_if_over(self, job: LiveJob) -> None:
        if job.cancelled and not self.leases.of_job(job.id):
            self._retire(job)

    def _retire(self, job: LiveJob) -> None:
        self.jobs.pop(job.id, None)
        if not self.leases.of_job(job.id):
            self.commands.append(agent_messages.Retire(job.id))

    # Rounds

    def _begin_round(self, at: float) -> None:
        if self.closing:
            return
        self._report_rates()
        self.flush_progress(to_engine=True)
        self.tell(RoundBegan(max(self._time(), at)))

    def flush_progress(self, *, to_engine: bool = False) -> None:
        """Write down how far jobs are, and before a round tell the engine."""
        for job in self.jobs.values():
            left = job.steps_left(job.steps_done)
            if left is None or (job.reported and not to_engine):
                continue
            if not job.reported:
                job.reported = True
                self.change(ledger.note_progress, job.id, left)
            if to_engine and job.id in self.engine.jobs and self._runs(job.id):
                self.tell(StepsCounted(self._time(), job.id, left))

    def _runs(self, name: str) -> bool:
        return any(lease.runs[name] == RUNNING and not lease.revoked for lease in self.leases.of_job(name))

    def _report_rates(self) -> None:
        """Tell the engine of rates that differ from what it believes."""
        for lease in self.leases:
            grant = lease.grant
            members = [self.jobs[name] for name in grant.jobs if name in self.jobs and name in self.engine.jobs]
            rates = [job.steps_per_second for job in members]
            if lease.revoked or len(members) < len(grant.jobs) or None in rates:
                continue
            seen = [rate / self.clock.time_scale for rate in rates if rate is not None]
            believed = [float(self.engine.jobs.rate[self.engine.jobs.position(job.id)]) for job in members]
            if any(is_telling(one, other) for one, other in zip(seen, believed, strict=True)):
                self._measured(members, grant.accelerator, seen)

    def _measured(self, members: Sequence[LiveJob], accelerator: str, seen: Sequence[float]) -> None:
        names = tuple(job.id for job in members)
        self.tell(RateMeasured(self._time(), names, accelerator, tuple(seen)))
        self.change(record_rates, names, accelerator, seen, at=time.time())
        if len(members) > 1:
            return
        (job,), (rate,) = members, seen
        position = self.engine.jobs.position(job.id)
        others = zip(self.engine.types, self.engine.jobs.rates[position].tolist(), strict=True)
        job.measured[accelerator] = rate
        if is_unknown(job.spec):
            for other, believed in others:
                if believed and other not in job.measured:
                    expected = self.beliefs.elsewhere(accelerator, rate, other)
                    self.tell(RateMeasured(self._time(), names, other, (expected,)))

    # The engine's commands

    def tell(self, event: Event, *, journal: bool = True) -> None:
        """Tell the engine what happened, and see to what it wants done."""
        if self.closing:
            return
        began = time.perf_counter()
        commands = self.engine.handle(event)
        seconds = time.perf_counter() - began
        at = time.time()
        if journal:
            self.change(record_step, event, commands, at=at)
        if isinstance(event, RoundBegan):
            self._explain()
            self.change(save_standing, standing_document(self.engine), at=at)
        if self.engine.solves > self._told:
            self._told = self.engine.solves
            self.statistics.count_decision(seconds)
            self._record_decision(at)
        continuing = {job for command in commands if isinstance(command, Grant) and not command.restart
                      for job in command.jobs}  # fmt: skip
        for command in commands:
            match command:
                case Grant():
                    self._grant(command, at)
                case Revoke():
                    self._revoke(command, continuing, at)
                case Extend():
                    until = self.clock.wall(command.until)
                    self.change(extend_leases, until, at=at)
                    self.commands.append(agent_messages.Extend(until))
                case BeginRound():
                    self.round_at = command.at
                    self.at(command.at, partial(self._begin_round, command.at))
                case Refuse():
                    self._parked[command.job] = event
                    self.change(explain_jobs, {command.job: Reason("WorkersLost", command.reason)})

    def _record_decision(self, at: float) -> None:
        allocation = self.engine.allocation
        assert allocation is not None
        document = decision_document(self.policy, allocation.problem, allocation, self._reasons)
        self.change(record_decision, document, at=at)

    def _grant(self, grant: Grant, at: float) -> None:
        lease = LiveLease(replace(grant, until=self.clock.wall(grant.until)))
        self.leases.add(lease)
        self.statistics.leases_granted_total += 1
        self.change(plan_leases, [lease.grant], at=at)
        if not grant.restart:
            self._hand_over(lease, at)
            return
        for name in grant.jobs:
            self._start(lease, self.jobs[name])

    def _hand_over(self, lease: LiveLease, at: float) -> None:
        """The one that its job shared with has left: it goes on, alone, under the new lease."""
        (name,) = lease.grant.jobs
        old = max((other for other in self.leases.of_job(name) if other is not lease), key=lambda one: one.grant.lease)
        lease.runs[name], old.runs[name] = old.runs[name], ENDED
        lease.follows = old.grant.lease
        job = self.jobs[name]
        if lease.runs[name] == RUNNING:
            rate = self._pace(lease.grant, job)
            command = agent_messages.HandOver(name, old.grant.lease, lease.grant.lease, lease.grant.until, rate)
            self.commands.append(command)
        else:  # it never got to run under the old one
            self.commands.append(agent_messages.End(old.grant.lease, name, save=False))
            self._start(lease, job)
        self._close_if_over(old, at, None)

    def _start(self, lease: LiveLease, job: LiveJob) -> None:
        self.commands.append(
            start_of(
                job.spec,
                job.id,
                lease.grant,
                attempt=job.attempts + 1,
                until=lease.grant.until,
                steps_per_second=self._pace(lease.grant, job),
            )
        )

    def _pace(self, grant: Grant, job: LiveJob) -> float | None:
        """The rate to emulate: what the profile says, alone or beside another; None where it says nothing."""
        if is_unknown(job.spec):
            return None
        if len(grant.jobs) == 2 and self.table is not None:
            side = grant.jobs.index(job.id)
            types = [self.jobs[name].spec.job_type for name in grant.jobs]
            if types[0] is not None and types[1] is not None:
                together = self.table.pair_rates(types[0], types[1], job.spec.accelerators.count)
                return together.get(grant.accelerator, (0.0, 0.0))[side] or None
        known = job.spec.throughputs
        if known is not None:
            return {name.lower(): rate for name, rate in known.items()}.get(grant.accelerator.lower()) or None
        assert self.table is not None
        assert job.spec.job_type is not None
        rates = self.table.rates(job.spec.job_type, job.spec.accelerators.count, spread=grant.spread)
        return rates.get(grant.accelerator) or None

    def _revoke(self, revoke: Revoke, continuing: Collection[str], at: float) -> None:
        lease = self.leases.get(revoke.lease)
        if lease is None:  # its runs have ended, which is why it is taken back
            return
        lease.revoked = True
        self.change(revoke_leases, [revoke.lease], at=at)
        if revoke.restart:
            self.statistics.preemptions_total += len(revoke.jobs)
            running = [name for name in revoke.jobs if lease.runs.get(name) == RUNNING]
            self.change(ledger.note_preempting, running, at=at)
        for name in revoke.jobs:
            if lease.runs.get(name, ENDED) != ENDED and name not in continuing:
                self._ask_to_end(lease, name, save=not self.jobs[name].cancelled)

    def _ask_to_end(self, lease: LiveLease, name: str, *, save: bool) -> None:
        preemptible = self.jobs[name].spec.preemptible
        self.commands.append(agent_messages.End(lease.grant.lease, name, save=save and preemptible))

    def refused(self, command: agent_messages.Start, code: str, why: str) -> None:
        """The backend does not run a job; what it said is how the run ended."""
        kind = LOST if code == "stale" else FAILED_TO_START
        self._ended(command.lease, command.job, {"kind": kind, "reason": why})

    # After the backend, or this program, was away

    def reconcile(self, runs: Iterable[Mapping[str, Any]]) -> None:
        """Bring the runs that the backend knows together with those that should be."""
        known = {(run["lease"], run["job"]): run for run in runs}
        for run in [run for run in known.values() if run["state"] == "ended"]:
            self._ended(run["lease"], run["job"], run["outcome"])
        for (number, name), run in known.items():
            lease, job = self.leases.get(number), self.jobs.get(name)
            if run["state"] == "ended":
                continue
            expected = lease is not None and lease.runs.get(name, ENDED) != ENDED
            if lease is None or job is None or not expected:
                if not self._is_handed_over(number, name):
                    self.commands.append(agent_messages.End(number, name, save=run["preemptible"]))
                continue
            if run["state"] in {"running", "ending"}:
                self._running(lease, job, at=run["accepted"])
            if run.get("steps") is not None:
                job.steps_done, job.reported = run["steps"], False
            if lease.revoked or job.cancelled:
                self._ask_to_end(lease, name, save=not job.cancelled)
        for lease in self.leases:
            for name, state in list(lease.runs.items()):
                if state != ENDED and (lease.grant.lease, name) not in known:
                    self._missing(lease, self.jobs[name], state, known)

    def _is_handed_over(self, number: int, name: str) -> bool:
        return any(lease.follows == number for lease in self.leases.of_job(name))

    def _missing(self, lease: LiveLease, job: LiveJob, state: str, known: Collection[tuple[int, str]]) -> None:
        """The backend does not know a run that should be."""
        number = lease.grant.lease
        if lease.follows is not None and (lease.follows, job.id) in known:
            rate = self._pace(lease.grant, job)
            self.commands.append(agent_messages.HandOver(job.id, lease.follows, number, lease.grant.until, rate))
        elif state == RUNNING:
            self._ended(number, job.id, {"kind": LOST, "reason": "the agent does not know of it any more"})
        elif lease.revoked or job.cancelled:
            self._ended(number, job.id, {"kind": STOPPED_EARLY, "reason": "it had not started"})
        else:
            self._start(lease, job)

    # Stopping

    def close(self) -> None:
        """Ask all that runs to save and stop; nothing new begins."""
        self.closing = True
        at = time.time()
        for lease in self.leases:
            if lease.revoked:
                continue
            lease.revoked = True
            self.change(revoke_leases, [lease.grant.lease], at=at)
            running = [name for name, state in lease.runs.items() if state == RUNNING]
            self.change(ledger.note_preempting, running, at=at)
            for name, state in lease.runs.items():
                if state != ENDED:
                    self.commands.append(
                        agent_messages.End(lease.grant.lease, name, save=self.jobs[name].spec.preemptible)
                    )

    # The rest

    def _explain(self) -> None:
        """Write down why jobs wait, where that has changed."""
        found = waiting_reasons(self.engine).items()
        reasons = {job: Reason(reason.code, reason.sentence) for job, reason in found}
        new = {job: reason for job, reason in reasons.items() if self._reasons.get(job) != reason}
        self._reasons = reasons
        if new:
            self.change(explain_jobs, new)

    def change(
        self, operation: Callable[Concatenate[Connection, P], object], /, *arguments: P.args, **options: P.kwargs
    ) -> None:
        """Have something written to the store, after all that was asked for before."""
        self.changes.append(lambda connection: operation(connection, *arguments, **options))

    def _time(self) -> float:
        return max(self.clock.now(), self.engine.now)
