"""How many CPUs and accelerator slices of each worker are free now, as floor 2 sees them.

The engine that plans keeps one `Capacity` up to date with `take` and `give`; decisions only read it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairway.configure.arrays import IntArray
from fairway.configure.search.kernels import any_fits
from fairway.errors import FairwayError, InputError


@dataclass(frozen=True, eq=False)
class Capacity:
    """The free CPUs and slices of each worker, out of `cpu` and `gpu`; workers are alike."""

    free_cpu: IntArray
    free_gpu: IntArray
    cpu: int
    gpu: int

    @classmethod
    def idle(cls, count: int, cpu: int = 16, gpu: int = 7) -> Capacity:
        """So many workers with nothing to do."""
        if count < 1:
            raise InputError(f"workers: {count} given, expected a whole number >= 1")
        return cls(np.full(count, cpu, np.int64), np.full(count, gpu, np.int64), cpu, gpu)

    def __len__(self) -> int:
        return len(self.free_cpu)

    def fits(self, worker: int, cpu: int, gpu: int) -> bool:
        """Whether a task of this size can start there now."""
        return bool(self.free_cpu[worker] >= cpu and self.free_gpu[worker] >= gpu)

    def has_room(self, cpu: int, gpu: int) -> bool:
        """Whether a task of this size can start anywhere now."""
        return any_fits(self.free_cpu, self.free_gpu, cpu, gpu)

    def take(self, worker: int, cpu: int, gpu: int) -> None:
        """A task starts."""
        if not self.fits(worker, cpu, gpu):
            free = f"{self.free_cpu[worker]} CPUs and {self.free_gpu[worker]} slices"
            raise FairwayError(f"worker {worker} has {free} free, a task of {cpu} and {gpu} was to start there")
        self.free_cpu[worker] -= cpu
        self.free_gpu[worker] -= gpu

    def give(self, worker: int, cpu: int, gpu: int) -> None:
        """A task has ended."""
        self.free_cpu[worker] += cpu
        self.free_gpu[worker] += gpu

    def leave(self, worker: int) -> None:
        """A worker is gone: nothing fits there any more."""
        self.free_cpu[worker] = self.free_gpu[worker] = 0

    def join(self, worker: int) -> None:
        """A worker is there, or back, with nothing to do."""
        self.free_cpu[worker], self.free_gpu[worker] = self.cpu, self.gpu

    def used(self) -> tuple[float, float]:
        """Which part of all CPUs and of all slices is in use."""
        capacity_cpu, capacity_gpu = self.cpu * len(self), self.gpu * len(self)
        return (
            1.0 - float(self.free_cpu.sum()) / capacity_cpu if capacity_cpu else 0.0,
            1.0 - float(self.free_gpu.sum()) / capacity_gpu if capacity_gpu else 0.0,
        )
