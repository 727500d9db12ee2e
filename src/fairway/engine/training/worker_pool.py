"""Which workers there are, which leases hold them, and which ones a gang gets.

A gang goes to the node with the fewest free workers among those that have room for all of it, so that room for large
gangs stays; where no node has, to the nodes with the most free workers, so that it spans as few as it can (Gavel §5,
which leaves this to chance). Workers are numbered from 0 within their type and keep their numbers for ever.

A lease may hold parts of workers, in thousandths. What is left of such a worker is `room`, for other parts.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from fairway.allocate.arrays import IntArray
from fairway.allocate.packing.requests import WHOLE
from fairway.cluster import UNCOUNTED, Cluster
from fairway.compiled import compiled

FREE = -1
"""Instead of the number of a lease: no lease holds the worker."""

GONE = -2
"""Instead of the number of a lease: the worker has left."""

IN_PARTS = -3
"""Instead of the number of a lease: one or several leases hold parts of the worker."""


class _Parts(NamedTuple):
    """The workers of which a lease holds parts, and how much of each."""

    workers: tuple[int, ...]
    part: int


class WorkerPool:
    """The workers of a cluster, by type and number; `departures` counts how many have left so far.

    By type, `free` are the workers that no lease holds anything of, and `room` is what is left of all, in thousandths.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._sizes = [cluster.workers_per_node.get(name) for name in cluster.types]
        self._holder: list[IntArray] = []
        self._node: list[IntArray] = []
        self._leaving: list[set[int]] = [set() for _ in cluster.types]
        self.machines = list(cluster.machines)
        self._machine: list[IntArray] = []
        self.free = np.zeros(len(self._sizes), dtype=np.int64)
        self.room = np.zeros(len(self._sizes), dtype=np.int64)
        self._parts: list[dict[int, _Parts]] = [{} for _ in cluster.types]
        self.present = np.zeros(len(self._sizes), dtype=np.int64)
        self.departures = 0
        for column, name in enumerate(cluster.types):
            self._holder.append(np.zeros(0, dtype=np.int64))
            self._node.append(np.zeros(0, dtype=np.int64))
            self._machine.append(np.zeros(0, dtype=np.int64))
            self.join(column, cluster.workers[name])
            if name in cluster.machine_of:
                self._machine[column] = np.array(cluster.machine_of[name], dtype=np.int64)
                if self._sizes[column] is None:
                    self._node[column] = _nodes_of(self._machine[column])
        self.has_nodes = any(len(np.unique(nodes)) > 1 for nodes in self._node)

    def join(self, column: int, count: int) -> None:
        """Add workers of a type; on a type whose nodes have a size, they fill new nodes, and otherwise the first."""
        before, size = self._node[column], self._sizes[column]
        first = int(before.max(initial=-1)) + 1
        nodes = np.zeros(count, dtype=np.int64) if size is None else first + np.arange(count) // size
        self._node[column] = np.concatenate([before, nodes])
        self._machine[column] = np.concatenate([self._machine[column], self._machines_of(column, nodes)])
        self._holder[column] = np.concatenate([self._holder[column], np.full(count, FREE)])
        self.free[column] += count
        self.room[column] += WHOLE * count
        self.present[column] += count

    def _machines_of(self, column: int, nodes: IntArray) -> IntArray:
        """The machines of nodes that are new, each as large as that of the last worker before; none before any."""
        before = self._machine[column]
        if not len(before) or before[-1] < 0:
            return np.full(len(nodes), UNCOUNTED)
        new, places = np.unique(nodes, return_inverse=True)
        self.machines += [self.machines[before[-1]]] * len(new)
        return len(self.machines) - len(new) + places

    def machine_of(self, column: int) -> IntArray:
        """The machine of each worker of a type, `UNCOUNTED` where what it has is not known."""
        return self._machine[column]

    def holder_of(self, column: int) -> IntArray:
        """What holds each worker of a type: a lease, `IN_PARTS`, `FREE` or `GONE`. A copy."""
        return self._holder[column].copy()

    def room_of(self, column: int) -> IntArray:
        """What is left of each worker of a type, in thousandths."""
        holder = self._holder[column]
        room: IntArray = np.where(holder == FREE, WHOLE, 0)
        if self._parts[column]:
            room[holder == IN_PARTS] = WHOLE
            for held in self._parts[column].values():
                room[list(held.workers)] -= held.part
            room[list(self._leaving[column])] = 0
        return room

    def by_node(self, column: int) -> tuple[IntArray, IntArray]:
        """The workers of a type, node after node, and how many each node has; one each where all are one node."""
        node = self._node[column]
        if not node.any():
            return np.arange(len(node)), np.ones(len(node), dtype=np.int64)
        return np.argsort(node, kind="stable"), np.bincount(node)

    def pick(self, column: int, holder: IntArray, count: int) -> tuple[int, ...]:
        """The workers that a gang would get if only these were free; they must be enough. Nothing is changed."""
        workers, _ = _take(holder.copy(), self._node[column], count, 0)
        return tuple(workers.tolist())

    def holders(self, column: int, workers: tuple[int, ...]) -> list[int]:
        """The leases that hold some of these workers, each once."""
        if not self._parts[column]:
            held = self._holder[column][list(workers)]
            return list(dict.fromkeys(held[held >= 0].tolist()))
        found: dict[int, None] = {}
        for worker in workers:
            found.update(dict.fromkeys(self._leases_on(column, worker)))
        return list(found)

    def _leases_on(self, column: int, worker: int) -> list[int]:
        """The leases that hold a worker, or parts of it."""
        holder = int(self._holder[column][worker])
        if holder != IN_PARTS:
            return [holder] if holder >= 0 else []
        return [lease for lease, held in self._parts[column].items() if worker in held.workers]

    def leave(self, column: int, workers: tuple[int, ...], *, except_held_by: Collection[int] = ()) -> list[int]:
        """Take workers out; returns the leases that held some of them, which are broken and still hold the rest.

        Those that are held by certain leases stay until they are given back.
        """
        holder = self._holder[column]
        broken: list[int] = []
        for worker in workers:
            leases = self._leases_on(column, worker)
            if holder[worker] == GONE:
                continue
            broken += [lease for lease in leases if lease not in except_held_by and lease not in broken]
            if any(lease in except_held_by for lease in leases):
                if worker not in self._leaving[column]:
                    self.room[column] -= self._left_of(column, worker)
                    self._leaving[column].add(worker)
                continue
            if holder[worker] == FREE:
                self.free[column] -= 1
            if worker not in self._leaving[column]:
                self.room[column] -= self._left_of(column, worker)
            holder[worker] = GONE
            self._leaving[column].discard(worker)
            self.present[column] -= 1
            self.departures += 1
        return broken

    def _left_of(self, column: int, worker: int) -> int:
        """What is left of a worker that does not leave, in thousandths."""
        match int(self._holder[column][worker]):
            case holder if holder == FREE:
                return WHOLE
            case holder if holder == IN_PARTS:
                return WHOLE - sum(held.part for held in self._parts[column].values() if worker in held.workers)
        return 0

    def come_back(self, column: int, workers: tuple[int, ...]) -> None:
        """Let workers that had left be free again."""
        holder = self._holder[column]
        for worker in workers:
            if worker in self._leaving[column]:
                self._leaving[column].discard(worker)
                self.room[column] += self._left_of(column, worker)
            if holder[worker] == GONE:
                holder[worker] = FREE
                self.free[column] += 1
                self.room[column] += WHOLE
                self.present[column] += 1

    def gone(self, column: int) -> tuple[int, ...]:
        """The workers that have left, and those that will when they are given back."""
        absent = np.flatnonzero(self._holder[column] == GONE).tolist()
        return tuple(sorted({*absent, *self._leaving[column]}))

    def held_by(self, column: int, lease: int) -> tuple[int, ...]:
        """The workers that a lease holds, or parts of which it holds."""
        if (parts := self._parts[column].get(lease)) is not None:
            return tuple(worker for worker in parts.workers if self._holder[column][worker] != GONE)
        return tuple(np.flatnonzero(self._holder[column] == lease).tolist())

    def count(self, column: int) -> int:
        """How many workers there ever were; their numbers are below it."""
        return len(self._holder[column])

    def hold(self, column: int, workers: tuple[int, ...], lease: int, part: int = WHOLE) -> bool:
        """Give certain workers, or so large a part of each, to a lease; False if they are not free for it.

        Then nothing is changed.
        """
        holder, wanted = self._holder[column], list(workers)
        if min(wanted) < 0 or max(wanted) >= len(holder):
            return False
        if part < WHOLE:
            return self._hold_parts(column, workers, lease, part)
        if (holder[wanted] != FREE).any():
            return False
        holder[wanted] = lease
        self.free[column] -= len(wanted)
        self.room[column] -= WHOLE * len(wanted)
        return True

    def _hold_parts(self, column: int, workers: tuple[int, ...], lease: int, part: int) -> bool:
        holder, wanted = self._holder[column], list(workers)
        if (self.room_of(column)[wanted] < part).any() or len(set(wanted)) < len(wanted):
            return False
        self.free[column] -= np.count_nonzero(holder[wanted] == FREE)
        holder[wanted] = IN_PARTS
        self._parts[column][lease] = _Parts(tuple(workers), part)
        self.room[column] -= part * len(wanted)
        return True

    def take(self, column: int, count: int, lease: int) -> tuple[tuple[int, ...], bool]:
        """Give so many free workers to a lease; returns their numbers and whether they sit on several nodes."""
        workers, spread = _take(self._holder[column], self._node[column], count, lease)
        self.free[column] -= count
        self.room[column] -= WHOLE * count
        return tuple(workers.tolist()), bool(spread)

    def give_back(self, column: int, lease: int) -> None:
        """Free all workers, and parts of workers, that a lease still holds."""
        holder = self._holder[column]
        parts = self._parts[column].pop(lease, None)
        if parts is None:
            held = holder == lease
            holder[held] = FREE
            count = np.count_nonzero(held)
            self.free[column] += count
            leaving = [worker for worker in self._leaving[column] if holder[worker] == FREE]
            self.room[column] += WHOLE * (count - len(leaving))
        else:
            leaving = self._give_back_parts(column, parts)
        if leaving:
            self.leave(column, tuple(leaving))

    def _give_back_parts(self, column: int, parts: _Parts) -> list[int]:
        """Free parts of workers; returns those workers that no lease holds any more, and that are to leave."""
        holder, leaving = self._holder[column], self._leaving[column]
        for worker in parts.workers:
            if holder[worker] != IN_PARTS:
                continue
            if worker not in leaving:
                self.room[column] += parts.part
            if not self._leases_on(column, worker):
                holder[worker] = FREE
                self.free[column] += 1
        return [worker for worker in parts.workers if worker in leaving and holder[worker] == FREE]

    def hand_over(self, column: int, lease: int, new: int) -> tuple[tuple[int, ...], bool]:
        """Let another lease hold the same workers; returns them as `take` does."""
        holder = self._holder[column]
        held = np.flatnonzero(holder == lease)
        holder[held] = new
        workers = tuple(held.tolist())
        return workers, self.spans_nodes(column, workers)

    def spans_nodes(self, column: int, workers: tuple[int, ...]) -> bool:
        """Whether these workers sit on more than one node."""
        return self.nodes_of(column, workers) > 1

    def nodes_of(self, column: int, workers: tuple[int, ...]) -> int:
        """On how many nodes these workers sit."""
        return len(np.unique(self._node[column][list(workers)]))


def _nodes_of(machines: IntArray) -> IntArray:
    """The nodes of workers whose machines are known: these machines; each worker of no known machine is a node."""
    nodes = machines.copy()
    unknown = np.flatnonzero(machines == UNCOUNTED)
    if len(unknown) == len(machines):
        return np.zeros(len(machines), dtype=np.int64)
    nodes[unknown] = machines.max() + 1 + np.arange(len(unknown))
    found: IntArray = np.unique(nodes, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return found


@compiled()
def _take(holder: IntArray, node: IntArray, count: int, lease: int) -> tuple[IntArray, bool]:
    nodes = node.max() + 1
    room = np.zeros(nodes, np.int64)
    for worker in range(len(holder)):
        if holder[worker] == FREE:
            room[node[worker]] += 1
    taken = np.empty(count, np.int64)
    have = 0
    spread = False
    while have < count:
        best = -1
        for candidate in range(nodes):
            if room[candidate] == 0:
                continue
            if best < 0:
                best = candidate
            elif room[candidate] >= count - have:
                if room[best] < count - have or room[candidate] < room[best]:
                    best = candidate
            elif room[candidate] > room[best]:  # which has no room for the rest either
                best = candidate
        spread = spread or have > 0
        for worker in range(len(holder)):
            if have < count and node[worker] == best and holder[worker] == FREE:
                holder[worker] = lease
                taken[have] = worker
                have += 1
        room[best] = 0
    return taken, spread
