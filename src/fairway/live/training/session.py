"""One engine on one store, from its making to its end: reads what it needs, and says what is to be written.

A session begins with all that the store holds. Should the engine and the store ever disagree, because one of them
failed, the session is given up and another one begun; jobs that run do not notice. Nothing here waits, but for the
store to answer questions.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from fairway.allocate.policy import Policy
from fairway.allocate.registry import policy_of
from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.messages import Event, JobArrived, ReservationCancelled, Reserved
from fairway.engine.training.options import EngineOptions
from fairway.errors import InputError
from fairway.fault_points import reached
from fairway.jobs.description import JobDescription
from fairway.live.backend.accelerators import Accelerator
from fairway.live.backend.answers import CommandAnswer, SupersededError
from fairway.live.backend.commands import EndRun, ForgetRun, HandOverRun, RetireJob, RunCommand, StartRun
from fairway.live.backend.status import BackendStatus, MachineSize
from fairway.live.training import ledger, reports
from fairway.live.training.clock import Clock
from fairway.live.training.decision.acceptance import Acceptance
from fairway.live.training.engine_job import described_rates, engine_job
from fairway.live.training.leases import LiveJob
from fairway.live.training.places import Places, devices_of, with_machines
from fairway.live.training.reconciliation import reconcile
from fairway.live.training.recovery import Reader, cluster_of, resume
from fairway.live.training.scheduler import Change, LiveScheduler
from fairway.live.training.settings import ControllerSettings
from fairway.live.training.standing import arrivals_of, standings_of
from fairway.live.training.statistics import Statistics
from fairway.profiles import ThroughputTable
from fairway.store import Store, counters
from fairway.store.dependencies import jobs_ended, names_others, needs_of
from fairway.store.engine_start import EngineStart
from fairway.store.journal import last_sequence, record_start, trim_decisions, trim_journal
from fairway.store.queries import jobs_since, jobs_taken_back, snapshot
from fairway.store.reservations import open_reservations
from fairway.store.standing import load_standing
from fairway.store.states import JobState
from fairway.store.workers import agents_seen, drain_workers, register_agent, undrain_workers

_LOG = logging.getLogger(__name__)

AGENT = "local"

_LOOK_BACK_SECONDS = 5.0
"""Changes become durable in another order than that of the times that they carry, by a moment or so."""

_LOOK_EVERY_SECONDS = 1.0
"""Looking for jobs that were taken back means to look at all that changed lately, which may be thousands."""

_FEWEST_DECISIONS = 10


def _itself(policy: Policy) -> Policy:
    return policy


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a session works with, and what stays when one session follows another."""

    settings: ControllerSettings
    store: Store
    table: ThroughputTable
    clock: Clock
    statistics: Statistics
    decided_by: Callable[[Policy], Policy] = _itself
    """How the policy is asked: as it is, or with a budget of time in another process."""


class Session:
    """The scheduler of a session with its way in from the store."""

    def __init__(
        self,
        around: Surroundings,
        accelerators: Sequence[Accelerator],
        last_lease: int = 0,
        machines: Sequence[MachineSize] = (),
        *,
        goes_on: bool = False,
    ) -> None:
        """Begin, with these accelerators at the backend and no lease numbered below what it has seen.

        If it `goes_on` after another, there may be no accelerator left: those of before are lost, and may come back.
        """
        self._around = around
        settings, store, clock = around.settings, around.store, around.clock
        devices = devices_of(accelerators)
        if not devices and not goes_on:
            raise InputError(
                "no accelerator found on this machine; declare emulated ones, as in '--emulate v100=2,k80=1', "
                "or install the extra 'fairway[nvidia]'"
            )
        registered = store.write_vital(register_agent, AGENT, devices, at=clock.today())
        self.places = Places.of(registered, accelerators)
        began_at = clock.today()
        held = store.read(snapshot)
        needs = store.read(needs_of, held.jobs)
        self.cluster = with_machines(
            cluster_of(held.workers, settings.prices), self.places, accelerators, settings.declared(machines)
        )
        policy = around.decided_by(policy_of(settings.policy))
        options = EngineOptions(
            settings.round_seconds,
            settings.restart_seconds,
            settings.entities,
            settings.seed,
            max(held.last_lease, last_lease),
            settings.packing,
        )
        self.scheduler = LiveScheduler(
            TrainingEngine(self.cluster, policy, options, partners=around.table),
            clock,
            workers=held.workers,
            policy=settings.policy,
            table=around.table,
            statistics=around.statistics,
            places=self.places.at_the_backend,
            user_of=around.settings.user_of,
            log_bytes=settings.log_bytes,
            quotas=settings.quotas,
            entities=settings.entities,
            priority_classes=settings.priority_classes,
        )
        acceptance = Acceptance(self.cluster, policy, options, around.table)
        self.reader = Reader(self.scheduler, self.cluster, acceptance)
        standing = store.read(load_standing)
        now, events = resume(self.scheduler, self.reader, held, standings_of(standing), arrivals_of(standing), needs)
        start = EngineStart(
            self.cluster, settings.policy, options, around.table.source, tuple((now, event) for event in events)
        )
        self.scheduler.change(record_start, "training", start.document(), at=clock.today())
        for record in held.jobs:
            if record.cancel_requested_at is not None:
                self.scheduler.cancel(record.id)
        self._last_job = held.last_job
        self._ends_looked_at, self._ends_seen_until = -math.inf, began_at
        self._taken_back, self._looked_at, self._seen_until = False, -math.inf, clock.today()
        self.look_for_jobs()

    def reconcile(self, status: BackendStatus) -> None:
        """The backend has reported all that it knows; whatever was to be asked of it follows from that."""
        self.scheduler.commands.clear()
        self.scheduler.change(agents_seen, [AGENT], at=self._around.clock.today())
        reconcile(self.scheduler, status)

    def look_for_jobs(self) -> None:
        """Take in what was submitted to the store, and, at once or a moment later, what was taken back."""
        scheduler, clock = self.scheduler, self._around.clock
        if scheduler.closing:
            return
        self._look_for_reservations()
        self._taken_back = True
        arrivals: list[tuple[LiveJob, JobArrived]] = []
        records = self._around.store.read(jobs_since, self._last_job)
        waiting = [record for record in records if names_others(record.spec)]
        needs = self._around.store.read(needs_of, waiting) if waiting else {}
        for record in records:
            self._last_job = record.number
            if record.state is not JobState.QUEUED:
                continue
            try:
                job, described, deadline = self.reader.read(record)
            except InputError as error:
                scheduler.change(ledger.note_unrunnable, record.id, str(error), at=clock.today())
                continue
            event = JobArrived(described, deadline)
            if scheduler.gate.lets_in(job, event, needs.get(record.id, ())):
                arrivals.append((job, event))
        scheduler.arrive(arrivals)
        self.look_for_cancels()

    def _look_for_reservations(self) -> None:
        """Take in what was reserved, and what is not any more."""
        clock, scheduler = self._around.clock, self.scheduler
        found = {one.id: one for one in self._around.store.read(open_reservations, at=clock.today())}
        known = scheduler.engine.reservations.known
        events: list[Event] = [
            Reserved(name, one.team, here, clock.at(one.begins_at), clock.at(one.ends_at))
            for name, one in found.items()
            if name not in known
            and (here := {kind: count for kind, count in one.workers.items() if kind in self.cluster.workers})
        ]
        events += [ReservationCancelled(name) for name in known if name not in found]
        scheduler.take_in(*events)

    def look_for_cancels(self) -> None:
        """Take in what was taken back, if that may be something and the last time is not just a moment ago.

        So it is with the ends of jobs for which others wait.
        """
        clock = self._around.clock
        self._look_for_ends()
        since = clock.earliest_since(self._seen_until) - _LOOK_BACK_SECONDS
        if not self._taken_back:
            self._seen_until = clock.today()
        elif clock.seconds() - self._looked_at >= _LOOK_EVERY_SECONDS:
            self._taken_back, self._looked_at, self._seen_until = False, clock.seconds(), clock.today()
            for name in self._around.store.read(jobs_taken_back, since=since):
                self.scheduler.cancel(name)

    def _look_for_ends(self) -> None:
        clock, gate = self._around.clock, self.scheduler.gate
        since = clock.earliest_since(self._ends_seen_until) - _LOOK_BACK_SECONDS
        if not gate.needed:
            self._ends_seen_until = clock.today()
        elif clock.seconds() - self._ends_looked_at >= _LOOK_EVERY_SECONDS:
            self._ends_looked_at, self._ends_seen_until = clock.seconds(), clock.today()
            gate.others_ended(self._around.store.read(jobs_ended, since=since))

    def check(self, spec: JobDescription, team: str | None) -> None:
        """Refuse a job that could never be scheduled here. Any thread may ask."""
        rates = described_rates(spec, self.cluster, self._around.table)
        self.scheduler.quotas.refuse_too_large(spec, team)
        priority = self.scheduler.priorities.of(spec, team)
        described = engine_job("new", spec, rates, team=team, steps_left=spec.steps, priority=priority)
        self.reader.acceptance.check(described, 1.0 if isinstance(spec.deadline, datetime) else spec.deadline)

    def drain(self, workers: Sequence[tuple[str, int]], *, on: bool) -> None:
        """Let nothing run on these workers any more, or again."""
        if on:
            self.scheduler.change(drain_workers, workers, at=self._around.clock.today())
        else:
            self.scheduler.change(undrain_workers, workers)
        self.scheduler.drain(workers, on=on)

    def trim(self) -> None:
        """Keep the journal small; a decision about many jobs counts for as many entries."""
        entries = self._around.settings.journal_entries
        decisions = max(entries // max(len(self.scheduler.jobs), 1), _FEWEST_DECISIONS)
        self.scheduler.change(_trim, entries, decisions)

    def written(self, ended: frozenset[str], commands: Sequence[RunCommand]) -> list[RunCommand]:
        """What was taken is durable; returns what is to be asked of the backend.

        `ended` are jobs that turned out to have ended in the store, such as by being cancelled a moment before.
        """
        return reports.call_off(self.scheduler, commands, ended) if ended else list(commands)

    def answered(self, command: RunCommand, answer: CommandAnswer) -> bool:
        """The backend has done what it was asked; returns whether it does not know of a run that should be there."""
        stale = answer.result == "stale"
        if stale and isinstance(command, StartRun):
            self.refused(command, "stale", f"the agent has seen a newer lease of it than {command.lease}")
        if stale and isinstance(command, EndRun | HandOverRun):
            return self.scheduler.leases.holding(command.lease, command.job) is not None
        return False

    def refused(self, command: RunCommand, code: str, why: str) -> None:
        """The backend does not do what it was asked."""
        if isinstance(command, StartRun):
            reports.refused(self.scheduler, command, code, why)
        elif not isinstance(command, ForgetRun | RetireJob):
            _LOG.warning("%s: %s", command, why)


def write_all(connection: Connection, epoch: int, changes: Sequence[Change]) -> frozenset[str]:
    """Make changes of the controller of this epoch, all or none; returns the jobs that turned out to have ended."""
    newest = counters.last(connection, counters.EPOCHS)
    if newest != epoch:
        raise SupersededError(f"another controller has started on this store: epoch {newest} after {epoch}")
    results = [change(connection) for change in changes]
    reached("session.written")
    return frozenset(job for result in results if isinstance(result, ledger.EndedMeanwhile) for job in result.jobs)


def _trim(connection: Connection, entries: int, decisions: int) -> None:
    trim_journal(connection, before=last_sequence(connection) - entries)
    trim_decisions(connection, keep=decisions)
