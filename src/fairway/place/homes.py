"""Decides where each model is at home: an arrangement in which the work of all models is spread evenly over workers.

Memory that decides task by task settles into some arrangement by chance, such as one with the two busiest models on the
same worker, and leaves it only by loads that undo each other. So all workers work out the same good one beforehand,
from what all of them know: the workflows, taken to be asked for equally often, and the fleet. Nothing is forced to be
at home; but the planner of a task counts more for driving a model from its home than for driving a guest away, and a
worker gives up guests first.

First every model gets a home, those with the most work before others, each at the worker with the least work so far
that has room. Then, as long as there is room, the model with the most work for each of its homes gets one more.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairway.compiled import FloatTable, compiled
from fairway.place.arrays import BoolArray, FloatArray
from fairway.place.fleet import Fleet
from fairway.place.graph import TaskGraph
from fairway.place.kinds_of_worker import separated
from fairway.place.placer import WorkerRules


def homes_under(rules: WorkerRules, graphs: Sequence[TaskGraph], fleet: Fleet) -> BoolArray | None:
    """The homes of models under a scheduler; None if it wants none."""
    if not rules.settles:
        return None
    homes = homes_of(graphs, fleet)
    return separated(homes, graphs, fleet) if rules.separates else homes


def homes_of(graphs: Sequence[TaskGraph], fleet: Fleet) -> BoolArray:
    """By model and worker, whether the model is at home there. One that fits nowhere beside others has no home."""
    work = np.zeros((len(fleet.models), len(fleet)))
    for graph in graphs:
        for seconds, needed in zip(graph.seconds, graph.needed, strict=True):
            for model in needed.tolist():
                work[model] += seconds / len(needed)
    return _settled(work, fleet.model_bytes, fleet.memory)


@compiled()
def _settled(work: FloatTable, model_bytes: FloatArray, memory: FloatArray) -> BoolArray:
    """`work[m, w]` is what there is to do with model m where worker w does all of it, infinite where w cannot."""
    models, workers = work.shape
    homes = np.zeros((models, workers), np.bool_)
    copies = np.zeros(models, np.int64)
    open_ = np.ones(models, np.bool_)
    free = memory.copy()
    busy = np.zeros(workers)
    least = np.empty(models)
    for model in range(models):
        least[model] = work[model].min() if workers else np.inf
    while True:
        chosen, homeless, most = -1, False, -1.0
        for model in range(models):
            each = least[model] / max(copies[model], 1)
            first = copies[model] == 0
            if open_[model] and least[model] != np.inf and (first > homeless or (first == homeless and each > most)):
                chosen, homeless, most = model, first, each
        if chosen < 0:
            return homes
        best = -1
        for worker in range(workers):
            can = work[chosen, worker] != np.inf and not homes[chosen, worker] and free[worker] >= model_bytes[chosen]
            if can and (best < 0 or busy[worker] < busy[best]):
                best = worker
        if best < 0:
            open_[chosen] = False
            continue
        homes[chosen, best] = True
        free[best] -= model_bytes[chosen]
        before = copies[chosen]
        copies[chosen] = before + 1
        for worker in range(workers):
            if homes[chosen, worker]:
                share = work[chosen, worker] / (before + 1)
                busy[worker] += share if worker == best else share - work[chosen, worker] / before
