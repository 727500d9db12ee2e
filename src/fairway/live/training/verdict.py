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


def judged(kind: OutcomeKind, *, why: str, cancelled: bool, failures: int, retries: int) -> Verdict:
    """What becomes of a job whose run ended in this way, after so many `failures` before."""
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
        return Verdict(JobState.QUEUED, Reason("WorkersLost", f"{why}; it goes on from its last checkpoint"))
    return Verdict(JobState.QUEUED, Reason("Preempted", f"{why}; it goes on from there when it is its turn"))
