"""First in, first out and Gandiva's pairs as the original implementation decides them, with what it remembers.

Both draw from one generator for a whole run and keep who was given what, so that an object is good for one run: the
answer to a problem depends on the problems before it. The original's FIFO without knowledge of rates has a defect that
its published results contain: it draws a type among those with room, but then takes the last type of its list, room or
not; and when that type is used up exactly, the drawn one leaves the list. It overbooks types, which the rounds bear.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from fairway.allocate.allocation import Allocation
from fairway.allocate.arrays import FloatArray
from fairway.allocate.kernels.sharing import Sharing
from fairway.allocate.policy import Policy
from fairway.allocate.problem import Problem

_PAYS = 1.0


@dataclass(slots=True)
class OriginalFifo(Policy):
    """Whole gangs in order of arrival: on the fastest type with room, or, when `agnostic`, as the defect has it.

    A job whose best type with room is one where it cannot run is passed over. With `space_sharing`, the jobs that are
    left join running ones where two together do more than 1.5 times the work of one, until one finds no host.
    """

    name: ClassVar[str] = "fifo"
    agnostic: bool = False
    space_sharing: bool = False
    _draw: random.Random | None = field(default=None, init=False, repr=False)
    _came: dict[str, int] = field(default_factory=dict, init=False, repr=False)
    _given: dict[str, int] = field(default_factory=dict, init=False, repr=False)

    def allocate(self, problem: Problem) -> Allocation:
        """Serve the queue."""
        if self._draw is None:
            self._draw = random.Random(problem.seed)
        if not self.agnostic:
            self._given = {}
        for name in problem.ids:
            self._came.setdefault(name, len(self._came))
        by_name = sorted(range(len(problem.types)), key=lambda column: problem.types[column])
        room = {column: int(problem.workers[column]) for column in by_name if problem.workers[column] > 0}
        queue = [job for job, name in enumerate(problem.ids) if name not in self._given]
        self._replace_finished(problem, queue, room)
        self._serve(problem, queue, room)
        columns = {job: self._given[name] for job, name in enumerate(problem.ids) if name in self._given}
        pairs = self._share(problem, queue, columns) if self.space_sharing else []
        return _whole_gangs(self.name, problem, columns.items(), pairs)

    def _replace_finished(self, problem: Problem, queue: list[int], room: dict[int, int]) -> None:
        """Go through the jobs that had workers, in order of arrival; the head of the queue follows whoever is gone.

        Whether it fits is judged by what those before have left, not by what is free.
        """
        here = {name: job for job, name in enumerate(problem.ids)}
        for name, column in sorted(self._given.items(), key=lambda entry: self._came[entry[0]]):
            if name in here:
                room[column] -= int(problem.scale_factors[here[name]])
                continue
            if queue:
                head = queue[0]
                if problem.scale_factors[head] <= room[column] and problem.throughputs[head, column] > 0:
                    queue.pop(0)
                    self._give(problem, head, column, room)
            del self._given[name]

    def _serve(self, problem: Problem, queue: list[int], room: dict[int, int]) -> None:
        assert self._draw is not None
        types = [column for column, free in room.items() if free > 0]
        while queue and types:
            job = queue.pop(0)
            fits = [column for column in types if room[column] >= problem.scale_factors[job]]
            if not fits:
                break
            if self.agnostic:
                drawn, column = fits[self._draw.randrange(len(fits))], types[-1]
            else:
                drawn = column = max(fits, key=lambda j: problem.throughputs[job, j])
            if problem.throughputs[job, column] > 0:
                self._give(problem, job, column, room)
                if room[column] == 0:
                    types.remove(drawn)

    def _give(self, problem: Problem, job: int, column: int, room: dict[int, int]) -> None:
        self._given[problem.ids[job]] = column
        room[column] -= int(problem.scale_factors[job])

    def _share(self, problem: Problem, queue: list[int], columns: dict[int, int]) -> list[tuple[int, int, int]]:
        """Let jobs that wait join the best host; the first without one ends it."""
        sharing = Sharing(problem)
        alone_on = np.full(len(problem), -1, dtype=np.int64)
        alone_on[list(columns)] = list(columns.values())
        pairs = []
        for job in queue:
            host = sharing.best_host(job, alone_on)
            if host is None:
                break
            pairs.append((min(host, job), max(host, job), columns.pop(host)))
            alone_on[host] = -1
        return pairs


@dataclass(slots=True)
class OriginalGandiva(Policy):
    """Pairs drawn at random when the jobs do not all fit; time is split equally over the pairs and who is left.

    A pair stays together while both are here and it can share on every type with gains of at least 1 in all; every job
    else is drawn anew. A pair that cannot share has its part of the time all the same, in vain.
    """

    name: ClassVar[str] = "gandiva"
    _draw: random.Random | None = field(default=None, init=False, repr=False)
    _partner: dict[str, str] = field(default_factory=dict, init=False, repr=False)

    def allocate(self, problem: Problem) -> Allocation:
        """Split the time equally, in pairs if the jobs do not all fit."""
        if self._draw is None:
            self._draw = random.Random(problem.seed)
        sharing = Sharing(problem)
        self._keep(problem, sharing)
        jobs = np.arange(len(problem))
        first, second = jobs, np.full_like(jobs, -1)
        if problem.scale_factors.sum() > problem.workers.sum():
            self._pair(problem)
            position = {name: job for job, name in enumerate(problem.ids)}
            partner = np.array([position[self._partner[name]] if name in self._partner else -1 for name in problem.ids])
            # The one that came first stands for both.
            stands = (partner < 0) | (partner > jobs)
            first, second = jobs[stands], partner[stands]
        shares = problem.workers / len(first) / problem.scale_factors[first][:, None] if len(first) else problem.rates
        shares = shares / np.maximum(shares.sum(axis=1, keepdims=True), 1.0)
        shared = [
            row for row, other in enumerate(second.tolist()) if other < 0 or sharing.gains(first[row], other).any()
        ]
        return Allocation(self.name, problem, first[shared], second[shared], shares[shared], 0.0, "max")

    def _keep(self, problem: Problem, sharing: Sharing) -> None:
        position = {name: job for job, name in enumerate(problem.ids)}
        kept = {}
        for name, other in self._partner.items():
            if name in position and other in position:
                gains = sharing.gains(position[name], position[other])[problem.workers > 0]
                if (gains > 0).all() and gains.sum() >= _PAYS:
                    kept[name] = other
        self._partner = kept

    def _pair(self, problem: Problem) -> None:
        assert self._draw is not None
        waiting = [job for job, name in enumerate(problem.ids) if name not in self._partner]
        for _ in range(len(waiting)):
            if len(waiting) < 2:
                break
            a, b = self._draw.sample(waiting, 2)
            if problem.scale_factors[a] == problem.scale_factors[b]:
                waiting.remove(a)
                waiting.remove(b)
                self._partner[problem.ids[a]], self._partner[problem.ids[b]] = problem.ids[b], problem.ids[a]


def _whole_gangs(
    policy: str, problem: Problem, alone: Iterable[tuple[int, int]], pairs: list[tuple[int, int, int]]
) -> Allocation:
    """Share 1 for everyone who was given workers."""
    jobs = len(problem)
    shares: FloatArray = np.zeros((jobs + len(pairs), len(problem.types)))
    for job, column in alone:
        shares[job, column] = 1.0
    for row, (_, _, column) in enumerate(pairs):
        shares[jobs + row, column] = 1.0
    first = np.array([*range(jobs), *(a for a, _, _ in pairs)], dtype=np.int64)
    second = np.array([-1] * jobs + [b for _, b, _ in pairs], dtype=np.int64)
    return Allocation(policy, problem, first, second, shares, 0.0, "max")
