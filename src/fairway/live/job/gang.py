"""How the ranks of a gang agree on the step after which all of them stop, or save.

Ranks notice at different moments that they should stop. Each writes down the step it begins before it begins it, and
the first to notice picks the highest step that any rank has begun: no rank has to wait, and no rank has gone further. A
rank that waits inside a step for the others (as the gradients of data-parallel training do) is waited for too, since
its step counts. A rank may write down several steps ahead, and need not ask again before it has done them.

On one machine, checking and beginning happen under the lock of a small shared file (`Gang`); over several, at a server
beside the first rank (`remote_gang`). The rule is the same.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from struct import Struct
from typing import Protocol

from fairway.live.job.agreement import Next

_CELL = Struct("=q")
_STOP, _SAVE, _RANKS = 0, 1, 2
"""The first cells: one more than the agreed step (0: none, as in a new file); then what each rank began and saved."""


def cells_of(world_size: int) -> int:
    """How many numbers the ranks of a gang share."""
    return _RANKS + 2 * world_size


class Cells(Protocol):
    """Numbers that the ranks share, all 0 in the beginning."""

    def __getitem__(self, cell: int, /) -> int: ...

    def __setitem__(self, cell: int, value: int, /) -> None: ...


def agree(
    cells: Cells, world_size: int, me: int, done: int, *, stop: bool, save: bool, ahead: int = 1
) -> tuple[Next, int]:
    """What a rank does next as all have agreed, or now agree, and up to which step it need not ask again.

    It would like to `stop` or `save`, and to write down so many steps `ahead`.
    """
    all_ranks = range(world_size)
    furthest = 1 + max(cells[_RANKS + rank] for rank in all_ranks)
    if stop and not cells[_STOP]:
        cells[_STOP] = furthest
    if cells[_STOP] and done >= cells[_STOP] - 1:
        return "stop", done
    saves = [cells[_RANKS + world_size + rank] for rank in all_ranks]
    if save and min(saves) >= cells[_SAVE]:  # one at a time: all ranks have done the last one
        cells[_SAVE] = furthest
    if saves[me] < cells[_SAVE] <= done + 1:
        cells[_RANKS + world_size + me] = cells[_SAVE]
        return "save", done
    bounds = [done + ahead]
    bounds += [cells[_STOP] - 1] if cells[_STOP] else []
    bounds += [cells[_SAVE] - 1] if saves[me] < cells[_SAVE] else []
    until = max(min(bounds), done + 1)
    cells[_RANKS + me] = until
    return "step", until


class Gang:
    """One rank's view of its gang on this machine."""

    def __init__(self, path: Path, rank: int, world_size: int) -> None:
        self._rank, self._world_size = rank, world_size
        size = cells_of(world_size) * _CELL.size
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        with self._locked():
            if os.fstat(self._file).st_size < size:
                os.ftruncate(self._file, size)
        self._cells = mmap.mmap(self._file, size)

    def next(self, done: int, *, stop: bool, save: bool) -> Next:
        """As all have agreed, or now agree."""
        with self._locked():
            return agree(self, self._world_size, self._rank, done, stop=stop, save=save)[0]

    @contextmanager
    def _locked(self) -> Iterator[None]:
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def __getitem__(self, cell: int) -> int:
        value: int = _CELL.unpack_from(self._cells, cell * _CELL.size)[0]
        return value

    def __setitem__(self, cell: int, value: int) -> None:
        _CELL.pack_into(self._cells, cell * _CELL.size, value)
