"""Which containers of which functions there are on each invoker: idle, busy, or being created.

Idle ones hold memory only. They go after the keep-alive time, or earlier, the longest idle first, where one that a
waiting job needs has no room; not in their first second, so that a container is not gone before its job gets to it.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairway.configure.arrays import BoolArray, IntArray
from fairway.configure.warmth import KEEP_ALIVE, evicted
from fairway.configure.warmth import Container as Idle
from fairway.errors import FairwayError, InputError

GRACE_SECONDS = 1.0
"""For so long, a container that has become idle is not evicted."""


@dataclass(frozen=True, slots=True)
class ContainerRule:
    """So many idle containers of each function on each invoker at the start, and memory for so many bytes of them.

    With `held`, a task that finds no container holds its CPUs and slices while one is created; otherwise it waits in
    its queue. With `prewarms`, containers are begun ahead of the tasks that will need them. Functions in `pinned` get a
    container on every invoker that joins, and keep it.
    """

    initial: int = 2
    memory_bytes: int | None = None
    prewarms: bool = True
    held: bool = False
    keep_alive_seconds: float = KEEP_ALIVE
    pinned: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.initial < 0:
            raise InputError(f"containers: {self.initial} given, expected a whole number >= 0")


@dataclass(slots=True)
class Container:
    """One container; `since` is when it became idle, None while it is busy or being created."""

    key: int
    function: int
    invoker: int
    since: float | None = None


class Containers:
    """All containers; `idle`, `busy` and `starting` count them by function and invoker, `count` by function."""

    def __init__(self, rule: ContainerRule, sizes: Sequence[int], invokers: int) -> None:
        if rule.memory_bytes is not None and sizes and max(sizes) > rule.memory_bytes:
            raise InputError(
                f"containers: one of {max(sizes)} bytes has no room in the {rule.memory_bytes} bytes of an invoker"
            )
        self.rule = rule
        self.idle: IntArray = np.zeros((len(sizes), invokers), np.int64)
        self.busy: IntArray = np.zeros((len(sizes), invokers), np.int64)
        self.starting: IntArray = np.zeros((len(sizes), invokers), np.int64)
        self.count = [0] * len(sizes)
        self._sizes = tuple(sizes)
        self._used = [0] * invokers
        self._next = 0
        self._all: dict[int, Container] = {}
        self._stacks: dict[tuple[int, int], list[int]] = {}
        self._aging: deque[tuple[float, int]] = deque()
        self._ages = rule.keep_alive_seconds < math.inf
        self._absent: set[int] = set()
        for function, invoker in np.ndindex(*self.idle.shape):
            for _ in range(rule.initial):
                if self._has_room(function, invoker):
                    self.release(self._new(function, invoker).key, 0.0)

    def warm(self, function: int) -> BoolArray:
        """Which invokers have an idle container of a function."""
        mask: BoolArray = self.idle[function] > 0
        return mask

    def total(self, function: int, invoker: int) -> int:
        """How many containers of a function an invoker has or will have."""
        return int(self.idle[function, invoker] + self.busy[function, invoker] + self.starting[function, invoker])

    def take(self, function: int, invoker: int) -> int | None:
        """Let a task have the container that was used last; None if none is idle."""
        stack = self._stacks.get((function, invoker))
        if not stack:
            return None
        container = self._all[stack.pop()]
        container.since = None
        self.idle[function, invoker] -= 1
        self.busy[function, invoker] += 1
        return container.key

    def release(self, key: int, now: float) -> None:
        """The task of a container has ended."""
        container = self._all[key]
        self.busy[container.function, container.invoker] -= 1
        self._rest(container, now)

    def start(self, function: int, invoker: int) -> Container | None:
        """Begin one, if there is room; `make_room` comes before where others may have to go."""
        if not self._has_room(function, invoker):
            return None
        container = self._new(function, invoker)
        self.busy[function, invoker] -= 1
        self.starting[function, invoker] += 1
        return container

    def start_busy(self, function: int, invoker: int) -> Container | None:
        """Begin one for a task that waits inside of it."""
        return self._new(function, invoker) if self._has_room(function, invoker) else None

    def ready(self, key: int, now: float) -> Container:
        """One that was begun can take tasks."""
        if key not in self._all:
            raise FairwayError(f"container {key} is ready, but was never begun or is gone")
        container = self._all[key]
        self.starting[container.function, container.invoker] -= 1
        self._rest(container, now)
        return container

    def make_room(self, function: int, invoker: int, now: float) -> list[Container] | None:
        """Remove idle containers until one of a function fits, the longest idle first; None if that is too few."""
        if self._has_room(function, invoker) or self.rule.memory_bytes is None:
            return []
        idle = [
            Idle(each.key, now - each.since, self._sizes[each.function])
            for each in self._all.values()
            if each.invoker == invoker
            and each.since is not None
            and now - each.since >= GRACE_SECONDS
            and each.function not in self.rule.pinned
        ]
        gone = evicted(idle, self.rule.memory_bytes - self._used[invoker], self._sizes[function])
        return None if gone is None else [self._remove(key) for key in gone]

    def expired(self, now: float) -> list[Container]:
        """Remove what has been idle for too long."""
        gone = []
        while self._aging and self._aging[0][0] + self.rule.keep_alive_seconds <= now:
            since, key = self._aging.popleft()
            container = self._all.get(key)
            if container is not None and container.since == since and container.function not in self.rule.pinned:
                gone.append(self._remove(key))
        return gone

    def lose(self, invoker: int) -> None:
        """All that an invoker had is gone with it, and none is begun there until it is back."""
        for key in [key for key, each in self._all.items() if each.invoker == invoker]:
            container = self._all.pop(key)
            self.count[container.function] -= 1
            self._stacks.pop((container.function, invoker), None)
        for counts in (self.idle, self.busy, self.starting):
            counts[:, invoker] = 0
        self._used[invoker] = 0
        self._absent.add(invoker)

    def join(self, invoker: int) -> None:
        """An invoker is back."""
        self._absent.discard(invoker)

    def adopt(self, function: int, invoker: int, now: float) -> Container | None:
        """One that an invoker brings along is idle now; None if there is no room for it."""
        if not self._has_room(function, invoker):
            return None
        container = self._new(function, invoker)
        self.release(container.key, now)
        return container

    def fail(self, key: int) -> Container:
        """One that was begun does not come to be."""
        if key not in self._all:
            raise FairwayError(f"container {key} has failed, but was never begun or is gone")
        container = self._all.pop(key)
        self.count[container.function] -= 1
        self.starting[container.function, container.invoker] -= 1
        self._used[container.invoker] -= self._sizes[container.function]
        return container

    def _has_room(self, function: int, invoker: int) -> bool:
        if invoker in self._absent:
            return False
        limit = self.rule.memory_bytes
        return limit is None or self._used[invoker] + self._sizes[function] <= limit

    def _new(self, function: int, invoker: int) -> Container:
        """A container that is busy until it is released."""
        container = Container(self._next, function, invoker)
        self._next += 1
        self._all[container.key] = container
        self.count[function] += 1
        self._used[invoker] += self._sizes[function]
        self.busy[function, invoker] += 1
        return container

    def _rest(self, container: Container, now: float) -> None:
        container.since = now
        self.idle[container.function, container.invoker] += 1
        self._stacks.setdefault((container.function, container.invoker), []).append(container.key)
        if self._ages:
            self._aging.append((now, container.key))

    def _remove(self, key: int) -> Container:
        container = self._all.pop(key)
        self.count[container.function] -= 1
        self.idle[container.function, container.invoker] -= 1
        self._stacks[container.function, container.invoker].remove(key)
        self._used[container.invoker] -= self._sizes[container.function]
        return container
