"""When containers are begun: because a job waits for one, or ahead of the tasks that will need them.

A job that finds its function nowhere idle with room beside it waits in its queue, holds nothing, and has a container
begun; never more at a time than jobs of the function wait. Ahead of need,

- a task that takes the last idle container of its function has another one begun there;
- a task has containers of the stages after it begun where it runs, so that they are there when it ends;
- an entry stage has one begun at the home of its application, in time for the next request.

What is begun ahead never drives anything out of memory; what a job waits for may. No invoker gets more containers of a
function than it could run at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import numpy as np

from fairway.configure.warmth import Gaps, Prewarm, prewarm_entry, prewarm_later
from fairway.engine.containers import GRACE_SECONDS, ContainerRule, Containers
from fairway.engine.serverless_messages import NO_CONTAINER, Command, StartContainer, StopContainer, Wake


@dataclass(frozen=True, slots=True)
class Function:
    """What runs in a container: how long one takes to create and to remove, and how much memory it holds."""

    name: str
    cold_seconds: float = 0.0
    container_bytes: int = 1
    stop_seconds: float = 0.0


class ContainerCare:
    """The containers of all functions, and what is to be begun later."""

    def __init__(self, rule: ContainerRule, functions: Sequence[Function], invokers: int, most: int) -> None:
        self.containers = Containers(rule, [function.container_bytes for function in functions], invokers)
        self._functions = functions
        self._most = most
        self._most_of_all = most * invokers
        self._prewarms = rule.prewarms and not rule.held
        self._no_room_until = [0.0] * len(functions)
        self._later: list[tuple[float, int, int]] = []
        self._gaps: dict[int, Gaps] = {}

    def time_passed(self, now: float) -> list[Command]:
        """Remove what has been idle for too long, begin what is due."""
        commands: list[Command] = [
            StopContainer(each.key, each.function, each.invoker) for each in self.containers.expired(now)
        ]
        while self._later and self._later[0][0] <= now:
            _, function, invoker = heappop(self._later)
            commands += self._ahead(function, invoker)
        return commands

    def job_waits(self, function: int, waiting: int, invoker: int, now: float) -> list[Command]:
        """Begin a container for a job, there or where there is most room; nothing if enough are on their way."""
        containers = self.containers
        if now < self._no_room_until[function]:
            return []
        if int(containers.starting[function].sum()) >= waiting or containers.count[function] >= self._most_of_all:
            return []
        everywhere = containers.idle.sum(axis=0) + containers.busy.sum(axis=0) + containers.starting.sum(axis=0)
        for place in (invoker, *np.argsort(everywhere, kind="stable").tolist()):
            if containers.total(function, place) >= self._most:
                continue
            gone = containers.make_room(function, place, now)
            if gone is None:
                continue
            commands: list[Command] = [StopContainer(each.key, each.function, each.invoker) for each in gone]
            begun = containers.start(function, place)
            if begun is not None:
                return [*commands, StartContainer(begun.key, function, place, ahead=False)]
        return self._no_room(function, now)

    def container_for_task(self, function: int, invoker: int, now: float) -> tuple[int | None, list[Command]]:
        """One that is created while its task holds the invoker's CPUs and slices; None if there is no room for it."""
        if now < self._no_room_until[function]:
            return None, []
        gone = self.containers.make_room(function, invoker, now)
        begun = None if gone is None else self.containers.start_busy(function, invoker)
        if begun is None:
            return None, self._no_room(function, now)
        return begun.key, [StopContainer(each.key, each.function, each.invoker) for each in gone or ()]

    def task_started(
        self, function: int, invoker: int, after: Iterable[int], run_seconds: float, now: float
    ) -> list[Command]:
        """See to the next task of this function, and to those of the functions that come after."""
        if not self._prewarms:
            return []
        commands: list[Command] = []
        if not self.containers.idle[function, invoker]:
            commands += self._ahead(function, invoker)
        for other in after:
            if not self.containers.idle[other, invoker]:
                due = prewarm_later(other, invoker, run_seconds, self._functions[other].cold_seconds)
                commands += self._at(due, now)
        return commands

    def entry_arrived(self, queue: int, function: int, home: int, now: float) -> list[Command]:
        """See to the next request of an application."""
        if not self._prewarms:
            return []
        gaps = self._gaps[queue] = self._gaps.get(queue, Gaps()).after(now)
        if self.containers.idle[function, home]:
            return []
        due = prewarm_entry(function, home, gaps, now, self._functions[function].cold_seconds)
        return [] if due is None else self._at(due, now)

    def invoker_lost(self, invoker: int) -> None:
        """Its containers are gone, and what was to be begun there is not."""
        self.containers.lose(invoker)
        self._later = [each for each in self._later if each[2] != invoker]
        heapify(self._later)

    def invoker_joined(self, invoker: int, functions: Iterable[int], now: float) -> list[Command]:
        """Keep what an invoker brings along, as far as there is room, and begin what is pinned."""
        self.containers.join(invoker)
        self._no_room_until = [0.0] * len(self._functions)
        commands: list[Command] = []
        for function in functions:
            if self.containers.adopt(function, invoker, now) is None:
                commands.append(StopContainer(NO_CONTAINER, function, invoker))
        for function in self.containers.rule.pinned:
            commands += self._ahead(function, invoker)
        return commands

    def _no_room(self, function: int, now: float) -> list[Command]:
        """Look again when what is idle may go."""
        self._no_room_until[function] = now + GRACE_SECONDS
        return [Wake(now + GRACE_SECONDS)]

    def _at(self, due: Prewarm, now: float) -> list[Command]:
        if due.seconds <= 0:
            return self._ahead(due.stage, due.invoker)
        heappush(self._later, (now + due.seconds, due.stage, due.invoker))
        return [Wake(now + due.seconds)]

    def _ahead(self, function: int, invoker: int) -> list[Command]:
        """One at a time on each invoker, and not more than could run at once."""
        containers = self.containers
        if containers.starting[function, invoker] or containers.total(function, invoker) >= self._most:
            return []
        begun = containers.start(function, invoker)
        return [] if begun is None else [StartContainer(begun.key, function, invoker, ahead=True)]
