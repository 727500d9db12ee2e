"""Decides which models are at home together, so that short work does not wait behind long work: kinds of worker.

That work is spread evenly is not enough. A short task that comes to a worker in the middle of a long one waits for what
is left of it, which is nothing beside the time of a long request, and a multiple of that of a short one. By Pollaczek
and Khinchine a task waits at a worker on average

    W = R / (1 - u)      with u the part of its time that it works, and R = sum of rate * t^2 / 2 over what runs there

for runs of t seconds. What that means to a request is W over the time that it takes at least. So the homes sought are
those with the least sum, over all stages, of rate * W / (least time of the request), where the work of a model goes to
its homes in the parts that make this least. Workflows are taken to be asked for equally often, at a rate at which
workers work four fifths of their time, in planned batches where floor 2 has planned some.

The search begins with homes that spread the work evenly (`homes`), and changes the models of one worker as long as that
is better: one comes, up to two go. Of very many workers that are alike, a few are arranged and the others do the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairway.compiled import BoolTable, FloatTable, compiled, compiled_within
from fairway.place.arrays import BoolArray, FloatArray
from fairway.place.fleet import Fleet
from fairway.place.graph import TaskGraph

_WORKS = 0.8
_PARTS = 8
"""The work of a model is given to its homes in so many parts."""

_FULL = 0.98
"""Beyond this part of its time, what a worker has to do costs as if it grew on evenly, so that all can be compared."""

_CELL = 12
_MOST = 1200
"""At most so many workers that are alike are arranged for all; and of more models times workers, nothing is sought."""


def separated(homes: BoolArray, graphs: Sequence[TaskGraph], fleet: Fleet) -> BoolArray:
    """Homes that are better than these, if there are any; none of the given is in vain: every model keeps one."""
    models, workers = homes.shape
    alike = len(set(fleet.memory.tolist())) <= 1 and len({worker.accelerator for worker in fleet.workers}) <= 1
    cell = min(workers, _CELL) if alike else workers
    settled = np.flatnonzero(np.any(homes, axis=1))
    while cell < workers and not np.all(np.any(homes[settled, :cell], axis=1)):
        cell += 1
    if not models or not graphs or workers < 2 or cell * models > _MOST:
        return homes
    work, squares, worth = _demands(graphs, fleet, cell)
    found = homes[:, :cell].copy()
    _improve(found, work, squares, worth, fleet.model_bytes, fleet.memory[:cell])
    return found[:, np.arange(workers) % cell]


def _demands(graphs: Sequence[TaskGraph], fleet: Fleet, workers: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """By model, the last being none, and worker: its work, half the squares of its runs, and what a wait for it costs.

    Work and squares are infinite where a model cannot run.
    """
    models = len(fleet.models)
    work, squares, worth = np.zeros((models + 1, workers)), np.zeros((models + 1, workers)), np.zeros(models + 1)
    for graph in graphs:
        least = max(1e-9, graph.workflow.critical_path(graph.seconds.min(axis=1).tolist()).seconds)
        for stage, needed in enumerate(graph.needed):
            run, size = graph.seconds[stage, :workers], 1
            if graph.plan is not None:
                size = int(graph.plan.sizes[stage])
                run = graph.plan.times[stage][graph.plan.kinds[:workers], size - 1]
            for model in needed.tolist() or [models]:
                part = max(len(needed), 1)
                work[model] += run / size / part
                squares[model] += run * run / (2.0 * size * part)
                worth[model] += 1.0 / (least * part)
    total = np.where(np.isfinite(work), work, 0.0).max(axis=1).sum()
    scale = _WORKS * workers / total if total > 0 else 0.0
    return work * scale, squares * scale, worth * scale


@compiled()
def _improve(
    homes: BoolTable, work: FloatTable, squares: FloatTable, worth: FloatArray, sizes: FloatArray, memory: FloatArray
) -> None:
    """Change the models of one worker after another as long as that makes the cost less."""
    models, workers = homes.shape
    least = _cost(homes, work, squares, worth)
    before = np.empty(models, np.bool_)
    better = True
    while better:
        better = False
        for worker in range(workers):
            for comes in range(models):
                if homes[comes, worker] or work[comes, worker] == np.inf:
                    continue
                before[:] = homes[:, worker]
                best, one, other = least * (1.0 - 1e-9), -2, -2
                for first in range(-1, models):
                    if first >= 0 and not before[first]:
                        continue
                    for second in range(first, models):
                        if second >= 0 and not before[second]:
                            continue
                        homes[comes, worker] = True
                        if first >= 0:
                            homes[first, worker] = False
                        if second >= 0:
                            homes[second, worker] = False
                        taken = 0.0
                        for model in range(models):
                            if homes[model, worker]:
                                taken += sizes[model]
                        if taken <= memory[worker]:
                            cost = _cost(homes, work, squares, worth)
                            if cost < best:
                                best, one, other = cost, first, second
                        homes[:, worker] = before
                if one > -2:
                    homes[comes, worker] = True
                    if one >= 0:
                        homes[one, worker] = False
                    if other >= 0:
                        homes[other, worker] = False
                    least, better = best, True


@compiled_within()
def _cost(homes: BoolTable, work: FloatTable, squares: FloatTable, worth: FloatArray) -> float:
    """What waiting costs with these homes, the work of each model in the best parts that are found."""
    models, workers = homes.shape
    busy, rest, counts = np.zeros(workers), np.zeros(workers), np.zeros(workers)
    given = np.zeros((models + 1, _PARTS), np.int64)
    for turn in range(2):  # once with what comes before it in place, and once more with all
        for model in range(models + 1):
            for part in range(_PARTS):
                if turn:
                    _give(busy, rest, counts, work, squares, worth, model, given[model, part], -1.0)
                best, least = -1, np.inf
                for worker in range(workers):
                    if work[model, worker] == np.inf or not (model == models or homes[model, worker]):
                        continue
                    now = _waiting(busy[worker], rest[worker], counts[worker])
                    then = _waiting(
                        busy[worker] + work[model, worker] / _PARTS,
                        rest[worker] + squares[model, worker] / _PARTS,
                        counts[worker] + worth[model] / _PARTS,
                    )
                    if then - now < least:
                        best, least = worker, then - now
                if best < 0:
                    if worth[model] > 0 and model != models:
                        return np.inf
                    break
                given[model, part] = best
                _give(busy, rest, counts, work, squares, worth, model, best, 1.0)
    total = 0.0
    for worker in range(workers):
        total += _waiting(busy[worker], rest[worker], counts[worker])
    return total


@compiled_within()
def _give(
    busy: FloatArray, rest: FloatArray, counts: FloatArray, work: FloatTable, squares: FloatTable, worth: FloatArray,
    model: int, worker: int, sign: float,
) -> None:  # fmt: skip
    busy[worker] += sign * work[model, worker] / _PARTS
    rest[worker] += sign * squares[model, worker] / _PARTS
    counts[worker] += sign * worth[model] / _PARTS


@compiled_within()
def _waiting(busy: float, rest: float, counts: float) -> float:
    """What waits cost at one worker: W, of all that comes there."""
    if busy < _FULL:
        return counts * rest / (1.0 - busy)
    return counts * rest * (1.0 + (busy - _FULL) / (1.0 - _FULL) * 10.0) / (1.0 - _FULL)
