"""Values in shared memory: each large buffer is a file in a directory in memory, which every process of the application
maps, and none copies.

The names of files begin with their owner, so that a process that is gone can be cleared up after. What is mapped stays
readable when its file is removed.
"""

from __future__ import annotations

import itertools
import mmap
import os
from pathlib import Path

from fairway.live.serving.seams.values import Opened, Parcel, packed


class SharedMemoryValues:
    """The values of one process; `owner` is how the names of its files begin."""

    def __init__(self, directory: Path, owner: str) -> None:
        self._directory = directory
        self._owner = owner
        self._numbers = itertools.count()

    def pack(self, value: object) -> Parcel:
        """A value as a parcel."""
        return packed(value, self._write, self._remove)

    def open(self, parcel: Parcel) -> Opened:
        """A parcel whose files are mapped; raises `OSError` if they are gone."""
        return Opened(parcel, [self._read(buffer) for buffer in parcel.buffers])

    def is_there(self, parcel: Parcel) -> bool:
        """Whether the files of a parcel are there."""
        return all((self._directory / name).exists() for name in parcel.names)

    def discard(self, parcel: Parcel) -> None:
        """Remove the files of a parcel."""
        for name in parcel.names:
            self._remove(name)

    def clear(self, owner: str) -> None:
        """Remove the files of an owner that is gone."""
        clear_files(self._directory, owner)

    def _remove(self, name: str) -> None:
        (self._directory / name).unlink(missing_ok=True)

    def _write(self, raw: memoryview) -> str:
        name = f"{self._owner}{next(self._numbers)}"
        descriptor = os.open(self._directory / name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            written = 0
            while written < raw.nbytes:  # a single write moves 2 GB at most
                written += os.write(descriptor, raw[written:])
        except OSError:  # no room
            self._remove(name)
            raise
        finally:
            os.close(descriptor)
        return name

    def _read(self, buffer: bytes | str) -> bytes | memoryview:
        if isinstance(buffer, bytes):
            return buffer
        descriptor = os.open(self._directory / buffer, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return memoryview(mmap.mmap(descriptor, 0, prot=mmap.PROT_READ))
        finally:
            os.close(descriptor)


def clear_files(directory: Path, owner: str) -> None:
    """Remove what a process that is gone has left behind."""
    for path in directory.glob(f"{owner}*"):
        path.unlink(missing_ok=True)


def clear_after_clients(directory: Path) -> None:
    """Remove what clients have left whose processes are gone; the number of the process is in the owner."""
    owners = {path.name.split("-")[0] for path in directory.glob("c*-*")}
    for owner in owners:
        if owner[1:].isdecimal() and not Path(f"/proc/{owner[1:]}").exists():
            clear_files(directory, f"{owner}-")
