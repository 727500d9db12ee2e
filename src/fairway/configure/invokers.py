"""The machines that run tasks: how many CPUs and GPU slices of each are free now, and which of them suits a task.

Whoever drives the decisions keeps one `Invokers` up to date with `take` and `give`; decisions only read it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

import numpy as np
from numba import njit

from fairway.configure.arrays import BoolArray, IntArray
from fairway.errors import FairwayError, InputError

NOWHERE = -1
"""The answer when no invoker has what a task needs."""

_STEP = 5


@dataclass(frozen=True, eq=False)
class Invokers:
    """The free CPUs and GPU slices of each invoker, out of `cpu` and `gpu`."""

    free_cpu: IntArray
    free_gpu: IntArray
    cpu: int
    gpu: int
    everywhere: BoolArray

    @classmethod
    def idle(cls, count: int, cpu: int = 16, gpu: int = 7) -> Invokers:
        """So many invokers with nothing to do."""
        if count < 1:
            raise InputError(f"invokers: {count} given, expected a whole number >= 1")
        return cls(np.full(count, cpu, np.int64), np.full(count, gpu, np.int64), cpu, gpu, np.ones(count, np.bool_))

    def __len__(self) -> int:
        return len(self.free_cpu)

    def fits(self, invoker: int, cpu: int, gpu: int) -> bool:
        """Whether a task of this size can start there now."""
        return bool(self.free_cpu[invoker] >= cpu and self.free_gpu[invoker] >= gpu)

    def take(self, invoker: int, cpu: int, gpu: int) -> None:
        """A task starts."""
        if not self.fits(invoker, cpu, gpu):
            free = f"{self.free_cpu[invoker]} CPUs and {self.free_gpu[invoker]} slices"
            raise FairwayError(f"invoker {invoker} has {free} free, a task of {cpu} and {gpu} was to start there")
        self.free_cpu[invoker] -= cpu
        self.free_gpu[invoker] -= gpu

    def give(self, invoker: int, cpu: int, gpu: int) -> None:
        """A task has ended."""
        self.free_cpu[invoker] += cpu
        self.free_gpu[invoker] += gpu

    def leave(self, invoker: int) -> None:
        """It is gone: nothing fits there any more."""
        self.free_cpu[invoker] = self.free_gpu[invoker] = 0

    def join(self, invoker: int) -> None:
        """It is there, or back, with nothing to do."""
        self.free_cpu[invoker], self.free_gpu[invoker] = self.cpu, self.gpu

    def used(self) -> tuple[float, float]:
        """Which part of all CPUs and of all slices is in use."""
        capacity_cpu, capacity_gpu = self.cpu * len(self), self.gpu * len(self)
        return (
            1.0 - float(self.free_cpu.sum()) / capacity_cpu if capacity_cpu else 0.0,
            1.0 - float(self.free_gpu.sum()) / capacity_gpu if capacity_gpu else 0.0,
        )


@njit(cache=True)
def best_fit(free_cpu: IntArray, free_gpu: IntArray, cpu: int, gpu: int, among: BoolArray) -> int:
    """The invoker that a task leaves the fewest slices free on, then the fewest CPUs, then the first; -1 for none."""
    best = -1
    for invoker in range(len(free_cpu)):
        if not among[invoker] or free_cpu[invoker] < cpu or free_gpu[invoker] < gpu:
            continue
        if (
            best < 0
            or free_gpu[invoker] < free_gpu[best]
            or (free_gpu[invoker] == free_gpu[best] and free_cpu[invoker] < free_cpu[best])
        ):
            best = invoker
    return best


@njit(cache=True)
def first_fit(
    free_cpu: IntArray, free_gpu: IntArray, cpu: int, gpu: int, among: BoolArray, home: int, step: int
) -> int:
    """The first invoker from home on, in steps around all of them, that a task fits on; -1 for none."""
    invoker = home
    for _ in range(len(free_cpu)):
        if among[invoker] and free_cpu[invoker] >= cpu and free_gpu[invoker] >= gpu:
            return invoker
        invoker = (invoker + step) % len(free_cpu)
    return -1


def home_of(application: int, count: int) -> int:
    """The invoker at which an application's requests are received first."""
    return (3 * application + 1) % count


def step_of(count: int) -> int:
    """How far to the next invoker if one is full: a step that gets around to all of them."""
    step = _STEP
    while gcd(step, count) != 1:
        step += 1
    return step
