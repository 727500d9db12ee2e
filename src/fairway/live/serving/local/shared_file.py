"""Files in memory that several processes have mapped: all of their bytes are there from the beginning.

A file whose bytes come only when they are first written would end the process that writes them when memory is full.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path


def make_file(path: Path, size: int) -> None:
    """Make a file of so many bytes, all of them zero, for this user alone."""
    with path.open("xb") as file:
        os.fchmod(file.fileno(), 0o600)
        os.posix_fallocate(file.fileno(), 0, size)


def mapped(path: Path, size: int) -> mmap.mmap:
    """The bytes of a file, shared with all who have mapped it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        return mmap.mmap(descriptor, size)
    finally:
        os.close(descriptor)
