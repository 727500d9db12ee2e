"""How many CPUs and accelerator slices of each worker are free now, as floor 2 sees them.

The engine that plans keeps one `Capacity` up to date with `take` and `give`; decisions only read it. Where accelerators
are cut by MIG, not every number of free slices can be had: then `free_gpu` is the size of the largest instance that
still fits beside the others in their places, and every smaller instance fits, too (`slices.places`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fairway.configure.arrays import IntArray
from fairway.configure.search.kernels import any_fits
from fairway.configure.slices.places import EMPTY, Places, State
from fairway.errors import FairwayError, InputError


@dataclass(frozen=True, eq=False)
class Capacity:
    """The free CPUs and slices of each worker, out of `cpu` and `gpu`; workers are alike.

    `places` are those of their GPUs, if MIG cuts them.
    """

    free_cpu: IntArray
    free_gpu: IntArray
    cpu: int
    gpu: int
    places: Places | None = None
    _states: list[State] = field(default_factory=list)

    @classmethod
    def idle(cls, count: int, cpu: int = 16, gpu: int = 7, places: Places | None = None) -> Capacity:
        """So many workers with nothing to do."""
        if count < 1:
            raise InputError(f"workers: {count} given, expected a whole number >= 1")
        if places is not None and places.device.compute != gpu:
            raise InputError(f"workers have {gpu} slices, but a {places.device.name} has {places.device.compute}")
        return cls(np.full(count, cpu, np.int64), np.full(count, gpu, np.int64), cpu, gpu, places, [EMPTY] * count)

    def __len__(self) -> int:
        return len(self.free_cpu)

    def fits(self, worker: int, cpu: int, gpu: int) -> bool:
        """Whether a task of this size can start there now."""
        return bool(self.free_cpu[worker] >= cpu and self.free_gpu[worker] >= gpu)

    def has_room(self, cpu: int, gpu: int) -> bool:
        """Whether a task of this size can start anywhere now."""
        return any_fits(self.free_cpu, self.free_gpu, cpu, gpu)

    def take(self, worker: int, cpu: int, gpu: int) -> int:
        """A task starts; the place of its instance, 0 where places do not matter."""
        if not self.fits(worker, cpu, gpu):
            free = f"{self.free_cpu[worker]} CPUs and {self.free_gpu[worker]} slices"
            raise FairwayError(f"worker {worker} has {free} free, a task of {cpu} and {gpu} was to start there")
        self.free_cpu[worker] -= cpu
        if self.places is None or gpu == 0:
            self.free_gpu[worker] -= gpu
            return 0
        start = self.places.take(self._states[worker], gpu)
        assert start is not None, "the largest instance that fits says that this one does"
        self._set(worker, self.places.with_instance(self._states[worker], gpu, start))
        return start

    def give(self, worker: int, cpu: int, gpu: int, place: int = 0) -> None:
        """A task has ended, whose instance was in this place."""
        self.free_cpu[worker] += cpu
        if self.places is None or gpu == 0:
            self.free_gpu[worker] += gpu
        else:
            self._set(worker, self.places.without_instance(self._states[worker], gpu, place))

    def leave(self, worker: int) -> None:
        """A worker is gone: nothing fits there any more."""
        self.free_cpu[worker] = self.free_gpu[worker] = 0

    def join(self, worker: int) -> None:
        """A worker is there, or back, with nothing to do."""
        self.free_cpu[worker], self.free_gpu[worker] = self.cpu, self.gpu
        self._states[worker] = EMPTY

    def _set(self, worker: int, state: State) -> None:
        assert self.places is not None
        self._states[worker] = state
        self.free_gpu[worker] = self.places.largest(state)

    def used(self) -> tuple[float, float]:
        """Which part of all CPUs and of all slices is in use."""
        capacity_cpu, capacity_gpu = self.cpu * len(self), self.gpu * len(self)
        free_gpu = float(self.free_gpu.sum())
        if self.places is not None:
            there = zip(self.free_gpu.tolist(), self._states, strict=True)
            free_gpu = sum(self.gpu - (state >> self.places.device.memory) if free else 0 for free, state in there)
        return (
            1.0 - float(self.free_cpu.sum()) / capacity_cpu if capacity_cpu else 0.0,
            1.0 - free_gpu / capacity_gpu if capacity_gpu else 0.0,
        )
