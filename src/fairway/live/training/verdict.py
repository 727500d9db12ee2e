"""Judges how a run ended: what becomes of its job, and how long it has to wait before it is tried again.

A failure counts against the job's retries, and each one doubles the wait. An end that was not the job's own doing, such
as a preemption or the loss of its workers, does not count.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairway.back_off import BackOff
from fairway.live.backend.status import OutcomeKind
from fairway.store.records import Reason
from fairway.store.states import JobState

BACK_OFF = BackOff(1.0, 300.0)
"""How long a job waits after so many failures of its own."""

DECLINED_WAIT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """The state that the job goes to, why, and the seconds that it waits before it may run again.

    `failed` says that it counts as a failure of the job.
    """

    state: JobState
    reason: Reason
    wait_seconds: float = 0.0
    failed: bool = False


def lost_work(*, resumes: bool, steps_done: float | None, steps_saved: float, ran_for: float | None) -> str | None:
    """What a job lost whose run ended early, in words; None if nothing.

    It is back at `steps_saved`, those of its last checkpoint. A job that does not `resumes` from one is back at zero,
    and what is known of its work is that it `ran_for` so many seconds.
    """
    if not resumes:
        if ran_for is None:
            return None
        return f"it reported no checkpoint, so {ran_for:,.0f} s of work are lost and it begins from zero"
    steps = 0.0 if steps_done is None else steps_done - steps_saved
    return f"{steps:,.0f} step{'' if steps == 1 else 's'} since its last checkpoint are lost" if steps > 0 else None


def judged(
    kind: OutcomeKind, *, why: str, cancelled: bool, failures: int, retries: int, loss: str | None = None
) -> Verdict:
    """What becomes of a job whose run ended in this way, after so many `failures` before; `loss` is what it lost."""
    if kind is OutcomeKind.FINISHED:
        return Verdict(JobState.SUCCEEDED, Reason("Succeeded", "all of its processes ended with exit code 0"))
    if cancelled:
        return Verdict(JobState.CANCELLED, Reason("Cancelled", "cancelled while it ran"))
    if kind in {OutcomeKind.FAILED, OutcomeKind.FAILED_TO_START}:
        count = failures + 1
        if count > retries:
            times = "" if retries == 0 else f", after {retries} {'retry' if retries == 1 else 'retries'}"
            return Verdict(JobState.FAILED, Reason("Failed", f"{why}{times}"), failed=True)
        wait = BACK_OFF.seconds(count)
        sentence = f"{why}; failure {count} of at most {retries + 1}, tried again after {wait:g} s"
        return Verdict(JobState.QUEUED, Reason("BackOff", sentence), wait, failed=True)
    if kind is OutcomeKind.DECLINED:
        wait = DECLINED_WAIT_SECONDS
        return Verdict(JobState.QUEUED, Reason("BackOff", f"{why}; tried again after {wait:g} s"), wait)
    if kind is OutcomeKind.LOST:
        return Verdict(
            JobState.QUEUED, Reason("WorkersLost", f"{why}; {loss or 'it goes on from its last checkpoint'}")
        )
    goes_on = loss or "it goes on from there when it is its turn"
    return Verdict(JobState.QUEUED, Reason("Preempted", f"{why}; {goes_on}"))
