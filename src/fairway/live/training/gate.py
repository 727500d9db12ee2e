"""The gate before the engine: jobs that may not be scheduled yet wait here, and no policy sees them.

A job of an array waits while as many others of it are let in as its limit allows. What is let in stays so until it has
ended, also while it waits for workers. All of it follows from the store: a controller that starts anew lets those in
that have been started before, and of the others the first ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairway.engine.training.messages import JobArrived, JobResumed
from fairway.live.training.leases import LiveJob
from fairway.store.records import Reason

if TYPE_CHECKING:
    from fairway.live.training.scheduler import LiveScheduler


@dataclass(slots=True)
class _Held:
    """A job that waits, and what the engine is to be told of it."""

    job: LiveJob
    event: JobArrived | JobResumed


class Gate:
    """The jobs of a scheduler that may not be scheduled yet, in the order in which they came."""

    def __init__(self, scheduler: LiveScheduler) -> None:
        self._scheduler = scheduler
        self._held: dict[str, _Held] = {}
        self._of_array: dict[str, set[str]] = {}
        self._due = False

    def lets_in(self, job: LiveJob, event: JobArrived | JobResumed) -> bool:
        """Whether a job may be scheduled now; if not it waits here, says why, and comes later by itself."""
        held = _Held(job, event)
        why = self._why(held)
        if why is None:
            self.count(job)
            return True
        self._scheduler.jobs[job.id] = job
        self._held[job.id] = held
        self._scheduler.explain({job.id: why})
        return False

    def count(self, job: LiveJob) -> None:
        """A job is let in, whatever its limits."""
        if job.array_id is not None:
            self._of_array.setdefault(job.array_id, set()).add(job.id)

    def ended(self, job: LiveJob | None, name: str) -> None:
        """A job has ended; others may come in its place, in a moment."""
        self._held.pop(name, None)
        if job is not None and job.array_id is not None:
            others = self._of_array.get(job.array_id, set())
            others.discard(name)
            if not others:
                self._of_array.pop(job.array_id, None)
        if self._held and not self._due:
            self._due = True
            self._scheduler.at(self._scheduler.clock.now(), self._let_in)

    def _let_in(self) -> None:
        """Hand the engine all that may be scheduled now."""
        self._due = False
        scheduler = self._scheduler
        if scheduler.closing:
            return
        free: list[tuple[LiveJob, JobArrived | JobResumed]] = []
        for name, held in list(self._held.items()):
            why = self._why(held)
            if why is None:
                del self._held[name]
                self.count(held.job)
                scheduler.unexplain(name)
                free.append((held.job, held.event))
            else:
                scheduler.explain({name: why})
        scheduler.arrive(free)

    def _why(self, held: _Held) -> Reason | None:
        """Why a job has to wait; None if it need not."""
        job, array = held.job, held.job.spec.array
        limit = None if array is None else array.limit
        if job.array_id is not None and limit is not None and len(self._of_array.get(job.array_id, ())) >= limit:
            others = "another job of its array is" if limit == 1 else f"{limit} other jobs of its array are"
            return Reason("ArrayLimit", f"{others} scheduled, as many as may be at a time (%{limit})")
        return None
