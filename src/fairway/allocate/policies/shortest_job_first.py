"""Shortest job first: whole gangs to the jobs that could be done soonest.

Decides from the seconds that each job has left where it is fastest, min_j steps_left / rate_j: in this order, jobs run
that find room. A job that finds none is skipped: smaller ones may overtake it. Where each of them runs is another
question, as a job that is as fast anywhere should not hold a worker that others need: jobs of one size divide their
workers such that the sum of their slow-downs, fastest rate / rate, is least. With space sharing, the skipped jobs may
then join running ones, shortest first, where two together do more than 1.5 times the work of one alone.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fairway.allocate.allocation import Allocation
from fairway.allocate.arrays import FloatArray
from fairway.allocate.gangs.whole import ROUNDING, WholeGangs, running
from fairway.allocate.kernels.sharing import Sharing
from fairway.allocate.kernels.transport import cheapest_transport
from fairway.allocate.policy import Policy
from fairway.allocate.problem import Problem

_STAY = 1e-3
"""By so much slow-down, a job is better placed where it runs already."""


@dataclass(frozen=True, slots=True)
class ShortestJobFirst(Policy):
    """Start, again and again, the job that could be done soonest and finds room, and place them well; ties by arrival.

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
            self._start_by_type(gangs, seconds, shortest)
        if self.space_sharing:
            sharing = Sharing(view)
            for job in np.argsort(shortest, kind="stable").tolist():
                if job not in gangs:
                    gangs.take_in(job, sharing)
        decided = gangs.allocation(self.name, sense="min")
        busy = decided.throughputs > 0
        return replace(decided, objective=float((steps[busy] / decided.throughputs[busy]).sum()))

    def _start_by_type(self, gangs: WholeGangs, seconds: FloatArray, shortest: FloatArray) -> None:
        problem, left, placed = gangs.problem, gangs.free.copy(), dict[int, int]()
        order = np.argsort(shortest, kind="stable")[: np.count_nonzero(np.isfinite(shortest))].tolist()
        while chosen := _find_room(order, placed, left, seconds, problem.scale_factors):
            placed |= chosen
            # Jobs that give way to each other may leave room that a job can use which had none.
            placed = _place(problem, placed, left)
        for job, column in placed.items():
            gangs.give(job, column)

    def _start_by_mean(self, gangs: WholeGangs, shortest: FloatArray) -> None:
        draw = random.Random(gangs.problem.seed)
        before = {job: column for members, column in running(gangs.problem, self.name) for job in members}
        for job in np.argsort(shortest, kind="stable").tolist():
            room = gangs.room(job)
            if room:
                gangs.give(job, before[job] if before.get(job) in room else draw.choice(room))


def _find_room(
    order: list[int], placed: dict[int, int], left: FloatArray, seconds: FloatArray, sizes: FloatArray
) -> dict[int, int]:
    """Jobs that find room in this order, each where it is fastest; what is `left` of the workers changes with it."""
    found: dict[int, int] = {}
    for job in order:
        if left.max(initial=0.0) <= ROUNDING:
            break
        if job not in placed:
            room = np.where(left + ROUNDING >= sizes[job], seconds[job], np.inf)
            column = int(room.argmin())
            if np.isfinite(room[column]):
                found[job] = column
                left[column] -= sizes[job]
    return found


def _place(problem: Problem, chosen: dict[int, int], left: FloatArray) -> dict[int, int]:
    """The same jobs on the types that make the sum of their slow-downs least, the largest gangs first.

    Jobs of one size have the places that they were chosen with, and what is `left` of the workers, which changes.
    """
    jobs, columns = np.array(list(chosen), np.int64), np.array(list(chosen.values()), np.int64)
    sizes, on = problem.scale_factors[jobs], problem.running[0][jobs]
    rates = problem.rates[jobs]
    costs = np.divide(problem.fastest[jobs][:, None], rates, out=np.full_like(rates, np.inf), where=rates > 0)
    there = np.flatnonzero(on >= 0)
    costs[there, on[there]] -= _STAY
    placed: dict[int, int] = {}
    for size in np.unique(sizes)[::-1].tolist():
        alike = np.flatnonzero(sizes == size)
        taken = np.bincount(columns[alike], minlength=len(left))
        hardest = alike[np.argsort(-costs[alike].min(axis=1), kind="stable")]
        room = taken + np.floor(left / size + ROUNDING).astype(np.int64)
        sent, _ = cheapest_transport(costs[hardest], np.ones(len(hardest), np.int64), room)
        where = sent.argmax(axis=1)
        left += size * (taken - np.bincount(where, minlength=len(left)))
        placed |= zip(jobs[hardest].tolist(), where.tolist(), strict=True)
    return placed
