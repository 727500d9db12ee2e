"""What workers know of each other in the simulator of Compass's authors: rows as of some time (`navigator`).

That program keeps the history of every row and looks up what it wants: a worker sees the others' loads as they are and
their memories as of a moment ago; its own the other way round. Who is no worker sees all as of a moment ago. The time
may be one to come, for which everything counts that has been decided by now.
"""

from __future__ import annotations

from bisect import insort
from collections import deque

import numpy as np

from fairway.place.arrays import BoolArray, FloatArray
from fairway.place.fleet import OUTSIDE, Fleet
from fairway.place.state import NEVER, View


class PastRows:
    """What waits at each worker and what its memory holds; of both, readers may see what is so much older."""

    def __init__(self, fleet: Fleet, load_age: float, cache_age: float) -> None:
        self._sizes: list[float] = fleet.model_bytes.tolist()
        self._load_age = load_age
        self._cache_age = cache_age
        self._queued = np.zeros(len(fleet))
        self._busy_until = np.full(len(fleet), NEVER)
        self._loads: list[list[tuple[float, float]]] = [[(NEVER, 0.0)] for _ in fleet.workers]
        self._recent: deque[tuple[float, int]] = deque()
        self._cached = np.zeros((len(fleet.models), len(fleet)), dtype=np.bool_)
        self._nowhere = np.zeros_like(self._cached)
        self._free = fleet.memory.copy()
        self._changes: list[tuple[float, int, int, bool]] = []

    def set_load(self, worker: int, queued: float, now: float) -> None:
        """So much waits at a worker from now on."""
        self._queued[worker] = queued
        self._loads[worker].append((now, queued))
        self._recent.append((now, worker))

    def change_memory(self, worker: int, model: int, held: bool, at: float) -> None:
        """A worker's memory takes in, or gives up, a model at a time."""
        insort(self._changes, (at, worker, model, held), key=lambda change: change[0])

    def view(self, me: int, at: float, now: float) -> View:
        """What a reader sees as of a time, now or later."""
        while self._changes and self._changes[0][0] <= now - self._cache_age:
            _, worker, model, held = self._changes.pop(0)
            self._set(self._cached, self._free, worker, model, held)
        cached, free = self._cached, self._free
        for time, worker, model, held in self._changes:
            if time <= at - self._cache_age:
                if cached is self._cached:
                    cached, free = cached.copy(), free.copy()
                self._set(cached, free, worker, model, held)
        if me == OUTSIDE:
            nothing = np.zeros(len(cached), dtype=np.bool_)
            others = (self._past_loads(now), self._busy_until, cached, free)
            return View(me, *others, 0.0, NEVER, nothing, 0.0, self._nowhere)
        own_cached, own_free = self._cached[:, me].copy(), float(self._free[me])
        for time, worker, model, held in self._changes:
            if time <= at and worker == me:
                own_cached[model] = held
                own_free += -self._sizes[model] if held else self._sizes[model]
        own_queued = _as_of(self._loads[me], at - self._load_age)
        others = (self._queued, self._busy_until, cached, free)
        return View(me, *others, own_queued, NEVER, own_cached, own_free, self._nowhere)

    def _past_loads(self, now: float) -> FloatArray:
        past, queued = now - self._load_age, self._queued.copy()
        while self._recent and self._recent[0][0] <= past:
            self._recent.popleft()
        for _, worker in self._recent:
            queued[worker] = _as_of(self._loads[worker], past)
        return queued

    def _set(self, cached: BoolArray, free: FloatArray, worker: int, model: int, held: bool) -> None:
        cached[model, worker] = held
        free[worker] += -self._sizes[model] if held else self._sizes[model]


def _as_of(loads: list[tuple[float, float]], at: float) -> float:
    return next(queued for time, queued in reversed(loads) if time <= at)
