"""Shortest job first: whole gangs to the jobs that will be done soonest.

Decides from the seconds that each job has left on each type, steps_left / rate. A job that finds no room is skipped:
smaller ones may overtake it. With space sharing, the skipped jobs may then join running ones, shortest first, where two
together do more than 1.5 times the work of one alone.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fairway.allocate.allocation import Allocation
from fairway.allocate.arrays import FloatArray
from fairway.allocate.gangs.whole import WholeGangs, running
from fairway.allocate.kernels.sharing import Sharing
from fairway.allocate.policy import Policy
from fairway.allocate.problem import Problem


@dataclass(frozen=True, slots=True)
class ShortestJobFirst(Policy):
    """Start, again and again, the job that will be done soonest on a type with room; ties by arrival.

    The agnostic variant orders the jobs by their mean rate and draws the type, uniformly among those with room; a job
    that runs already stays on its type while there is room. The objective is the total of the seconds left of the jobs
    that run, each at its true rate; fewer of them are better only when the same number runs.
    """

    name: ClassVar[str] = "shortest-job-first"
    whole_jobs: ClassVar[bool] = True
    agnostic: bool = False
    space_sharing: bool = False

    def allocate(self, problem: Problem) -> Allocation:
        """Start jobs, shortest first, until no waiting one finds room."""
        steps = problem.needs_steps(self.name)
        view = problem.agnostic() if self.agnostic else problem
        seconds = np.divide(steps[:, None], view.rates, out=np.full_like(view.rates, np.inf), where=view.runnable)
        shortest = seconds.min(axis=1, initial=np.inf)
        gangs = WholeGangs(problem)
        if self.agnostic:
            self._start_by_mean(gangs, shortest)
        else:
            self._start_by_type(gangs, seconds)
        if self.space_sharing:
            sharing = Sharing(view)
            for job in np.argsort(shortest, kind="stable").tolist():
                if job not in gangs:
                    gangs.take_in(job, sharing)
        decided = gangs.allocation(self.name, sense="min")
        busy = decided.throughputs > 0
        return replace(decided, objective=float((steps[busy] / decided.throughputs[busy]).sum()))

    def _start_by_type(self, gangs: WholeGangs, seconds: FloatArray) -> None:
        # Room only shrinks, so one pass over all (job, type) finds the same as searching the shortest again and again.
        types = seconds.shape[1]
        left, sizes = gangs.free.tolist(), gangs.problem.scale_factors.tolist()
        for entry in np.argsort(seconds, axis=None, kind="stable")[: np.count_nonzero(np.isfinite(seconds))].tolist():
            job, column = divmod(entry, types)
            if sizes[job] <= left[column] and job not in gangs:
                gangs.give(job, column)
                left[column] -= sizes[job]
                if not any(left):
                    break

    def _start_by_mean(self, gangs: WholeGangs, shortest: FloatArray) -> None:
        draw = random.Random(gangs.problem.seed)
        before = {job: column for members, column in running(gangs.problem, self.name) for job in members}
        for job in np.argsort(shortest, kind="stable").tolist():
            room = gangs.room(job)
            if room:
                gangs.give(job, before[job] if before.get(job) in room else draw.choice(room))
