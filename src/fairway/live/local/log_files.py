"""Where this machine keeps the logs of jobs, and how they are written and read: one file per rank, for all attempts.

A job that runs as the agent's user can replace its log by anything, so it is opened as an untrusted file: what is not a
regular one is neither written nor read.
"""

from __future__ import annotations

import os
from pathlib import Path

from fairway.live.backend.logs import LogBlock
from fairway.live.untrusted_file import UntrustedFileError, open_regular


def log_path(directory: Path, job: str, rank: int) -> Path:
    """Where the output of one rank of a job goes, in the agent's directory."""
    return directory / "logs" / job / f"rank-{rank}.log"


def open_log(path: Path) -> int:
    """A descriptor to go on with a log; raises `UntrustedFileError` or `OSError`."""
    descriptor = open_regular(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.set_blocking(descriptor, True)  # as programs expect of what they print to
    return descriptor


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
        return LogBlock(os.pread(descriptor, most, position) if position < size else b"", size)
    finally:
        os.close(descriptor)
