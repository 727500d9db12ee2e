"""The gate before the engine: jobs that may not be scheduled yet wait here, and no policy sees them.

A job waits for those that it names (`after`, `afterok`), and is cancelled if one that had to succeed did not. A job of
an array waits while as many others of it are let in as its limit allows. What is let in stays so until it has
ended, also while it waits for workers. The jobs of a team wait while its quota has no room for the first of them. All
of it follows from the store: a controller that starts anew lets those in that have been started before, and of the
others the first ones. Jobs of a higher priority class come before those of lower ones.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fairway.engine.training.messages import JobArrived, JobResumed
from fairway.live.training import ledger
from fairway.live.training.leases import LiveJob
from fairway.store.dependencies import Need
from fairway.store.records import Reason
from fairway.store.states import JobState

if TYPE_CHECKING:
    from fairway.live.training.scheduler import LiveScheduler


_NAMED = 3
"""Jobs that a reason names."""


@dataclass(slots=True)
class _Held:
    """A job that waits, and what the engine is to be told of it."""

    job: LiveJob
    event: JobArrived | JobResumed
    needs: dict[str, Need]


class Gate:
    """The jobs of a scheduler that may not be scheduled yet, in the order in which they came."""

    def __init__(self, scheduler: LiveScheduler) -> None:
        self._scheduler = scheduler
        self._held: dict[str, _Held] = {}
        self._of_array: dict[str, set[str]] = {}
        self._needed_by: dict[str, set[str]] = {}
        self._over: dict[str, int] = {}
        self._counted: set[str] = set()
        self._due = False

    @property
    def needed(self) -> bool:
        """Whether a job waits here for another one."""
        return bool(self._needed_by)

    def lets_in(self, job: LiveJob, event: JobArrived | JobResumed, needs: Sequence[Need] = ()) -> bool:
        """Whether a job may be scheduled now; if not it waits here, says why, and comes later by itself.

        One that waits in vain for another is cancelled.
        """
        held = _Held(job, event, {need.job: need for need in needs if not need.met})
        if self._cancelled(held):
            return False
        for name in held.needs:
            self._needed_by.setdefault(name, set()).add(job.id)
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
        if job.id in self._counted:
            return
        self._counted.add(job.id)
        self._scheduler.quotas.take(job.spec, job.team)
        if job.array_id is not None:
            self._of_array.setdefault(job.array_id, set()).add(job.id)

    def ended(self, job: LiveJob | None, name: str) -> None:
        """A job has ended; others may come in its place, in a moment."""
        held = self._held.pop(name, None)
        if job is not None and name in self._counted:
            self._counted.discard(name)
            self._scheduler.quotas.give_back(job.spec, job.team)
        for needed in held.needs if held is not None else ():
            self._forget(needed, name)
        if job is not None and job.array_id is not None:
            others = self._of_array.get(job.array_id, set())
            others.discard(name)
            if not others:
                self._of_array.pop(job.array_id, None)
        if self._held:
            self._let_in_soon()
        else:  # no job is before those that come next
            self._over.clear()

    def others_ended(self, states: Mapping[str, JobState]) -> None:
        """Jobs have ended in the store, in these states; those that waited for them do so no more."""
        for needed in states.keys() & self._needed_by.keys():
            for name in self._needed_by.pop(needed, ()):
                held = self._held[name]
                held.needs[needed] = need = replace(held.needs[needed], state=states[needed])
                if need.met:
                    del held.needs[needed]
                self._cancelled(held)
            self._let_in_soon()

    def _cancelled(self, held: _Held) -> bool:
        """Whether a job waits in vain; it is cancelled then."""
        hopeless = next((need for need in held.needs.values() if need.hopeless), None)
        if hopeless is None:
            return False
        scheduler, name = self._scheduler, held.job.id
        why = f"it was to run after {hopeless.job} had succeeded, which {hopeless.state.value}"
        why = f"{why.removesuffix('cancelled')}was cancelled" if hopeless.state is JobState.CANCELLED else why
        scheduler.change(ledger.note_hopeless, name, why, at=scheduler.clock.today())
        scheduler.retire(name)
        return True

    def _forget(self, needed: str, name: str) -> None:
        """A job waits for another no more."""
        others = self._needed_by.get(needed, set())
        others.discard(name)
        if not others:
            self._needed_by.pop(needed, None)

    def _let_in_soon(self) -> None:
        if not self._due:
            self._due = True
            self._scheduler.at(self._scheduler.clock.now(), self._let_in)

    def _let_in(self) -> None:
        """Hand the engine all that may be scheduled now."""
        self._due = False
        scheduler = self._scheduler
        if scheduler.closing:
            return
        self._over.clear()
        free: list[tuple[LiveJob, JobArrived | JobResumed]] = []
        by_class = sorted(self._held.items(), key=lambda item: -item[1].event.job.priority)  # else in their order
        for name, held in by_class:
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
        if held.needs:
            return Reason("WaitingForJobs", f"waits for {_listed(held.needs.values())}")
        job, array = held.job, held.job.spec.array
        limit = None if array is None else array.limit
        if job.array_id is not None and limit is not None and len(self._of_array.get(job.array_id, ())) >= limit:
            others = "another job of its array is" if limit == 1 else f"{limit} other jobs of its array are"
            return Reason("ArrayLimit", f"{others} scheduled, as many as may be at a time (%{limit})")
        return self._over_quota(job, held.event.job.priority)

    def _over_quota(self, job: LiveJob, priority: int) -> Reason | None:
        """Why a job has to wait for its team's quota: there is no room, or another one is before it."""
        quotas = self._scheduler.quotas
        teams = quotas.teams_of(job.team)
        before = next((team for team in teams if self._over.get(team, priority - 1) >= priority), None)
        if before is not None:
            return Reason("OverQuota", f"other jobs of team '{before}' are before it and wait for room in its quota")
        over = quotas.over(job.spec, job.team)
        if over is None:
            return None
        self._over[over[0]] = max(priority, self._over.get(over[0], priority))
        return Reason("OverQuota", over[1])


def _listed(needs: Collection[Need]) -> str:
    """The first of the jobs that are waited for, and how many more there are."""
    first = [f"{need.job} {'to succeed' if need.succeeded else 'to end'}" for need in list(needs)[:_NAMED]]
    more = len(needs) - len(first)
    return ", ".join(first) + (f" and {more} more" if more else "")
