"""Whether the jobs of a round fit on their machines beside each other, and on which workers those that start sit.

The rounds choose by accelerators alone, counted together. Where jobs also ask for CPUs or memory, or for parts of
workers, the chosen ones are gone through once more, in the order of their claims: each takes what it asks for of its
machines and workers, and one that finds too little left does not run in this round, nor a gang whose workers would be
on more nodes than it may span. After a turn of waiting it comes before jobs that have run for a turn. What a gang asks
for is divided evenly among its workers; two jobs that share their workers take what both ask for. Jobs that ask for
nothing take nothing. A job that asks for parts goes where a rule says (`allocate.packing`), and does not move for the
sake of packing. Of workers that teams have reserved (`reservations`), jobs of others take none. Where no job asks for
any of this and nothing is reserved, this step is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from fairway.allocate.arrays import BoolArray, FloatArray, IntArray
from fairway.allocate.packing.packer import Nodes, Packer, Rule
from fairway.allocate.packing.requests import WHOLE, Mix, Request
from fairway.cluster import UNCOUNTED
from fairway.engine.training.job_table import JobTable
from fairway.engine.training.reservations import Kept
from fairway.engine.training.worker_pool import FREE, GONE, WorkerPool

_ROUNDING = 1e-9


class Unit(NamedTuple):
    """One job, or two that share, on a type; `stays` if on the workers that they hold, `sure` if in any case."""

    members: tuple[int, ...]
    column: int
    stays: bool
    sure: bool = False


class Fitting:
    """What is left of the machines and the workers, while one job after another is given room."""

    def __init__(
        self, jobs: JobTable, pool: WorkerPool, kept: Kept | None = None, rule: Rule = "fgd", *, all_stay: bool = False
    ) -> None:
        """With nothing given to any job; with `all_stay`, all that run have what they hold."""
        self._jobs, self._pool, self._kept, self._rule = jobs, pool, kept, rule
        self._cpus = np.array([machine.cpus for machine in pool.machines])
        self._memory = np.array([machine.memory_bytes for machine in pool.machines])
        self._room: list[IntArray] = []
        self._home: list[IntArray] = []  # what jobs hold that were not gone through yet
        self._mixes: dict[int, Mix] = {}
        self._without: set[tuple[int, int, float, float, int, int]] = set()
        for column in range(jobs.rates.shape[1]):
            left, holder = pool.room_of(column), pool.holder_of(column)
            there: IntArray = np.where(holder == GONE, 0, WHOLE)
            self._room.append(left if all_stay else there)
            self._home.append(np.zeros_like(left) if all_stay else there - left)
        if all_stay:
            for position in np.flatnonzero((jobs.on >= 0) & ((jobs.cpus > 0) | (jobs.memory > 0))).tolist():
                if jobs.beside[position] < jobs.number[position]:
                    unit = Unit(self._members(position), int(jobs.on[position]), stays=True)
                    self._use_machines(unit, pool.held_by(unit.column, int(jobs.lease[position])))

    def _members(self, position: int) -> tuple[int, ...]:
        """A job that runs, and the one that it shares with."""
        beside = int(self._jobs.beside[position])
        return (position,) if beside < 0 else (position, int(self._jobs.positions(np.array([beside]))[0]))

    @staticmethod
    def is_needed(jobs: JobTable, pool: WorkerPool) -> bool:
        """Whether anything is asked for that machines, or single workers, could have too little of."""
        if jobs.plain:
            return False
        asks = bool(pool.machines) and bool(jobs.cpus.any() or jobs.memory.any())
        spans = pool.has_nodes and bool(((jobs.nodes > 0) & (jobs.nodes < jobs.scale)).any())
        return asks or spans or bool((jobs.part < WHOLE).any())

    @classmethod
    def beside_all(cls, jobs: JobTable, pool: WorkerPool, kept: Kept | None = None, rule: Rule = "fgd") -> Fitting:
        """What is left beside all that runs."""
        if kept is None:
            return cls(jobs, pool, rule=rule, all_stay=True)
        made, running = cls(jobs, pool, kept, rule), jobs.on >= 0
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
        jobs = self._jobs
        asked = int(jobs.scale[member]), int(jobs.part[member]), float(jobs.cpus[member]), float(jobs.memory[member])
        alike = (*asked, int(jobs.nodes[member]), column)
        if self._kept is None and alike in self._without:
            return False
        found = self._found(Unit((member,), column, stays=False)) is not None
        if not found:
            self._without.add(alike)
        return found

    def is_kept(self, member: int, column: int) -> bool:
        """Whether too few workers of a type would be left for reservations if a job had its own."""
        if self._kept is None:
            return False
        left = np.count_nonzero(self._room[column] == WHOLE) - int(self._jobs.scale[member])
        return bool(left < self._kept.from_job(member, column))

    def _held(self, unit: Unit) -> tuple[int, ...] | None:
        """The workers that a unit holds, unless they or what it asks for are taken by now."""
        workers = list(self._pool.held_by(unit.column, int(self._jobs.lease[unit.members[0]])))
        if unit.sure:
            return tuple(workers)
        first = unit.members[0]
        if self.is_kept(first, unit.column) or (self._room[unit.column][workers] < self._jobs.part[first]).any():
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
        part = int(self._jobs.part[unit.members[0]])
        for room in (self._room[column] - self._home[column], self._room[column]):
            roomy = self._with_room(unit, room >= part)
            if np.count_nonzero(roomy) >= size:
                found = self._picked(unit, np.where(roomy, room, 0))
                if self._pool.nodes_of(column, found) <= self._most_nodes(unit):
                    return found
        return None

    def _most_nodes(self, unit: Unit) -> float:
        """How many nodes all members of a unit may span."""
        return min((float(most) for most in self._jobs.nodes[list(unit.members)] if most), default=np.inf)

    def _picked(self, unit: Unit, room: IntArray) -> tuple[int, ...]:
        """The workers that a unit gets of those that have room for it, which are enough."""
        column, first = unit.column, unit.members[0]
        size, part = int(self._jobs.scale[first]), int(self._jobs.part[first])
        if part == WHOLE and not (self._jobs.part < WHOLE).any():
            return self._pool.pick(column, np.where(room == WHOLE, FREE, GONE), size)
        order, sizes = self._pool.by_node(column)
        endless = np.full(len(sizes), np.inf)
        nodes = Nodes(sizes, np.zeros_like(sizes), endless, endless)
        found = Packer(nodes, self._mix_on(column), self._rule, room[order]).find(Request(size, part))
        if found:
            return tuple(sorted(order[list(found)].tolist()))
        if part == WHOLE:  # no node has room for the whole gang
            return self._pool.pick(column, np.where(room == WHOLE, FREE, GONE), size)
        fullest = np.lexsort((np.arange(len(room)), room))
        return tuple(sorted(fullest[room[fullest] >= part][:size].tolist()))

    def _mix_on(self, column: int) -> Mix:
        """What the jobs that are here ask for of a type."""
        if column not in self._mixes:
            able = self._jobs.rates[:, column] > 0
            sizes, counts = np.unique(
                np.stack([self._jobs.scale[able], self._jobs.part[able]], axis=1), axis=0, return_counts=True
            )
            requests = {Request(*size): float(count) for size, count in zip(sizes.tolist(), counts, strict=True)}
            self._mixes[column] = Mix.of(requests)
        return self._mixes[column]

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
        chosen, part = list(workers), int(self._jobs.part[unit.members[0]])
        self._room[unit.column][chosen] -= part
        if unit.stays:
            self._home[unit.column][chosen] -= part
        if self._kept is not None:
            self._kept.use(unit.members[0], unit.column, len(workers))
        self._use_machines(unit, workers)

    def _use_machines(self, unit: Unit, workers: tuple[int, ...]) -> None:
        cpus, memory = self._asked(unit)
        machines = self._pool.machine_of(unit.column)[list(workers)]
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
    only_new: bool = False,
) -> Iterator[Unit]:
    """The jobs that are to run, in the order of their claims; `only_new` leaves out those that go on for sure.

    Jobs that go on for sure come first, then those of higher classes (`ahead`), then those that the policy wants to be
    `served`, then those that are given what is left. What jobs are owed says nothing here, since the policy has given
    shares that the machines do not have: so jobs take turns. One that has run for a turn makes room for one that has
    waited for a turn, the longest first.
    """
    runs = (to >= 0) & ((together < 0) | (together > np.arange(len(to))))
    running = np.flatnonzero(runs & ~stays if only_new else runs)
    goes_on = (to == jobs.on) & (together == jobs.partners())
    passed = now - jobs.changed
    claims: FloatArray = np.where(goes_on, 2.0 * turn - passed, np.minimum(passed, turn))
    order = np.lexsort(
        (running, -passed[running], -claims[running], ~served[running], -ahead[running], ~stays[running])
    )
    for first in running[order].tolist():
        other = int(together[first])
        yield Unit((first,) if other < 0 else (first, other), int(to[first]), bool(goes_on[first]), bool(stays[first]))
