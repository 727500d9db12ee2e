"""Finds the job about which a policy cannot decide, when a decision was given up, and sets it aside.

The last decision stays in force meanwhile, so the jobs that it was about run on. The reason is taken to lie with the
newcomers: the jobs about which nothing was decided before. If there is one, it is set aside and says why. If there are
several, the newer half of them is held back, and the next round tries to decide about the others. When a decision comes
about, all who were held back are let in again; so of n newcomers the one that is to blame is found within about
log2(n)² / 2 + 2 log2(n) rounds, and the others wait no longer than that. If there is no newcomer, nothing can be set
aside: the next round tries again, and the system counts as unhealthy until a decision comes about.

A job that is set aside stays so until the next start of the controller, which tries it again; its owner can cancel it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from fairway.engine.training.messages import Undecided
from fairway.live.training import ledger
from fairway.store.records import Reason

if TYPE_CHECKING:
    from fairway.live.training.scheduler import LiveScheduler

_LOG = logging.getLogger(__name__)

_HELD_BACK = Reason(
    "HeldBack",
    "the last decision was given up, and one of the newest jobs may be why; it is let in again soon",
)


class Suspects:
    """The jobs of a scheduler that are kept from the engine because of decisions that were given up."""

    def __init__(self, scheduler: LiveScheduler) -> None:
        self._scheduler = scheduler
        self._held_back: list[str] = []
        self._to_blame: dict[str, str] = {}

    def undecided(self, command: Undecided) -> None:
        """A decision was given up."""
        scheduler = self._scheduler
        scheduler.statistics.undecided_total += 1
        scheduler.statistics.undecided = command.reason
        there = [job for job in command.newcomers if job in scheduler.engine.jobs and job in scheduler.jobs]
        _LOG.error("no decision, the last one stays in force: %s; %d new jobs", command.reason, len(there))
        if len(there) == 1:
            self._set_aside(there[0], command.reason)
            return
        for job in there[len(there) - len(there) // 2 :]:
            scheduler.take_out(job)
            self._held_back.append(job)
            scheduler.explain({job: _HELD_BACK})

    def decided(self) -> None:
        """A decision has come about, or none is needed: those that were held back may be in the next."""
        self._scheduler.statistics.undecided = None
        held_back, self._held_back = self._held_back, []
        for job in held_back:
            self._scheduler.unexplain(job)
            self._scheduler.bring_back(job)

    def explain(self, job: str) -> None:
        """Say again why a job is set aside, if it is, since something else was written down about it."""
        if job in self._to_blame:
            scheduler = self._scheduler
            scheduler.change(ledger.note_set_aside, job, self._to_blame[job], at=scheduler.clock.today())

    def _set_aside(self, job: str, why: str) -> None:
        scheduler = self._scheduler
        _LOG.error("job '%s' is set aside: no decision comes about with it", job)
        scheduler.take_out(job)
        scheduler.jobs[job].waiting = None
        scheduler.set_aside.add(job)
        self._to_blame[job] = f"set aside, since no decision comes about with it: {why}; change it and submit it again"
        self.explain(job)
