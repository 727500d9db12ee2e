"""Keeps a log that a job or a stage writes from filling the disk of all: the oldest part of it is dropped.

What is too much is given back to the file system from the beginning of the file: the file keeps its name and its size,
the process goes on writing at its end, and positions stay what they were.
"""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from pathlib import Path

from fairway.live.untrusted_file import open_regular

_LIBC = ctypes.CDLL(None, use_errno=True)
_PUNCH_HOLE = 0x02 | 0x01
"""FALLOC_FL_PUNCH_HOLE with FALLOC_FL_KEEP_SIZE, without which it is refused."""

_PAGE = 4096


def open_log(path: Path) -> int:
    """A descriptor to go on with a log; raises `UntrustedFileError` or `OSError`."""
    descriptor = open_regular(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.set_blocking(descriptor, True)  # as programs expect of what they print to
    return descriptor


def trim_log(descriptor: int, most: int) -> bool:
    """Drop the beginning of a log that takes more than so many bytes, so that three quarters of them are left.

    Whether there was something to drop. A file system that cannot give back a part of a file loses all of it.
    """
    status = os.fstat(descriptor)
    if status.st_blocks * 512 <= most:
        return False
    end = (status.st_size - most * 3 // 4) // _PAGE * _PAGE
    if end <= 0:  # blocks beyond the end, or a file system with large ones
        return False
    if _LIBC.fallocate(descriptor, _PUNCH_HOLE, ctypes.c_int64(0), ctypes.c_int64(end)) and ctypes.get_errno():
        with suppress(OSError):
            os.ftruncate(descriptor, 0)
            os.write(descriptor, b"=== fairway: what the log held was dropped, since it grew too large ===\n")
    return True
