"""What the agent sees of a run while it lives, which it need not remember: its keeper, and how far the job is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fairway.live.backend.channel import RankProgress
from fairway.live.backend.reports import CheckpointSaved, RunProgressed
from fairway.live.local.agent.keepers import Spawned
from fairway.live.local.agent.state import RunRecord
from fairway.live.local.outcomes import checkpoint_step
from fairway.live.local.run_files import RunFiles

_OVERDUE_SECONDS = 10.0
"""How much longer than a job was given to save and stop its keeper may take, before both are killed."""


@dataclass(slots=True)
class RunWatch:
    """One run. `kept` says that a keeper has claimed it, `looked` when it was last looked at closely.

    `ends` is when its lease ends, on the monotonic clock, as of the moment when the agent learnt of that end: a lease
    is neither longer nor shorter because the system clock is set meanwhile.

    `spawned` is the keeper's process, if this agent has started it, and `overdue_at` when it should have ended the run.
    Steps and rates are those that were reported last.
    """

    files: RunFiles
    ends: float | None = None
    spawned: Spawned | None = None
    overdue_at: float | None = None
    kept: bool = False
    looked: float = 0.0
    steps: int | None = None
    checkpoint_step: int | None = None
    steps_per_second: float | None = None

    def progress(self, run: RunRecord, now: float) -> Iterator[CheckpointSaved | RunProgressed]:
        """What is new about how far the run is."""
        told = self.files.progress(run.ranks)
        if told is None:
            return
        steps, saved, rate = sum(one.step for one in told), checkpoint_step(told), _rate(told, run.lease)
        if saved is not None and saved > sum(one.since for one in told) and saved != self.checkpoint_step:
            seconds = max(one.checkpoint_seconds for one in told)
            yield CheckpointSaved(run.lease, run.job, now, saved, seconds)
        self.checkpoint_step = saved
        if steps != self.steps or rate != self.steps_per_second:
            self.steps, self.steps_per_second = steps, rate
            yield RunProgressed(run.lease, run.job, now, steps, rate, saved)

    def is_overdue(self, now: float) -> bool:
        """Whether the keeper, which is to end the run since this was first asked, is late by far: stopped, or stuck."""
        if self.overdue_at is None:
            order = self.files.order()
            seconds = 0.0 if order is None else order.checkpoint_seconds + order.grace_seconds
            self.overdue_at = now + seconds + _OVERDUE_SECONDS
        return now >= self.overdue_at

    @property
    def wants_to_save(self) -> bool:
        """Whether the job, once asked to stop, is to save before."""
        lease = self.files.lease()
        return lease is None or lease.stop != "now"


def _rate(told: Sequence[RankProgress], lease: int) -> float | None:
    """Steps per second of the whole gang under its present lease."""
    rates = [one.steps_per_second for one in told if one.steps_per_second is not None and one.lease in {0, lease}]
    return sum(rates) if len(rates) == len(told) else None
