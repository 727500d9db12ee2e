"""Hand out whole gangs: a job gets all the workers it needs, of one type, for all of the time, or waits.

This is what the policies that queue jobs do (FIFO, shortest job first, AlloX): they decide the order, and here is
written down which workers are still free and who got the others. `running` says who held a gang in the decision before.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from fairway.allocate.allocation import Allocation
from fairway.allocate.arrays import FloatArray, IntArray
from fairway.allocate.kernels.sharing import Sharing
from fairway.allocate.problem import Problem

_WHOLE = 1.0 - 1e-9
"""A share from here on means all of the time."""

ROUNDING = 1e-9
"""Parts of workers add up to whole ones but for so much."""

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class WholeGangs:
    """The free workers of a problem while a policy hands them out, and who got which.

    `alone_on[i]` is the type on which job i has a gang of its own, -1 if it has none.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.free: FloatArray = problem.workers.copy()
        self.alone_on: IntArray = np.full(len(problem), -1, dtype=np.int64)
        self._pairs: dict[tuple[int, int], int] = {}
        self._served: set[int] = set()

    def __contains__(self, job: int) -> bool:
        return job in self._served

    def room(self, job: int) -> list[int]:
        """The types on which this job can run and its gang fits now."""
        fits = self.problem.runnable[job] & (self.free + ROUNDING >= self.problem.scale_factors[job])
        columns: list[int] = np.flatnonzero(fits).tolist()
        return columns

    def give(self, job: int, column: int) -> None:
        """Let this job run on a gang of its own."""
        self.free[column] -= self.problem.scale_factors[job]
        self.alone_on[job] = column
        self._served.add(job)

    def keep(self, policy: str, sharing: Sharing | None = None) -> None:
        """Leave where they are all jobs that the previous decision of this policy runs, as far as they still fit.

        Two that shared go on sharing if that is still possible; with no `sharing`, the one that came first stays.
        """
        for members, column in running(self.problem, policy):
            host, *guests = members
            if column in self.room(host):
                self.give(host, column)
                for guest in guests:
                    if sharing is not None and sharing.gains(host, guest)[column] > 0:
                        self._share(host, guest)

    def take_in(self, guest: int, sharing: Sharing) -> bool:
        """Let this job share the gang of its best host; False if there is none."""
        host = sharing.best_host(guest, self.alone_on)
        if host is not None:
            self._share(host, guest)
        return host is not None

    def _share(self, host: int, guest: int) -> None:
        self._pairs[min(host, guest), max(host, guest)] = int(self.alone_on[host])
        self.alone_on[host] = -1
        self._served.add(guest)

    def allocation(
        self,
        policy: str,
        *,
        objective: float = 0.0,
        sense: Literal["max", "min"] = "max",
        gap: float | None = None,
        details: Mapping[str, Any] = _NOTHING,
    ) -> Allocation:
        """The decision so far, with share 1 for every gang: a row for each job, then one for each two that share."""
        jobs, pairs = len(self.problem), list(self._pairs)
        first = np.array([*range(jobs), *(a for a, _ in pairs)], dtype=np.int64)
        second = np.array([-1] * jobs + [b for _, b in pairs], dtype=np.int64)
        columns = np.concatenate([self.alone_on, np.array(list(self._pairs.values()), dtype=np.int64)])
        shares = (columns[:, None] == np.arange(len(self.problem.types))).astype(float)
        return Allocation(policy, self.problem, first, second, shares, objective, sense, gap, details=details)


def running(problem: Problem, policy: str) -> list[tuple[list[int], int]]:
    """Who of the jobs still here held each gang in the previous decision of this policy, one or two, and on which type.

    In order of arrival.
    """
    previous = problem.previous
    if previous is None or previous.policy != policy:
        return []
    job_of = {name: job for job, name in enumerate(problem.ids)}
    column_of = {name: column for column, name in enumerate(problem.types)}
    gangs = []
    for row, column in np.argwhere(previous.shares >= _WHOLE).tolist():
        names = [previous.ids[job] for job in (previous.first[row], previous.second[row]) if job >= 0]
        members = sorted(job_of[name] for name in names if name in job_of)
        if members and previous.types[column] in column_of:
            gangs.append((members, column_of[previous.types[column]]))
    return sorted(gangs)
