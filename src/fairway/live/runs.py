"""What runs report, and what follows from it for their jobs, for the store and for the engine.

A report may come late, twice, or about a run that is not wanted any more. What has ended once stays ended, and the
backend is told to forget a run only after the store knows how it ended.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fairway.engine.training_messages import JobFailed, JobFinished, StepsCounted
from fairway.live import ledger
from fairway.live.assignments import LiveJob, LiveLease
from fairway.live.local import agent_messages
from fairway.live.local.process import FAILED_TO_START, LOST, STOPPED_EARLY
from fairway.live.orders import close_if_over
from fairway.live.verdict import DECLINED, DECLINED_WAIT_SECONDS, Verdict, judged
from fairway.store.states import ACTIVE, JobState

if TYPE_CHECKING:
    from fairway.live.scheduler import LiveScheduler

_THE_JOBS_FAULT = {"bad-input", "cannot-start"}
"""Codes of refusals that repeat themselves however often the job is started."""


def happened(scheduler: LiveScheduler, event: Mapping[str, Any]) -> None:
    """Something happened to a run."""
    number, name = event["lease"], event["job"]
    if event["event"] in {"exited", "failed-to-start"}:
        ended(scheduler, number, name, event)
        return
    lease, job = scheduler.leases.holding(number, name), scheduler.jobs.get(name)
    if lease is None or job is None:
        return
    match event["event"]:
        case "started":
            running(scheduler, lease, job, started_at=event["started"])
        case "steps":
            told(lease, job, number, event)
        case "checkpointed":
            saved(scheduler, job, event["checkpoint_step"])


def told(lease: LiveLease, job: LiveJob, number: int, said: Mapping[str, Any]) -> None:
    """A job has told how far it is, and how fast it goes; how fast it went under a lease of before does not count."""
    job.steps_done, job.reported = said["steps"], False
    job.steps_per_second = said.get("steps_per_second") if number == lease.number else None


def saved(scheduler: LiveScheduler, job: LiveJob, steps: float | None) -> None:
    """A job has saved a checkpoint after so many steps."""
    if steps is not None and steps > job.steps_saved:
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


def ended(scheduler: LiveScheduler, number: int, name: str, outcome: Mapping[str, Any]) -> None:
    """A run is over; `outcome` says how."""
    scheduler.commands.append(agent_messages.Forget(number, name))
    lease, job = scheduler.leases.holding(number, name), scheduler.jobs.get(name)
    if lease is None:
        if job is None:
            scheduler.retire(name)
        return
    at = scheduler.clock.today()
    ended_at = min(outcome.get("ended") or at, at)
    run = lease.runs[name]
    if job is None:  # it has ended before, and this run was only waited for
        run.state = "ended"
        close_if_over(scheduler, lease, ended_at, "its job has ended")
        scheduler.retire(name)
        return
    kind, started = outcome["kind"], outcome.get("started")
    if run.state == "planned" and started is not None:  # it was too quick for anybody to see it run
        running(scheduler, lease, job, started_at=started)
    ran, run.state = run.state == "running", "ended"
    if not ran and scheduler.leases.of_job(name):  # it still stops under an older lease, which decides its fate
        close_if_over(scheduler, lease, ended_at, outcome.get("reason"))
        if scheduler.lease_of(name) == lease.number:
            _rest(scheduler, job, DECLINED_WAIT_SECONDS)
        return
    saved(scheduler, job, outcome.get("checkpoint_step"))
    why, retries = outcome.get("reason") or kind, job.spec.retries
    verdict = judged(kind, why=why, cancelled=job.cancelled, failures=job.failures, retries=retries)
    job.failures += verdict.failed
    scheduler.statistics.failures_total += verdict.failed
    scheduler.unexplain(name)
    scheduler.change(ledger.note_end, name, verdict, outcome.get("code"), ended_at=ended_at, at=at)
    close_if_over(scheduler, lease, ended_at, verdict.reason.sentence)
    if verdict.state in ACTIVE:
        _go_back(scheduler, job, lease, verdict)
        return
    if name in scheduler.engine.jobs:
        done = verdict.state is JobState.SUCCEEDED
        time = scheduler.time()
        scheduler.tell(JobFinished(time, name) if done else JobFailed(time, name))
    job.waiting = None
    scheduler.retire(name)


def _go_back(scheduler: LiveScheduler, job: LiveJob, lease: LiveLease, verdict: Verdict) -> None:
    """Let a job wait for its next turn, at its last checkpoint."""
    job.steps_done, job.reported = job.steps_saved, True
    if job.id not in scheduler.engine.jobs:
        return
    left = job.steps_left(job.steps_saved)
    if left is not None:
        scheduler.tell(StepsCounted(scheduler.time(), job.id, left))
    if verdict.wait_seconds:
        _rest(scheduler, job, verdict.wait_seconds)
    elif scheduler.lease_of(job.id) == lease.number:
        scheduler.tell(JobFailed(scheduler.time(), job.id, retry=True))


def _rest(scheduler: LiveScheduler, job: LiveJob, seconds: float) -> None:
    """Take a job out of the engine for some seconds."""
    job.waiting = scheduler.engine.resumed(job.id)
    scheduler.tell(JobFailed(scheduler.time(), job.id))
    scheduler.wait_before(job, seconds)


def refused(scheduler: LiveScheduler, command: agent_messages.Start, code: str, why: str) -> None:
    """The backend does not run a job; what it said is how the run ended."""
    kind = FAILED_TO_START if code in _THE_JOBS_FAULT else DECLINED
    ended(scheduler, command.lease, command.job, {"kind": kind, "reason": why})


def never_began(scheduler: LiveScheduler, lease: LiveLease, name: str) -> None:
    """A run was called off before the backend had heard of it."""
    ended(scheduler, lease.number, name, {"kind": STOPPED_EARLY, "reason": "it had not started"})


def lost(scheduler: LiveScheduler, lease: LiveLease, name: str) -> None:
    """A run that should be is not there any more."""
    ended(scheduler, lease.number, name, {"kind": LOST, "reason": "the agent does not know of it any more"})


def call_off(
    scheduler: LiveScheduler, commands: Sequence[agent_messages.Command], jobs: Collection[str]
) -> list[agent_messages.Command]:
    """Jobs turned out to have ended, while commands were on their way; returns those that still make sense."""
    for name in jobs:
        scheduler.cancel(name)
    kept: list[agent_messages.Command] = []
    for command in commands:
        if not isinstance(command, agent_messages.Start) or command.job not in jobs:
            kept.append(command)
            continue
        lease = scheduler.leases.holding(command.lease, command.job)
        if lease is not None:
            never_began(scheduler, lease, command.job)
    return kept
