"""Where a batch fits: the loops over workers with their free CPUs and slices, compiled (ESG §3.4, ESG_Dispatch)."""

from __future__ import annotations

from functools import cache
from math import gcd

from fairway.compiled import compiled
from fairway.place.arrays import BoolArray, IntArray

_STEP = 5


@compiled()
def best_fit(free_cpu: IntArray, free_gpu: IntArray, cpu: int, gpu: int, among: BoolArray) -> int:
    """The worker that a batch leaves the fewest slices free on, then the fewest CPUs, then the first; -1 for none."""
    best = -1
    for worker in range(len(free_cpu)):
        if not among[worker] or free_cpu[worker] < cpu or free_gpu[worker] < gpu:
            continue
        if (
            best < 0
            or free_gpu[worker] < free_gpu[best]
            or (free_gpu[worker] == free_gpu[best] and free_cpu[worker] < free_cpu[best])
        ):
            best = worker
    return best


@compiled()
def first_fit(
    free_cpu: IntArray, free_gpu: IntArray, cpu: int, gpu: int, among: BoolArray, home: int, step: int
) -> int:
    """The first worker from home on, in steps around all of them, that a batch fits on; -1 for none."""
    worker = home
    for _ in range(len(free_cpu)):
        if among[worker] and free_cpu[worker] >= cpu and free_gpu[worker] >= gpu:
            return worker
        worker = (worker + step) % len(free_cpu)
    return -1


@compiled()
def least_left(
    free_cpu: IntArray,
    free_gpu: IntArray,
    cpu: int,
    gpu: int,
    among: BoolArray,
    cpu_price: float,
    gpu_price: float,
) -> int:
    """The worker on which what a batch leaves free is worth least, the first of equals; -1 for none."""
    best, least = -1, 0.0
    for worker in range(len(free_cpu)):
        if not among[worker] or free_cpu[worker] < cpu or free_gpu[worker] < gpu:
            continue
        left = (free_cpu[worker] - cpu) * cpu_price + (free_gpu[worker] - gpu) * gpu_price
        if best < 0 or left < least:
            best, least = worker, left
    return best


def home_of(application: int, count: int) -> int:
    """The worker at which an application's requests are received first."""
    return (3 * application + 1) % count


@cache
def step_of(count: int) -> int:
    """How far to the next worker if one is full: a step that gets around to all of them."""
    step = _STEP
    while gcd(step, count) != 1:
        step += 1
    return step
