"""Where this machine keeps the logs of jobs, and how they are read: one file per rank, continued by every attempt."""

from __future__ import annotations

import os
from pathlib import Path

from fairway.live.backend.logs import LogBlock


def log_path(directory: Path, job: str, rank: int) -> Path:
    """Where the output of one rank of a job goes, in the agent's directory."""
    return directory / "logs" / job / f"rank-{rank}.log"


def read_log(path: Path, position: int, most: int) -> LogBlock:
    """What stands in a log from a position on, up to so many bytes; nothing if there is no file."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(position)
            return LogBlock(file.read(most), size)
    except FileNotFoundError:
        return LogBlock(b"", 0)
