"""Reads the logs that a job's processes write, as bytes: from a position on, or where the last lines begin."""

from __future__ import annotations

import os
from pathlib import Path

_BLOCK = 64 * 1024


def start_of_tail(path: Path, lines: int) -> int:
    """Where the last so many lines begin; 0 if there are not as many, or no file."""
    try:
        with path.open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            if lines == 0:
                return end
            wanted, position = lines, end
            while position > 0:
                size = min(_BLOCK, position)
                position -= size
                file.seek(position)
                block = file.read(size)
                if position + len(block) == end and block.endswith(b"\n"):
                    wanted += 1  # the one that ends the last line begins none
                found = block.count(b"\n")
                if found >= wanted:
                    cut = len(block)
                    for _ in range(wanted):
                        cut = block.rindex(b"\n", 0, cut)
                    return position + cut + 1
                wanted -= found
            return 0
    except FileNotFoundError:
        return 0


def read_from(path: Path, position: int, most: int = _BLOCK) -> bytes:
    """What stands in a file from a position on, up to so many bytes; nothing if there is no file."""
    try:
        with path.open("rb") as file:
            file.seek(position)
            return file.read(most)
    except FileNotFoundError:
        return b""
