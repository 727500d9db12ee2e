"""What jobs have written, as bytes that are read through their backend: from a position on, or the last lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

BLOCK_BYTES = 64 * 1024
MOST_TAIL_BYTES = 64 * 2**20


@dataclass(frozen=True, slots=True)
class LogBlock:
    """A part of a log, and the size of the whole log when it was read."""

    content: bytes
    size: int


def start_of_tail(read: Callable[[int, int], LogBlock], lines: int) -> int:
    """Where the last so many lines begin; 0 if there are not as many. `read` takes a position and the most bytes.

    No more than `MOST_TAIL_BYTES` are looked through: a job may write gigabytes without a line break.
    """
    end = position = read(0, 0).size
    if lines == 0:
        return end
    wanted = lines
    while position > max(end - MOST_TAIL_BYTES, 0):
        size = min(BLOCK_BYTES, position)
        position -= size
        block = read(position, size).content
        if position + len(block) == end and block.endswith(b"\n"):
            wanted += 1  # the one that ends the last line begins none
        found = block.count(b"\n")
        if found >= wanted:
            cut = len(block)
            for _ in range(wanted):
                cut = block.rindex(b"\n", 0, cut)
            return position + cut + 1
        wanted -= found
    return position
