"""Herd (Shepherd, NSDI'23): which models share which workers, so that bursts of any of them find room.

With n_i the workers that model i needs on average (its rate over what one worker serves in time), an integer program
over groups g chooses their sizes s_g and puts each model into one of them, x_ig:

    maximise    min over models i of  s_(group of i) / n_i          the burst that a model can take, in times its rate
    subject to  sum of s_g <= workers,  s_g <= the largest group    (Flex decides in a group for all of its workers)
                the models of a group fit into the memory of one worker together

Every worker of a group holds all of its models. The product of s and x is made linear (z_ig <= s_g, z_ig <= N x_ig). Of
plans that are equal by this, the one whose fullest group is least overloaded wins. Where not all models have room in
any plan, those that need most workers go first; the rest are served by none. What no group may grow by is shared out
afterwards: the largest group is what a machine can decide for in time, and no reason to leave workers idle.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import highspy
import numpy as np

from fairway.configure.arrays import BoolArray

MOST_WORKERS = 12
"""The largest group of the paper."""

_MOST_NODES = 200
_OVERLOAD_COUNTS = 1e-3
_MOST_BURST = 1e6
_INFINITY = highspy.kHighsInf
_OPTIONS: dict[str, str | int | float | bool] = {
    "output_flag": False,
    "threads": 1,
    "random_seed": 0,
    "mip_rel_gap": 1e-3,
    "mip_max_nodes": _MOST_NODES,  # not a time limit: a plan must not depend on the machine
}


class Stream(NamedTuple):
    """A model: the workers that it needs on average, and its bytes."""

    workers: float
    bytes: float


class Group(NamedTuple):
    """So many workers hold these models, by number."""

    workers: int
    models: frozenset[int]


def herd(streams: Sequence[Stream], workers: int, memory: float, most: int = MOST_WORKERS) -> list[Group]:
    """The groups, the largest first; workers that are left over join them in turn, however large these are then."""
    if not streams or workers < 1:
        return []
    groups = min(len(streams), workers)
    sizes, members = _solved(streams, workers, memory, groups, most)
    found = [
        Group(size, frozenset(np.flatnonzero(members[:, group]).tolist()))
        for group, size in enumerate(sizes)
        if size and members[:, group].any()
    ]
    return _with_all_workers(sorted(found, key=lambda each: (-each.workers, sorted(each.models))), workers)


def burst_tolerance(groups: Sequence[Group], streams: Sequence[Stream]) -> float:
    """The least of all models: how many times its rate its group could serve; 0 if one has no group."""
    size = {model: group.workers for group in groups for model in group.models}
    return min(
        (size.get(model, 0) / max(stream.workers, 1e-12) for model, stream in enumerate(streams)), default=_MOST_BURST
    )


def _with_all_workers(groups: list[Group], workers: int) -> list[Group]:
    """Workers that are left over, one after the other to the groups in turn."""
    left = workers - sum(group.workers for group in groups)
    sizes = [group.workers for group in groups]
    for number in range(left if sizes else 0):
        sizes[number % len(sizes)] += 1
    return [Group(size, group.models) for size, group in zip(sizes, groups, strict=True)]


def _solved(
    streams: Sequence[Stream], workers: int, memory: float, groups: int, most: int
) -> tuple[list[int], BoolArray]:
    """The size of each group, and which models are in it: of the models that can be served at all, the most needed."""
    found = _Program(streams, workers, memory, groups, most).best(np.ones(len(streams), np.bool_))
    if found is None:
        served = _Program(streams, workers, memory, groups, most).most_served()
        found = _Program(streams, workers, memory, groups, most).best(served)
    return found if found is not None else ([0] * groups, np.zeros((len(streams), groups), np.bool_))


class _Program:
    """The integer program. Columns: the burst t, the overload v, s by group, then x and z by model and group."""

    def __init__(self, streams: Sequence[Stream], workers: int, memory: float, groups: int, most: int) -> None:
        self._count, self._groups, self._streams = len(streams), groups, streams
        need = np.array([max(each.workers, 1e-9) for each in streams])
        need = np.maximum(need, need.max() * 1e-3)  # one that is hardly asked for is no reason for ill-sized numbers
        self._need: list[float] = (need / need.max()).tolist()
        self._overload = float(need.max())
        self._size, self._member = 2, 2 + groups
        self._room = self._member + self._count * groups
        self._solver = solver = highspy.Highs()
        for name, value in _OPTIONS.items():
            solver.setOptionValue(name, value)
        solver.changeObjectiveSense(highspy.ObjSense.kMaximize)
        upper = [_INFINITY, _INFINITY, *[float(most)] * groups]
        upper += [1.0] * (self._count * groups) + [float(most)] * (self._count * groups)
        for bound in upper:
            solver.addVar(0.0, bound)
        for column in range(self._size, self._room):
            solver.changeColIntegrality(column, highspy.HighsVarType.kInteger)
        self._row(-_INFINITY, float(workers), {self._size + group: 1.0 for group in range(groups)})
        for group in range(groups):
            of_group = {self._x(model, group): stream.bytes for model, stream in enumerate(streams) if stream.bytes}
            self._row(-_INFINITY, memory, of_group)
            load = {self._x(model, group): self._overload * self._need[model] for model in range(self._count)}
            self._row(-_INFINITY, 0.0, {**load, self._size + group: -1.0, 1: -1.0})
            if group:  # groups are alike: without an order the solver would try each plan many times
                self._row(0.0, _INFINITY, {self._size + group - 1: 1.0, self._size + group: -1.0})
        for model in range(self._count):
            for group in range(groups):
                x, z, s = self._x(model, group), self._z(model, group), self._size + group
                self._row(-_INFINITY, 0.0, {z: 1.0, s: -1.0})
                self._row(-_INFINITY, 0.0, {z: 1.0, x: -float(most)})
                self._row(-_INFINITY, 0.0, {x: 1.0, s: -1.0})

    def best(self, served: BoolArray) -> tuple[list[int], BoolArray] | None:
        """The groups with the largest burst for these models, all of which are served; None if they cannot be."""
        solver = self._solver
        solver.changeColCost(0, 1.0)
        solver.changeColCost(1, -_OVERLOAD_COUNTS / self._overload)
        for model, wanted in enumerate(served.tolist()):
            own = {self._x(model, group): 1.0 for group in range(self._groups)}
            self._row(float(wanted), float(wanted), own)
            if wanted:
                rooms = {self._z(model, group): 1.0 / self._need[model] for group in range(self._groups)}
                self._row(0.0, _INFINITY, {**rooms, 0: -1.0})
        return self._solved() if served.any() else None

    def most_served(self) -> BoolArray:
        """The models that have room in some plan, those that need most workers first."""
        for model in range(self._count):
            self._row(0.0, 1.0, {self._x(model, group): 1.0 for group in range(self._groups)})
            for group in range(self._groups):
                self._solver.changeColCost(self._x(model, group), 1.0 + self._need[model])
        found = self._solved()
        served: BoolArray = np.zeros((self._count, 1), np.bool_) if found is None else found[1]
        return np.array([bool(row.any()) for row in served])

    def _solved(self) -> tuple[list[int], BoolArray] | None:
        self._solver.changeColBounds(0, 0.0, _MOST_BURST)
        self._solver.run()
        if self._solver.getInfo().primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
            return None
        values = np.asarray(self._solver.getSolution().col_value)
        sizes = [round(float(each)) for each in values[self._size : self._member]]
        members: BoolArray = values[self._member : self._room].reshape(self._count, self._groups) > 0.5
        return sizes, members

    def _x(self, model: int, group: int) -> int:
        return self._member + model * self._groups + group

    def _z(self, model: int, group: int) -> int:
        return self._room + model * self._groups + group

    def _row(self, low: float, high: float, entries: dict[int, float]) -> None:
        columns, factors = np.array(list(entries), np.int32), np.array(list(entries.values()))
        self._solver.addRow(low, high, len(entries), columns, factors)
