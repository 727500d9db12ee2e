"""The state table in shared memory: one row per worker, written by that worker alone, read by all without a lock.

Every number of a row is eight bytes in their proper place (a model's flag one), which the hardware writes and reads as
a whole. A reader may see a load that is newer than the models beside it; that is the staleness that planning lives with
anyway. When a worker dies its supervisor marks the row absent, in the dead worker's place, and when one gives no sign
of life it is called busy.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import numpy as np

from fairway.place.arrays import BoolArray
from fairway.place.fleet import Fleet
from fairway.place.state import ABSENT, NEVER, StateTable

_NUMBER = 8


class SharedTable(StateTable):
    """The rows of all workers, in a file that all of them have mapped."""

    def __init__(self, fleet: Fleet, path: Path, homes: BoolArray | None = None) -> None:
        super().__init__(fleet, homes=homes)
        workers, models = len(fleet), len(fleet.models)
        self._map = _mapped(path, _size(workers, models))
        numbers = np.ndarray((3, workers), dtype=np.float64, buffer=self._map)
        cached = np.ndarray((models, workers), np.bool_, self._map, offset=3 * _NUMBER * workers)
        queued, busy_until, free = numbers
        self._use_rows(queued, busy_until, free, cached)

    @classmethod
    def create(cls, fleet: Fleet, path: Path) -> SharedTable:
        """Make the file, with nobody present yet."""
        with path.open("xb") as file:
            os.fchmod(file.fileno(), 0o600)
            file.truncate(_size(len(fleet), len(fleet.models)))
        table = cls(fleet, path)
        table._queued[:], table._busy_until[:], table._free[:] = ABSENT, NEVER, fleet.memory
        return table

    def is_seen(self, worker: int) -> bool:
        """Whether a worker has a row: its supervisor may have marked it absent, so the shared row says."""
        return bool(self._queued[worker] != ABSENT)

    def call_busy(self, worker: int, until: float) -> None:
        """Say of a worker that gives no sign that it is busy; its own next word goes before this."""
        if self.is_seen(worker):
            self._busy_until[worker] = max(float(self._busy_until[worker]), until)


def _size(workers: int, models: int) -> int:
    return (3 * _NUMBER + models) * workers


def _mapped(path: Path, size: int) -> mmap.mmap:
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        return mmap.mmap(descriptor, max(size, 1))
    finally:
        os.close(descriptor)
