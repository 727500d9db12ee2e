"""The states of a job, and which may follow which.

    queued ──▶ running ──▶ succeeded, failed, cancelled
      ▲           │  └──▶ preempting ──▶ the same three
      └───────────┴────────────┘

A running job goes back to the queue when an attempt failed that may be repeated, or when its workers are gone; one that
is being preempted when it has stopped.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class JobState(StrEnum):
    """Where a job stands."""

    QUEUED = "queued"
    RUNNING = "running"
    PREEMPTING = "preempting"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


_ENDS = frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED})

FOLLOWING: Mapping[JobState, frozenset[JobState]] = {
    # A queued job fails without having run when it turns out that it never can.
    JobState.QUEUED: frozenset({JobState.RUNNING, JobState.FAILED, JobState.CANCELLED}),
    JobState.RUNNING: _ENDS | {JobState.PREEMPTING, JobState.QUEUED},
    # It may come to its end while it is asked to stop.
    JobState.PREEMPTING: _ENDS | {JobState.QUEUED},
    JobState.SUCCEEDED: frozenset(),
    JobState.FAILED: frozenset(),
    JobState.CANCELLED: frozenset(),
}

ACTIVE = frozenset(state for state, following in FOLLOWING.items() if following)
"""States of jobs that a scheduler still has to do with."""

HOLDING = frozenset({JobState.RUNNING, JobState.PREEMPTING})
"""States of jobs whose processes run."""
