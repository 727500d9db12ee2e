"""AlloX: queues before the workers with the least sum of completion times; whoever is first in a queue runs.

Decides from the seconds that each job has left on each type and from who runs already (AlloX, EuroSys'20, as the
baseline of Gavel §7). Running jobs are not preempted: they hold their workers, and the others are queued before the
workers that are free. Only the first job of each queue starts; the rest of the queues is decided anew next time. The
original knows jobs on one worker only; here gangs take their workers in the same position of as many queues.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fairway.allocate.allocation import Allocation
from fairway.allocate.arrays import IntArray
from fairway.allocate.gangs.whole import WholeGangs
from fairway.allocate.kernels.waiting_lines import line_up, queue_up
from fairway.allocate.policy import Policy
from fairway.allocate.problem import Problem


@dataclass(frozen=True, slots=True)
class AlloX(Policy):
    """Minimise sum_i (position_i * seconds_i + elapsed_i), with positions counted from the end of a queue.

    The sum runs over the jobs that have a place: running jobs (position 1, no job waits for them) and those that can
    run on workers that are free. `details` holds that place as `assignment`, [job, type, position], and worker by
    worker as `workers`, [job, worker, position], with workers counted through the types in the order of their names.
    The agnostic variant takes every job to run at its mean rate wherever it can run; so does its objective.
    """

    name: ClassVar[str] = "allox"
    whole_jobs: ClassVar[bool] = True
    agnostic: bool = False

    def allocate(self, problem: Problem) -> Allocation:
        """Queue the jobs that wait and start those that are first."""
        steps = problem.needs_steps(self.name)
        view = problem.agnostic() if self.agnostic else problem
        seconds = np.divide(steps[:, None], view.rates, out=np.full_like(view.rates, np.inf), where=view.runnable)
        gangs = WholeGangs(problem)
        gangs.keep(self.name)
        free = gangs.free.astype(np.int64)
        columns = gangs.alone_on.copy()
        running = np.flatnonzero(columns >= 0)
        held = float(seconds[running, columns[running]].sum())

        fits = np.where(problem.scale_factors[:, None] <= free, seconds, np.inf)
        waiting = np.flatnonzero((columns < 0) & np.isfinite(fits).any(axis=1))
        queues = queue_up(fits[waiting], np.ceil(problem.scale_factors[waiting]).astype(np.int64), free)
        columns[waiting] = queues.columns
        positions = np.ones(len(problem), dtype=np.int64)
        positions[waiting] = queues.positions

        placed = np.flatnonzero(columns >= 0)
        elapsed = float(problem.elapsed[placed].sum())
        objective = float(seconds[placed, columns[placed]] @ positions[placed]) + elapsed
        least = held + queues.bound + elapsed
        return gangs.allocation(
            self.name,
            objective=objective,
            sense="min",
            gap=max(objective / least - 1.0, 0.0) if least > 0 else 0.0,
            details={
                "workers": _start(gangs, columns, positions),
                "assignment": [[problem.ids[i], problem.types[columns[i]], int(positions[i])] for i in placed.tolist()],
            },
        )


def _start(gangs: WholeGangs, columns: IntArray, positions: IntArray) -> list[list[Any]]:
    """Give their gangs to all jobs that are first in their queues; returns who waits for which worker, and where."""
    problem, running = gangs.problem, gangs.alone_on.copy()
    sizes = np.ceil(problem.scale_factors).astype(np.int64)
    places: list[list[Any]] = []
    before = 0
    for column in np.argsort(problem.types).tolist():
        hold = np.flatnonzero(running == column)
        wait = np.flatnonzero((columns == column) & (running < 0))
        # Jobs that run already have the first workers of the type, one after the other.
        ends = before + np.cumsum(sizes[hold])
        for job, end in zip(hold.tolist(), ends.tolist(), strict=True):
            places += [[problem.ids[job], worker, 1] for worker in range(end - int(sizes[job]), end)]
        own, starts = line_up(positions[wait], sizes[wait], int(gangs.free[column]))
        taken = before + int(sizes[hold].sum())
        for job, workers, first in zip(wait.tolist(), own, starts.tolist(), strict=True):
            places += [[problem.ids[job], taken + worker, int(positions[job])] for worker in workers]
            if first:
                gangs.give(job, column)
        before += int(problem.workers[column])
    return places
