"""What runs report, and what follows from it for their jobs, for the store and for the engine.

A report may come late, twice, or about a run that is not wanted any more. What has ended once stays ended, and the
backend is asked to forget a run only after the store knows how it ended.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from fairway.engine.training.messages import Event, JobFailed, JobFinished, StepsCounted
from fairway.live.backend.answers import Refusal
from fairway.live.backend.commands import ForgetRun, RunCommand, StartRun
from fairway.live.backend.reports import CheckpointSaved, RunEnded, RunProgressed, RunReport, RunStarted
from fairway.live.backend.status import OutcomeKind, RunOutcome
from fairway.live.training import ledger
from fairway.live.training.commands import close_if_over
from fairway.live.training.leases import LiveJob, LiveLease
from fairway.live.training.verdict import DECLINED_WAIT_SECONDS, Verdict, judged, lost_work
from fairway.store.states import ACTIVE, JobState

if TYPE_CHECKING:
    from fairway.live.training.scheduler import LiveScheduler

_THE_JOBS_FAULT = {Refusal.BAD_INPUT, Refusal.CANNOT_START}
"""Codes of refusals that repeat themselves however often the job is started."""


def happened(scheduler: LiveScheduler, report: RunReport) -> None:
    """Something happened to a run."""
    number, name = report.lease, report.job
    if isinstance(report, RunEnded):
        ended(scheduler, number, name, report.outcome)
        return
    lease, job = scheduler.leases.holding(number, name), scheduler.jobs.get(name)
    if lease is None or job is None:
        return
    match report:
        case RunStarted():
            running(scheduler, lease, job, started_at=report.started)
        case RunProgressed():
            progressed(lease, job, number, report.steps, report.steps_per_second)
        case CheckpointSaved():
            saved(scheduler, job, report.checkpoint_step)


def progressed(lease: LiveLease, job: LiveJob, number: int, steps: int, steps_per_second: float | None) -> None:
    """A job has reported how far it is, and how fast it goes; its speed under a lease of before does not count."""
    job.steps_done, job.reported, job.resumes = steps, False, True
    job.steps_per_second = steps_per_second if number == lease.number else None


def saved(scheduler: LiveScheduler, job: LiveJob, steps: float | None) -> None:
    """A job has saved a checkpoint after so many steps."""
    if steps is None:
        return
    job.resumes = True
    if steps > job.steps_saved:
        job.steps_saved = steps
        left = job.steps_left(steps)
        if left is not None:
            scheduler.change(ledger.note_checkpoint, job.id, left, at=scheduler.clock.today())


def running(scheduler: LiveScheduler, lease: LiveLease, job: LiveJob, *, started_at: float) -> None:
    """The processes of a job run."""
    run = lease.runs[job.id]
    if run.state != "planned":
        return
    run.state = "running"
    scheduler.statistics.restarts_total += job.attempts > 0
    job.attempts += 1
    job.steps_per_second = None
    at = scheduler.clock.today()
    holder = lease.number if lease.follows is None else lease.follows  # in the store, that one has the workers
    scheduler.change(ledger.note_running, job.id, holder, started_at=started_at, at=at)
    if lease.revoked and not job.cancelled:
        scheduler.change(ledger.note_preempting, [job.id], at=at)


def ended(scheduler: LiveScheduler, number: int, name: str, outcome: RunOutcome) -> None:
    """A run is over; `outcome` says how."""
    scheduler.commands.append(ForgetRun(number, name))
    lease, job = scheduler.leases.holding(number, name), scheduler.jobs.get(name)
    if lease is None:
        if job is None:
            scheduler.retire(name)
        return
    at = scheduler.clock.today()
    ended_at = min(outcome.ended or at, at)
    run = lease.runs[name]
    if job is None:  # it has ended before, and this run was only waited for
        run.state = "ended"
        close_if_over(scheduler, lease, ended_at, "its job has ended")
        scheduler.retire(name)
        return
    if run.state == "planned" and outcome.started is not None:  # it ended before a report said that it ran
        running(scheduler, lease, job, started_at=outcome.started)
    ran, run.state = run.state == "running", "ended"
    if not ran and scheduler.leases.of_job(name):  # it still stops under an older lease, which decides its fate
        close_if_over(scheduler, lease, ended_at, outcome.reason)
        if scheduler.lease_of(name) == lease.number:
            _rest(scheduler, job, DECLINED_WAIT_SECONDS)
        return
    saved(scheduler, job, outcome.checkpoint_step)
    why, retries = outcome.reason or outcome.kind, job.spec.retries
    ran_for = None if outcome.started is None else max(ended_at - outcome.started, 0.0)
    loss = lost_work(resumes=job.resumes, steps_done=outcome.steps, steps_saved=job.steps_saved, ran_for=ran_for)
    verdict = judged(outcome.kind, why=why, cancelled=job.cancelled, failures=job.failures, retries=retries, loss=loss)
    job.failures += verdict.failed
    scheduler.statistics.failures_total += verdict.failed
    scheduler.unexplain(name)
    scheduler.change(ledger.note_end, name, verdict, outcome.code, ended_at=ended_at, at=at)
    close_if_over(scheduler, lease, ended_at, verdict.reason.sentence)
    if verdict.state in ACTIVE:
        _go_back(scheduler, job, lease, verdict)
        scheduler.suspects.explain(name)
        return
    if name in scheduler.engine.jobs:
        scheduler.take_in(JobFinished(name) if verdict.state is JobState.SUCCEEDED else JobFailed(name))
    job.waiting = None
    scheduler.retire(name)


def _go_back(scheduler: LiveScheduler, job: LiveJob, lease: LiveLease, verdict: Verdict) -> None:
    """Let a job wait for its next turn, at its last checkpoint."""
    job.steps_done, job.reported = job.steps_saved, True
    if job.id not in scheduler.engine.jobs:
        return
    left = job.steps_left(job.steps_saved)
    events: list[Event] = [] if left is None else [StepsCounted(job.id, left)]
    if not verdict.wait_seconds and scheduler.lease_of(job.id) == lease.number:
        events.append(JobFailed(job.id, retry=True))
    scheduler.take_in(*events)
    if verdict.wait_seconds:
        _rest(scheduler, job, verdict.wait_seconds)


def _rest(scheduler: LiveScheduler, job: LiveJob, seconds: float) -> None:
    """Take a job out of the engine for some seconds."""
    scheduler.take_out(job.id)
    scheduler.wait_before(job, seconds)


def refused(scheduler: LiveScheduler, command: StartRun, code: str, why: str) -> None:
    """The backend does not run a job; what it said is how the run ended."""
    kind = OutcomeKind.FAILED_TO_START if code in _THE_JOBS_FAULT else OutcomeKind.DECLINED
    ended(scheduler, command.lease, command.job, RunOutcome(kind, reason=why))


def never_began(scheduler: LiveScheduler, lease: LiveLease, name: str) -> None:
    """A run was called off before the backend had heard of it."""
    ended(scheduler, lease.number, name, RunOutcome(OutcomeKind.STOPPED, reason="it had not started"))


def lost(scheduler: LiveScheduler, lease: LiveLease, name: str) -> None:
    """A run that should be is not there any more."""
    ended(scheduler, lease.number, name, RunOutcome(OutcomeKind.LOST, reason="the agent does not know of it any more"))


def call_off(scheduler: LiveScheduler, commands: Sequence[RunCommand], jobs: Collection[str]) -> list[RunCommand]:
    """Jobs turned out to have ended, while commands were on their way; returns those that still make sense."""
    for name in jobs:
        scheduler.cancel(name)
    kept: list[RunCommand] = []
    for command in commands:
        if not isinstance(command, StartRun) or command.job not in jobs:
            kept.append(command)
            continue
        lease = scheduler.leases.holding(command.lease, command.job)
        if lease is not None:
            never_began(scheduler, lease, command.job)
    return kept
