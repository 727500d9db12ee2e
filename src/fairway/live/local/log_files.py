"""Where this machine keeps the logs of jobs, and how they are written and read: one file per rank, for all attempts.

A job that runs as the agent's user can replace its log by anything, so it is opened as an untrusted file: what is not a
regular one is neither written nor read.

A log has a bound, since a job that prints without end would fill the disk of all. What is too much is dropped from its
beginning by giving the blocks back to the file system: the file keeps its name and its size, the job goes on writing at
its end, and positions stay what they were. Reading skips what is not there any more.
"""

from __future__ import annotations

import ctypes
import errno
import os
from contextlib import suppress
from pathlib import Path

from fairway.live.backend.logs import LogBlock
from fairway.live.untrusted_file import UntrustedFileError, open_regular

_LIBC = ctypes.CDLL(None, use_errno=True)
_PUNCH_HOLE = 0x02 | 0x01
"""FALLOC_FL_PUNCH_HOLE with FALLOC_FL_KEEP_SIZE, without which it is refused."""

_PAGE = 4096


def log_path(directory: Path, job: str, rank: int) -> Path:
    """Where the output of one rank of a job goes, in the agent's directory."""
    return directory / "logs" / job / f"rank-{rank}.log"


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


def read_log(path: Path, position: int, most: int) -> LogBlock:
    """What stands in a log from a position on, up to so many bytes; nothing if there is no file.

    Where the job has put something else there, the block says so in place of the log.
    """
    try:
        descriptor = open_regular(path, os.O_RDONLY)
    except UntrustedFileError as error:
        said = f"{error}; the job has replaced its log\n".encode()
        return LogBlock(said[position : position + most], len(said))
    except OSError:
        return LogBlock(b"", 0)
    try:
        size = os.fstat(descriptor).st_size
        if position >= size:
            return LogBlock(b"", size)
        kept = _first_kept(descriptor, position, size)
        if kept == position:
            return LogBlock(os.pread(descriptor, most, position), size)
        # A line that takes the place of the last bytes that are missing, so that positions still add up.
        said = f"=== fairway: {kept} bytes before this were dropped, since the log grew too large ===\n".encode()
        start = max(kept - len(said), position)
        content = (said[len(said) - (kept - start) :] + os.pread(descriptor, most, kept))[:most]
        return LogBlock(content, size, skipped=start - position)
    finally:
        os.close(descriptor)


def _first_kept(descriptor: int, position: int, size: int) -> int:
    """The position itself, or where the hole ends in which it lies."""
    try:
        return os.lseek(descriptor, position, os.SEEK_DATA)
    except OSError as error:  # nothing follows, or the file system knows of no holes
        return size if error.errno == errno.ENXIO else position
