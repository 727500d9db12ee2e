"""What jobs have written, as bytes that are read through their backend: from a position on, or the last lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

BLOCK_BYTES = 64 * 1024
LOG_BYTES = 256_000_000
"""How much is kept of what a process of a job prints, unless the operator says otherwise."""

LEAST_LOG_BYTES = 64 * 1024
MOST_TAIL_BYTES = 64 * 2**20


@dataclass(frozen=True, slots=True)
class LogBlock:
    """A part of a log, and the size of the whole log when it was read.

    The oldest part of a log that has grown too large is dropped, while positions in it stay what they were: where it
    was asked for, the content begins `skipped` bytes later.
    """

    content: bytes
    size: int
    skipped: int = 0


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
        found = read(position, size)
        begin = min(position + found.skipped, position + size)
        block = found.content[: position + size - begin]
        if begin + len(block) == end and block.endswith(b"\n"):
            wanted += 1  # the one that ends the last line begins none
        if (start := _start_in(block, begin, wanted)) is not None:
            return start
        if found.skipped:  # what is before is not kept
            return begin
        wanted -= block.count(b"\n")
    return position


def _start_in(block: bytes, position: int, wanted: int) -> int | None:
    """Where the last so many lines begin, if that is in a block that begins at a position."""
    if block.count(b"\n") < wanted:
        return None
    cut = len(block)
    for _ in range(wanted):
        cut = block.rindex(b"\n", 0, cut)
    return position + cut + 1
