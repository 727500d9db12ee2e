"""Where this machine keeps the logs of jobs, and how they are written and read: one file per rank, for all attempts.

A job that runs as the agent's user can replace its log by anything, so it is opened as an untrusted file: what is not a
regular one is neither written nor read.

A log has a bound (`bounded_log`): what is too much is dropped from its beginning, and positions stay what they were.
Reading skips what is not there any more.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from fairway.live.backend.logs import LogBlock
from fairway.live.untrusted_file import UntrustedFileError, open_regular


def log_path(directory: Path, job: str, rank: int) -> Path:
    """Where the output of one rank of a job goes, in the agent's directory."""
    return directory / "logs" / job / f"rank-{rank}.log"


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
