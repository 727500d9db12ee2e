"""The state table in shared memory: a file that every worker has mapped, with a row for each of them."""

from __future__ import annotations

from pathlib import Path

from fairway.live.serving.local.shared_file import make_file, mapped
from fairway.live.serving.seams.state_board import SharedRows
from fairway.place.arrays import BoolArray
from fairway.place.fleet import Fleet


class SharedTable(SharedRows):
    """The rows of all workers, in a file."""

    def __init__(self, fleet: Fleet, path: Path, homes: BoolArray | None = None) -> None:
        super().__init__(fleet, mapped(path, self.size(fleet)), homes)

    @classmethod
    def create(cls, fleet: Fleet, path: Path) -> SharedTable:
        """Make the file, with no worker present yet."""
        make_file(path, cls.size(fleet))
        table = cls(fleet, path)
        table.clear()
        return table
