"""A batch whose size is decided, and what is free on each worker: what a placer chooses the batch's worker from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fairway.place.arrays import BoolArray, FloatArray, IntArray
from fairway.place.graph import TaskGraph

NOWHERE = -1
"""The answer when no worker has what a batch needs."""


class Batch(NamedTuple):
    """Jobs of one stage that start together, and take so many seconds on `cpu` CPUs and `gpu` slices of a worker.

    `key` is that of the oldest request. `sources` has, for each job, the workers that hold its inputs, in the order of
    the stages before; none for a stage that takes the request itself. `home` is where the requests of its workflow are
    received first. `warm` marks workers with an idle copy of the stage's model; None if all have one.
    """

    graph: TaskGraph
    stage: int
    key: int
    seconds: float
    cpu: int
    gpu: int
    sources: Sequence[tuple[int, ...]] = ()
    home: int = 0
    warm: BoolArray | None = None

    def warm_first(self) -> tuple[BoolArray, ...]:
        """The workers that can run its stage: those with an idle copy of its model, if that is known, then all."""
        runnable = self.graph.runnable[self.stage]
        return (runnable,) if self.warm is None else (self.warm & runnable, runnable)


class Room(NamedTuple):
    """The free CPUs and slices of each worker, and what one of either is worth; a worker that has left has none."""

    cpu: IntArray
    gpu: IntArray
    cpu_price: float = 0.0
    gpu_price: float = 1.0

    def fits(self, batch: Batch) -> BoolArray:
        """The workers that have room for a batch, and can run its stage."""
        mask: BoolArray = (self.cpu >= batch.cpu) & (self.gpu >= batch.gpu) & batch.graph.runnable[batch.stage]
        return mask


def ends_there(batch: Batch, room: Room) -> FloatArray:
    """By worker, how long a batch would take from now on if it went there: its inputs, then its run.

    Infinite where it does not fit. What the worker has to do or to load first is not counted.
    """
    graph, hosts = batch.graph, batch.graph.fleet.hosts
    before = graph.workflow.predecessors[batch.stage]
    inputs = np.zeros(len(hosts))
    if not before:
        inputs[:] = graph.input_seconds[batch.stage]
    for job in set(batch.sources):
        for source, worker in zip(before, job, strict=True):
            row = np.where(hosts == hosts[worker], graph.near_seconds[source], graph.far_seconds[source])
            row[worker] = graph.local_seconds[source]
            np.maximum(inputs, row, out=inputs)
    return np.where(room.fits(batch), inputs + batch.seconds, np.inf)
