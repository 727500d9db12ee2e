"""When to create a container before it is needed, how long to keep an idle one, and which goes first if memory is
short.

A container that is created when its task is due makes the task wait for a cold start of seconds. A later stage is due
when the one before it ends, so its container is begun a cold start earlier, on the same invoker, where its input will
be. An entry stage is due when the next request is: after the mean gap of late,

    mean gap <- α · gap + (1 - α) · mean gap

Idle containers hold memory only, neither CPUs nor slices. They go after `KEEP_ALIVE` seconds, or earlier, the longest
idle first, where a new one needs their memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

KEEP_ALIVE = 600.0
"""Seconds for which an idle container is kept."""

SMOOTHING = 0.3
"""α: the weight of the last gap in the mean."""


class Prewarm(NamedTuple):
    """Begin to create a container of a stage there, so many seconds from now."""

    stage: int
    invoker: int
    seconds: float


class Container(NamedTuple):
    """An idle container: its key, how long it has been idle, and the memory that it holds."""

    key: int
    idle_seconds: float
    bytes: int


class Gaps(NamedTuple):
    """The mean time between the jobs of a queue, and when the last one came; nothing known before the second."""

    mean: float | None = None
    last: float | None = None

    def after(self, time: float, smoothing: float = SMOOTHING) -> Gaps:
        """The same after another job has come."""
        if self.last is None:
            return Gaps(None, time)
        gap = time - self.last
        return Gaps(gap if self.mean is None else smoothing * gap + (1 - smoothing) * self.mean, time)

    def next_arrival(self) -> float | None:
        """When the next job is expected; None if nothing is known yet."""
        return None if self.mean is None or self.last is None else self.last + self.mean


def prewarm_later(stage: int, invoker: int, seconds_to_start: float, cold_seconds: float) -> Prewarm:
    """For a stage that starts when the running one on this invoker ends."""
    return Prewarm(stage, invoker, max(0.0, seconds_to_start - cold_seconds))


def prewarm_entry(stage: int, home: int, gaps: Gaps, now: float, cold_seconds: float) -> Prewarm | None:
    """For an entry stage, in time for the next request; None as long as no gap is known."""
    due = gaps.next_arrival()
    return None if due is None else Prewarm(stage, home, max(0.0, due - cold_seconds - now))


def containers_wanted(gaps: Gaps, busy_seconds: float, cold_seconds: float) -> int:
    """How many containers keep up with a stage's jobs: those busy at a time, and those begun during a cold start."""
    if gaps.mean is None:
        return 1
    if gaps.mean <= 0:
        return 2**31
    return max(1, -int(-(busy_seconds + cold_seconds) // gaps.mean))


def expired(containers: Iterable[Container], keep_alive: float = KEEP_ALIVE) -> list[int]:
    """The keys of containers that have been idle for too long."""
    return [container.key for container in containers if container.idle_seconds >= keep_alive]


def evicted(containers: Iterable[Container], free_bytes: int, needed_bytes: int) -> list[int] | None:
    """The keys of idle containers to remove so that a new one fits, the longest idle first; None if that is too few."""
    gone: list[int] = []
    for container in sorted(containers, key=lambda each: (-each.idle_seconds, each.key)):
        if free_bytes >= needed_bytes:
            break
        gone.append(container.key)
        free_bytes += container.bytes
    return gone if free_bytes >= needed_bytes else None
