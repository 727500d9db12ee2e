"""Where the parts of a job's log are: a job that has moved has written some of it on one node, and some on another.

To a reader it is one log. Its parts are remembered in a file per job, each with its node and the bytes of that node's
file which it is; the last part goes on for as long as the job stays. A part whose node is gone cannot be read any more;
its place is left out, and positions stay what they were.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any

from fairway.live.backend.logs import LogBlock
from fairway.live.durable_file import read_json, write_json

ReadLog = Callable[[str, int, int], LogBlock | None]
"""Reads the file of a node from a position on, up to so many bytes; None where the node is gone."""


@dataclass(frozen=True, slots=True)
class LogPart:
    """The bytes of a node's file from `start` on, up to `end` where the job has left the node."""

    node: str
    start: int
    end: int | None = None


class LogParts:
    """The parts of all logs, by job and rank. Any thread may ask."""

    def __init__(self, directory: Path) -> None:
        self._directory, self._lock = directory, Lock()
        self._seen: dict[tuple[str, int, str], int] = {}

    def of(self, job: str, rank: int) -> list[LogPart]:
        """The parts of one log, the oldest first."""
        with self._lock:
            return [LogPart(**part) for part in (self._read(job).get(str(rank)) or [])]

    def last_node(self, job: str, rank: int) -> str | None:
        """Where the log is being written."""
        parts = self.of(job, rank)
        return parts[-1].node if parts else None

    def move(self, job: str, rank: int, node: str, size_at: Callable[[str], int | None]) -> None:
        """The job goes on at a node; `size_at` tells how large the file of a node is, None where that is gone."""
        parts = self.of(job, rank)
        if parts and parts[-1].node == node:
            return
        if parts:
            last = parts[-1]
            size = size_at(last.node)
            known = self._seen.get((job, rank, last.node), last.start) if size is None else size
            parts[-1] = replace(last, end=max(known, last.start))
        parts.append(LogPart(node, (size_at(node) or 0) if parts else 0))
        with self._lock:
            content = self._read(job)
            content[str(rank)] = [asdict(part) for part in parts]
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_json(self._directory / f"{job}.json", content, durable=False)

    def read(self, job: str, rank: int, position: int, most: int, read: ReadLog) -> LogBlock:
        """The log from a position on, from whichever nodes have it."""
        parts, lengths = self.of(job, rank), []
        for part in parts:
            lengths.append(self._length(job, rank, part, read))
        content, skipped, at, first = b"", 0, position, 0
        for part, length in zip(parts, lengths, strict=True):
            begin, first = first, first + length
            if at >= first or len(content) >= most:
                continue
            block = read(part.node, part.start + at - begin, min(most - len(content), first - at))
            missing = first - at if block is None else min(block.skipped, first - at)
            if missing and content:
                break  # which the next reading says, from here on
            skipped, at = skipped + missing, at + missing
            if block is not None:
                found = block.content[: first - at]
                content, at = content + found, at + len(found)
            if at < first:
                break
        return LogBlock(content, sum(lengths), skipped)

    def _length(self, job: str, rank: int, part: LogPart, read: ReadLog) -> int:
        if part.end is not None:
            return part.end - part.start
        block = read(part.node, part.start, 0)
        if block is not None:
            self._seen[job, rank, part.node] = block.size
        return max(self._seen.get((job, rank, part.node), part.start) - part.start, 0)

    def _read(self, job: str) -> dict[str, list[dict[str, Any]]]:
        return read_json(self._directory / f"{job}.json") or {}
