"""What waits at each worker, as others see it: for each model, how many tasks, how urgent the first is, how much work.

With it a planner can tell which batch a task would join, and which of the tasks that wait there would run before it.
Rows are pushed together with loads. The last row is for tasks that need no model.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from fairway.place.arrays import FloatArray

COUNT, LATEST, SECONDS = 0, 1, 2
"""Of the tasks in time that wait for a model: how many, the least of their latest start times, and what they take."""

FIELDS = 3


class Lines:
    """`pushed[f, m, w]` is field f of model m at worker w, as others see it; each worker knows its own exactly.

    Others see changes after `delay` seconds.
    """

    __slots__ = ("_delay", "_own", "_under_way", "pushed")

    def __init__(self, models: int, workers: int, pushed: FloatArray | None = None, *, delay: float = 0.0) -> None:
        shape = (FIELDS, models + 1, workers)
        self.pushed = np.zeros(shape) if pushed is None else pushed
        self._own = np.zeros((workers, FIELDS, models + 1))
        self._delay = delay
        self._under_way: deque[tuple[float, int, FloatArray]] = deque()

    @staticmethod
    def size(models: int, workers: int) -> int:
        """How many numbers the rows of all workers are."""
        return FIELDS * (models + 1) * workers

    def write(self, worker: int, row: FloatArray, now: float) -> None:
        """Set a worker's own row; it must not be changed later."""
        self._own[worker] = row
        if self._delay:
            self._under_way.append((now + self._delay, worker, row))
        else:
            self.pushed[:, :, worker] = row

    def receive(self, worker: int, row: tuple[float, ...]) -> None:
        """Take a peer's row as it pushed it, field by field."""
        if len(row) == self._own[worker].size:
            self.pushed[:, :, worker] = np.reshape(row, self._own[worker].shape)

    def see(self, now: float) -> FloatArray:
        """All rows as they are seen now."""
        under_way = self._under_way
        while under_way and under_way[0][0] <= now:
            _, worker, row = under_way.popleft()
            self.pushed[:, :, worker] = row
        return self.pushed

    def own(self, worker: int) -> FloatArray:
        """A worker's own row."""
        row: FloatArray = self._own[worker]
        return row

    def clear(self, worker: int) -> None:
        """A worker comes or goes: nothing waits there."""
        self._under_way = deque(news for news in self._under_way if news[1] != worker)
        self._own[worker] = 0.0
        self.pushed[:, :, worker] = 0.0
