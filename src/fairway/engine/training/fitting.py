"""Whether the jobs of a round fit on their machines beside each other, and on which workers those that start sit.

The rounds choose by accelerators alone. Where jobs also ask for CPUs or memory, the chosen ones are gone through once
more, in the order of their claims: each takes what it asks for of its machines, and one that finds too little left does
not run in this round, nor a gang whose workers would be on more nodes than it may span. After a turn of waiting it
comes before jobs that have run for a turn. What a gang asks for is
divided evenly among its workers; two jobs that share their workers take what both ask for. Jobs that ask for
nothing take nothing. Of workers that teams have reserved (`reservations`), jobs of others take none. Where no job asks
for anything or may span fewer nodes than it has workers, and nothing is reserved, this step is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from fairway.allocate.arrays import BoolArray, FloatArray, IntArray
from fairway.cluster import UNCOUNTED
from fairway.engine.training.job_table import JobTable
from fairway.engine.training.reservations import Kept
from fairway.engine.training.worker_pool import FREE, GONE, WorkerPool

_ROUNDING = 1e-9
_TAKEN = 0
"""Instead of the number of a lease: the worker is given to a job of the round."""


class Unit(NamedTuple):
    """One job, or two that share, on a type; `stays` if on the workers that they hold, `sure` if in any case."""

    members: tuple[int, ...]
    column: int
    stays: bool
    sure: bool = False


class Fitting:
    """What is left of the machines and the workers, while one job after another is given room."""

    def __init__(self, jobs: JobTable, pool: WorkerPool, kept: Kept | None = None) -> None:
        self._jobs, self._pool, self._kept = jobs, pool, kept
        self._cpus = np.array([machine.cpus for machine in pool.machines])
        self._memory = np.array([machine.memory_bytes for machine in pool.machines])
        columns = range(jobs.rates.shape[1])
        self._home = [pool.holder_of(column) >= 0 for column in columns]
        self._holder = [np.where(pool.holder_of(column) == GONE, GONE, FREE) for column in columns]

    @staticmethod
    def is_needed(jobs: JobTable, pool: WorkerPool) -> bool:
        """Whether anything is asked for that machines could have too little of."""
        asks = bool(pool.machines) and bool(jobs.cpus.any() or jobs.memory.any())
        return asks or (pool.has_nodes and bool(((jobs.nodes > 0) & (jobs.nodes < jobs.scale)).any()))

    @classmethod
    def beside_all(cls, jobs: JobTable, pool: WorkerPool, kept: Kept | None = None) -> Fitting:
        """What is left beside all that runs."""
        made, running = cls(jobs, pool, kept), jobs.on >= 0
        made.fit(by_claim(jobs, jobs.on, jobs.partners(), running, running, np.zeros(len(jobs)), now=0.0, turn=0.0))
        return made

    def fit(self, units: Iterable[Unit]) -> tuple[dict[int, tuple[int, ...]], list[Unit]]:
        """Give room to one after another: the workers of those that start, by their first job, and those without."""
        placed: dict[int, tuple[int, ...]] = {}
        failed: list[Unit] = []
        for unit in units:
            workers = self._held(unit) if unit.stays else self._found(unit)
            if workers is None:
                failed.append(unit)
                continue
            self._take(unit, workers)
            if not unit.stays:
                placed[unit.members[0]] = workers
        return placed, failed

    def has_room(self, member: int, column: int) -> bool:
        """Whether a job could start on a type, beside all that was given room."""
        return self._found(Unit((member,), column, stays=False)) is not None

    def is_kept(self, member: int, column: int) -> bool:
        """Whether too few workers of a type would be left for those who have reserved some, if a job had its own."""
        if self._kept is None:
            return False
        left = np.count_nonzero(self._holder[column] == FREE) - int(self._jobs.scale[member])
        return bool(left < self._kept.from_job(member, column))

    def _held(self, unit: Unit) -> tuple[int, ...] | None:
        """The workers that a unit holds, unless they or what it asks for are taken by now."""
        workers = list(self._pool.held_by(unit.column, int(self._jobs.lease[unit.members[0]])))
        if unit.sure:
            return tuple(workers)
        if self.is_kept(unit.members[0], unit.column) or (self._holder[unit.column][workers] != FREE).any():
            return None
        cpus, memory = self._asked(unit)
        machines, counts = np.unique(self._pool.machine_of(unit.column)[workers], return_counts=True)
        for machine, count in zip(machines.tolist(), counts.tolist(), strict=True):
            if count > self._most(machine, cpus, memory):
                return None
        return tuple(workers)

    def _found(self, unit: Unit) -> tuple[int, ...] | None:
        """Workers for a unit that starts, those first that no job would have to leave for it; None for too few."""
        column, size = unit.column, int(self._jobs.scale[unit.members[0]])
        if self.is_kept(unit.members[0], column):
            return None
        free = self._holder[column] == FREE
        for workers in (free & ~self._home[column], free):
            roomy = self._with_room(unit, workers)
            if np.count_nonzero(roomy) >= size:
                found = self._pool.pick(column, np.where(roomy, FREE, GONE), size)
                if self._pool.nodes_of(column, found) <= self._most_nodes(unit):
                    return found
        return None

    def _most_nodes(self, unit: Unit) -> float:
        """How many nodes all members of a unit may span."""
        return min((float(most) for most in self._jobs.nodes[list(unit.members)] if most), default=np.inf)

    def _with_room(self, unit: Unit, workers: BoolArray) -> BoolArray:
        """As many of some workers as their machines have room for."""
        cpus, memory = self._asked(unit)
        if not (cpus or memory):
            return workers
        roomy, machine_of = workers.copy(), self._pool.machine_of(unit.column)
        for machine in np.unique(machine_of[workers]).tolist():
            here = np.flatnonzero(workers & (machine_of == machine))
            most = self._most(machine, cpus, memory)
            if most < len(here):
                roomy[here[int(most) :]] = False
        return roomy

    def _asked(self, unit: Unit) -> tuple[float, float]:
        """CPUs and bytes of memory for each worker of a unit."""
        members, size = list(unit.members), int(self._jobs.scale[unit.members[0]])
        return float(self._jobs.cpus[members].sum()) / size, float(self._jobs.memory[members].sum()) / size

    def _most(self, machine: int, cpus: float, memory: float) -> float:
        """How many workers that each ask for so much a machine has room for."""
        if machine == UNCOUNTED:
            return np.inf
        parts = [left[machine] / asked for left, asked in ((self._cpus, cpus), (self._memory, memory)) if asked]
        return float(np.floor(min(parts, default=np.inf) + _ROUNDING))

    def _take(self, unit: Unit, workers: tuple[int, ...]) -> None:
        cpus, memory = self._asked(unit)
        chosen = list(workers)
        self._holder[unit.column][chosen] = _TAKEN
        if self._kept is not None:
            self._kept.use(unit.members[0], unit.column, len(workers))
        machines = self._pool.machine_of(unit.column)[chosen]
        machines = machines[machines != UNCOUNTED]
        np.subtract.at(self._cpus, machines, cpus)
        np.subtract.at(self._memory, machines, memory)


def by_claim(
    jobs: JobTable,
    to: IntArray,
    together: IntArray,
    served: BoolArray,
    stays: BoolArray,
    ahead: FloatArray,
    *,
    now: float,
    turn: float,
) -> Iterator[Unit]:
    """The jobs that are to run, in the order of their claims.

    Jobs that go on for sure come first, then those of higher classes (`ahead`), then those that the policy wants to be
    `served`, then those that are given what is left. What jobs are owed says nothing here, since the policy has given
    shares that the machines do not have: so jobs take turns. One that has run for a turn makes room for one that has
    waited for a turn, the longest first.
    """
    running = np.flatnonzero((to >= 0) & ((together < 0) | (together > np.arange(len(to)))))
    goes_on = (to == jobs.on) & (together == jobs.partners())
    passed = now - jobs.changed
    claims: FloatArray = np.where(goes_on, 2.0 * turn - passed, np.minimum(passed, turn))
    order = np.lexsort(
        (running, -passed[running], -claims[running], ~served[running], -ahead[running], ~stays[running])
    )
    for first in running[order].tolist():
        other = int(together[first])
        yield Unit((first,) if other < 0 else (first, other), int(to[first]), bool(goes_on[first]), bool(stays[first]))
