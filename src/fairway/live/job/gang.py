"""How the ranks of a gang agree on the step after which all of them stop, or save.

Ranks notice at different moments that they should stop. Each writes down the step it begins before it begins it, and
the first to notice picks the highest step that any rank has begun: no rank has to wait, and no rank has gone further. A
rank that waits inside a step for the others (as the gradients of data-parallel training do) is waited for too, since
its step counts. Checking and beginning happen under the lock of a small shared file.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from struct import Struct

from fairway.live.job.agreement import Next

_CELL = Struct("=q")
_STOP, _SAVE, _RANKS = 0, 1, 2
"""The first cells: one more than the agreed step (0: none, as in a new file); then what each rank began and saved."""


class Gang:
    """One rank's view of its gang."""

    def __init__(self, path: Path, rank: int, world_size: int) -> None:
        self._rank, self._world_size = rank, world_size
        size = (_RANKS + 2 * world_size) * _CELL.size
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        with self._locked():
            if os.fstat(self._file).st_size < size:
                os.ftruncate(self._file, size)
        self._cells = mmap.mmap(self._file, size)

    def next(self, done: int, *, stop: bool, save: bool) -> Next:
        """As all have agreed, or now agree."""
        me, all_ranks = self._rank, range(self._world_size)
        with self._locked():
            furthest = 1 + max(self._get(_RANKS + rank) for rank in all_ranks)
            if stop and not self._get(_STOP):
                self._set(_STOP, furthest)
            if self._get(_STOP) and done >= self._get(_STOP) - 1:
                return "stop"
            saves = [self._get(_RANKS + self._world_size + rank) for rank in all_ranks]
            if save and min(saves) >= self._get(_SAVE):  # one at a time: all ranks have done the last one
                self._set(_SAVE, furthest)
            if saves[me] < self._get(_SAVE) <= done + 1:
                self._set(_RANKS + self._world_size + me, self._get(_SAVE))
                return "save"
            self._set(_RANKS + me, done + 1)
            return "step"

    @contextmanager
    def _locked(self) -> Iterator[None]:
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def _get(self, cell: int) -> int:
        value: int = _CELL.unpack_from(self._cells, cell * _CELL.size)[0]
        return value

    def _set(self, cell: int, value: int) -> None:
        _CELL.pack_into(self._cells, cell * _CELL.size, value)
