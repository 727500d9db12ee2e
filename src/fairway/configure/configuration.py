"""What a task can be given: a batch size, CPUs and slices of a GPU; all such triples; and what they cost.

    rate(c, g)       = c · price of a CPU + g · price of a GPU slice                       dollars per hour
    cost(b, c, g, t) = rate(c, g) · t / b / 3600                                           dollars per job

A batch of b jobs shares the bill of its task. Not every number of slices exists on real hardware: `MIG_SLICES` are
those of an A100 or H100.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fairway.configure.arrays import FloatArray, IntArray
from fairway.errors import InputError

MIG_SLICES = (1, 2, 3, 4, 7)
"""The sizes, in slices, of the instances that a GPU of seven slices can be partitioned into (NVIDIA MIG)."""

SECONDS_PER_HOUR = 3600.0


class Configuration(NamedTuple):
    """Jobs per task, CPUs and GPU slices."""

    batch: int
    cpu: int
    gpu: int


SMALLEST = Configuration(1, 1, 1)
"""What a queue is forced out with after it has failed too often."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Dollars per hour of a CPU and of a GPU slice."""

    cpu: float = 0.034
    gpu: float = 0.67

    def __post_init__(self) -> None:
        for name, price in (("cpu", self.cpu), ("gpu", self.gpu)):
            if not 0 <= price < float("inf"):
                raise InputError(f"prices.{name}: {price} given, expected a number >= 0 (dollars per hour)")

    def rate(self, cpu: float, gpu: float) -> float:
        """Dollars per hour of what a task holds."""
        return cpu * self.cpu + gpu * self.gpu

    def cost_per_job(self, batch: IntArray, cpu: IntArray, gpu: IntArray, seconds: FloatArray) -> FloatArray:
        """Dollars per job, for each of several configurations."""
        cost: FloatArray = (cpu * self.cpu + gpu * self.gpu) * seconds / batch / SECONDS_PER_HOUR
        return cost


@dataclass(frozen=True, slots=True)
class ConfigurationSpace:
    """The sizes to choose from; a configuration takes one of each."""

    batches: tuple[int, ...] = (1, 2, 4, 8, 16, 32)
    cpus: tuple[int, ...] = (1, 2, 4, 8, 16)
    gpus: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7)

    def __post_init__(self) -> None:
        for name, sizes, least in (("batches", self.batches, 1), ("cpus", self.cpus, 0), ("gpus", self.gpus, 0)):
            if not sizes or min(sizes) < least or list(sizes) != sorted(set(sizes)):
                raise InputError(f"{name}: {list(sizes)} given, expected rising whole numbers from {least} on")

    def mig_legal(self) -> ConfigurationSpace:
        """The same with only those numbers of slices that the hardware offers."""
        return ConfigurationSpace(self.batches, self.cpus, tuple(size for size in self.gpus if size in MIG_SLICES))

    def arrays(self) -> tuple[IntArray, IntArray, IntArray]:
        """Batch, CPUs and slices of every configuration; slices vary fastest, the batch slowest."""
        batch, cpu, gpu = np.meshgrid(_whole(self.batches), _whole(self.cpus), _whole(self.gpus), indexing="ij")
        return batch.ravel(), cpu.ravel(), gpu.ravel()


def _whole(sizes: Sequence[int]) -> IntArray:
    return np.asarray(sizes, np.int64)
