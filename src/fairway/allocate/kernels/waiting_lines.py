"""Queues of whole jobs before the workers of each type, with the least total waiting (AlloX, EuroSys'20, §4).

The last job of a worker's queue delays only itself, the one before it two jobs, and so on: a job in position k, counted
from the end, adds k * (seconds it runs there) to the sum of all completion times. All workers of a type are alike, so
the places to be filled are layers: position k of type j, with room for N_j workers. A gang takes its s workers in one
layer; for gangs, which can delay several jobs at each position, the sum is a model of the waiting and not its exact
value.

Jobs on one worker each are a transportation problem: exact. For gangs the same problem, with jobs taken apart into
workers, bounds the sum from below and says on which type each gang is best. What queues of whole gangs then are above
the bound is closed by branch and bound on those (job, layer) that its prices do not rule out, unless there are too many
of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairway.allocate.allocation import EXACT
from fairway.allocate.arrays import BoolArray, FloatArray, IntArray
from fairway.allocate.gangs.program import MOST_COLUMNS, cheapest_whole
from fairway.allocate.kernels.transport import cheapest_transport


@dataclass(frozen=True, slots=True)
class Queues:
    """The type of each job and its position from the end of a queue; no queues have a lower sum than `bound`."""

    columns: IntArray
    positions: IntArray
    bound: float


@dataclass(frozen=True, slots=True)
class _Layers:
    """All places, type by type and position by position: room for `room[c]` workers at `costs[i, c]` for job i.

    Those that are `basic` would do if gangs could be taken apart.
    """

    types: IntArray
    positions: IntArray
    basic: BoolArray
    room: IntArray
    costs: FloatArray


def queue_up(seconds: FloatArray, scale_factors: IntArray, workers: IntArray) -> Queues:
    """Put every job into a queue such that the sum of position * seconds is least.

    `seconds[i, j]` is how long job i runs on type j, infinite where it cannot or its gang does not fit; every job must
    be able to run somewhere.
    """
    if not len(seconds):
        return Queues(np.zeros(0, np.int64), np.zeros(0, np.int64), 0.0)
    layers = _layers(seconds, scale_factors, workers)
    per_worker = layers.costs / scale_factors[:, None]
    longest_first = np.argsort(-per_worker.min(axis=1), kind="stable")
    sent, prices = np.zeros(layers.costs.shape, dtype=np.int64), np.zeros(len(layers.room))
    sent[np.ix_(longest_first, layers.basic)], prices[layers.basic] = cheapest_transport(
        per_worker[np.ix_(longest_first, layers.basic)], scale_factors[longest_first], layers.room[layers.basic]
    )
    if (scale_factors == 1).all():
        columns = layers.types[sent.argmax(axis=1)]
        positions = _stack(columns, seconds, scale_factors, workers)
        return Queues(columns, positions, float(seconds[np.arange(len(seconds)), columns] @ positions))
    bound = float(per_worker[sent > 0] @ sent[sent > 0])
    return _of_gangs(layers, seconds, scale_factors, workers, sent, prices, bound)


def line_up(positions: IntArray, scale_factors: IntArray, workers: int) -> tuple[list[list[int]], BoolArray]:
    """The workers of one type, counted from 0, that each job of its queues waits for, and which jobs start now.

    Layer by layer from the front, each in order of arrival. A gang takes workers that no job uses before it, if there
    are enough: then it starts now. Otherwise it waits, as far as possible, for workers that are in use anyway.
    """
    gangs: list[list[int]] = [[] for _ in positions]
    starts = np.zeros(len(positions), dtype=bool)
    touched: list[int] = []
    untouched = list(range(workers))
    for position in sorted(set(positions.tolist()), reverse=True):
        layer = np.flatnonzero(positions == position).tolist()
        for job in layer:
            size = int(scale_factors[job])
            if size <= len(untouched):
                starts[job] = True
                gangs[job], untouched = untouched[:size], untouched[size:]
        for job in layer:
            if not starts[job]:
                waits_for = (touched + untouched)[: int(scale_factors[job])]
                touched, untouched = touched[len(waits_for) :], untouched[max(len(waits_for) - len(touched), 0) :]
                gangs[job] = waits_for
        touched = sorted(set(range(workers)) - set(untouched))
    return gangs, starts


def _layers(seconds: FloatArray, scale_factors: IntArray, workers: IntArray) -> _Layers:
    """As many layers of each type as the best queues can need.

    No job need be in layer k while there is room for it in layer k - 1. With one worker per job, all layers but one are
    therefore full, and ceil(total / N_j) of them hold everyone. With gangs, any two layers hold more than N_j workers
    (else they could be one), which makes the number of layers less than 2 * total / N_j.
    """
    types, positions, basic = [], [], []
    for j, (fits, size) in enumerate(zip(np.isfinite(seconds).T, workers.tolist(), strict=True)):
        total = int(scale_factors[fits].sum())
        if total:
            full, most = -(-total // size), -(-2 * total // size) - 1
            depth = full if scale_factors[fits].max() == 1 else max(full, min(int(fits.sum()), most))
            types.append(np.full(depth, j))
            positions.append(np.arange(1, depth + 1))
            basic.append(positions[-1] <= full)
    column, position = np.concatenate(types), np.concatenate(positions)
    return _Layers(column, position, np.concatenate(basic), workers[column], seconds[:, column] * position)


def _stack(columns: IntArray, seconds: FloatArray, scale_factors: IntArray, workers: IntArray) -> IntArray:
    """The position of each job if each type fills its layers from the end, longest jobs (per worker) first.

    The best order for jobs on one worker each; for gangs, which fill the first layer with room for them, a good one.
    """
    positions = np.zeros(len(columns), dtype=np.int64)
    mine = seconds[np.arange(len(columns)), columns] / scale_factors
    free: list[list[int]] = [[] for _ in workers]
    # Of equally long jobs, the one that came first runs first.
    for job in np.lexsort((-np.arange(len(columns)), -mine)).tolist():
        layers, size = free[columns[job]], int(scale_factors[job])
        layer = next((k for k, room in enumerate(layers) if room >= size), len(layers))
        if layer == len(layers):
            layers.append(int(workers[columns[job]]))
        layers[layer] -= size
        positions[job] = layer + 1
    return positions


def _of_gangs(
    layers: _Layers,
    seconds: FloatArray,
    scale_factors: IntArray,
    workers: IntArray,
    sent: IntArray,
    prices: FloatArray,
    bound: float,
) -> Queues:
    """Queues of whole gangs, from the solution that takes them apart: each on the type where most of it went."""
    jobs = np.arange(len(seconds))
    by_type = np.stack([sent[:, layers.types == j].sum(axis=1) for j in range(len(workers))], axis=1)
    columns = by_type.argmax(axis=1)
    positions = _stack(columns, seconds, scale_factors, workers)
    excess = float(seconds[jobs, columns] @ positions) - bound
    if excess <= EXACT * bound:
        return Queues(columns, positions, bound)
    # By the prices, any solution that puts a job into a place costs at least this much more than the bound.
    surcharge = layers.costs - scale_factors[:, None] * prices
    surcharge -= surcharge.min(axis=1, keepdims=True)
    here = (layers.types == columns[:, None]) & (layers.positions == positions[:, None])
    promising = (surcharge <= excess) | here
    if promising.sum() > MOST_COLUMNS:
        return Queues(columns, positions, bound)
    places, proven = cheapest_whole(layers.costs, scale_factors, layers.room, promising, here.argmax(axis=1))
    least = min(float(layers.costs[jobs, places].sum()), max(bound, proven))
    return Queues(layers.types[places], layers.positions[places], least)
