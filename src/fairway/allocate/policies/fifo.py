"""First in, first out: whole gangs in order of arrival, none overtakes another.

Decides from the order of arrival, the rates and the free workers (Gavel §4.2, as the greedy of its implementation). The
first job that could run in this cluster but finds no room now stops the queue; a job that can run nowhere is passed
over. With space sharing, a job without room may still join a running one, if the two together do more than 1.5 times
the work of one alone; only where there is no such host does it stop the queue.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fairway.allocate.allocation import Allocation
from fairway.allocate.gangs.whole import WholeGangs
from fairway.allocate.kernels.scores import fifo_score
from fairway.allocate.kernels.sharing import Sharing
from fairway.allocate.policies.common import allocate_by_sum
from fairway.allocate.policy import Policy
from fairway.allocate.problem import Problem

_NO_RATE = 1e-300
"""In place of 0, for jobs that run nowhere and take no part."""


@dataclass(frozen=True, slots=True)
class Fifo(Policy):
    """Serve the jobs in order of arrival, each on the fastest type with room.

    The agnostic variant draws the type, uniformly among those with room, and a running job then keeps it (the aware one
    decides anew each time). The objective is sum_i (n - i) * rate_i / fastest rate_i. With `relaxed`, that sum is
    maximised, the paper's form: earlier jobs count for more, but do not come first at any price.
    """

    name: ClassVar[str] = "fifo"
    agnostic: bool = False
    space_sharing: bool = False
    relaxed: bool = False

    @property
    def whole_jobs(self) -> bool:
        """Whether jobs get whole gangs; the paper's form has shares of time."""
        return not self.relaxed

    def allocate(self, problem: Problem) -> Allocation:
        """Serve the queue until its head finds no room."""
        if self.relaxed:
            return self._relaxed(problem)
        decided = self._serve(problem).allocation(self.name)
        return replace(decided, objective=fifo_score(decided))

    def _relaxed(self, problem: Problem) -> Allocation:
        view = problem.agnostic() if self.agnostic else problem
        places = len(problem) - np.arange(len(problem))
        worth = places / np.maximum(view.fastest, _NO_RATE)
        return allocate_by_sum(self.name, problem, view, space_sharing=self.space_sharing, per_step=worth)

    def _serve(self, problem: Problem) -> WholeGangs:
        gangs = WholeGangs(problem)
        sharing = Sharing(problem.agnostic() if self.agnostic else problem) if self.space_sharing else None
        draw = random.Random(problem.seed)
        if self.agnostic:
            gangs.keep(self.name, sharing)
        for job in np.flatnonzero(problem.can_run).tolist():
            if job in gangs:
                continue
            room = gangs.room(job)
            if room:
                rates = problem.rates[job]
                gangs.give(job, draw.choice(room) if self.agnostic else max(room, key=lambda column: rates[column]))
            elif sharing is None or not gangs.take_in(job, sharing):
                break
        return gangs
