"""Manages what one accelerator's memory holds: what goes when room is needed, what comes before it is asked for.

Asked before each task (Compass, memory management). Eviction looks ahead: first go the models that no task in the queue
needs, the longest held first, then those whose first use is furthest away (Belady's rule, as far as the queue goes). Of
the models that no task in the queue needs, those at home on this worker (`homes`) stay longer than guests; that is
ours. The baseline evicts in the order in which models came. If the task needs nothing evicted, a model of one of the
next few tasks may be fetched while it runs, never past an earlier task's model. Compass's prefetching takes free room
only. Ours may also take that of models that are needed later than the one that comes, or by no task in the queue: "do
no harm", the rule of integrated prefetching and caching (Cao et al., SIGMETRICS 1995); and only while no other copy is
under way, since the longer it waits, the better it knows.

What is decided counts at once: a model that is evicted is gone and one that is to be fetched has its room before the
copy begins, so the memory is never overbooked. Models are read-only, so eviction copies nothing.

Where tasks run side by side on their shares of a worker, each needs a copy of its model to itself while it runs (what
serverless platforms call a container). Then, and where the longest unused model goes first as on those platforms,
copies are counted one by one: a task claims one and releases it. An idle copy goes when it is the longest unused and
its room is needed; for a copy that is begun at the planner's wish, only after its first second (`GRACE_SECONDS`), so
that a copy is not gone before its task gets to it.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal, NamedTuple

from fairway.errors import FairwayError, InputError
from fairway.made import made


class DoesNotFitError(FairwayError):
    """A task's models do not fit in memory beside those that cannot go; the task has to be refused."""


@dataclass(frozen=True, slots=True)
class MemoryPolicy:
    """How to evict, how many models to prefetch at most before a task, and how far down the queue to look for them.

    `replaces` lets a prefetched model take the place of others that are needed later.
    """

    eviction: Literal["look-ahead", "fifo", "least-recent"] = "look-ahead"
    prefetch_models: int = 1
    prefetch_tasks: int = 3
    replaces: bool = False

    @classmethod
    def looking_ahead(cls, *, prefetches: bool, replaces: bool = False) -> MemoryPolicy:
        """Eviction that looks ahead, with prefetching or without."""
        return cls(replaces=replaces) if prefetches else cls(prefetch_models=0, prefetch_tasks=0)

    @property
    def prefetches(self) -> bool:
        """Whether models may come before the task that needs them."""
        return self.eviction == "look-ahead" and self.prefetch_models > 0 and self.prefetch_tasks > 0


class Preparation(NamedTuple):
    """What to do before a task runs: evict, fetch and wait for it, and what to fetch while the task runs."""

    evict: tuple[int, ...]
    fetch: tuple[int, ...]
    prefetch: tuple[int, ...]


GRACE_SECONDS = 1.0
"""For so long, a copy that has become idle is not evicted for one that the planner wants for a waiting job."""


class DeviceMemory:
    """The models in one worker's memory, by number, in the order in which they came.

    A model counts from the decision to fetch it. Pinned models never go. By model, `copying` counts the copies that are
    still under way; if one of these is evicted, it has to be stopped. `held` are all models, as a set to look into.
    `homes` are the models that are at home here, whether they are there or not. With `counts_use`, tasks claim copies.
    """

    __slots__ = (
        "_homes",
        "_idle",
        "_pins",
        "_prefetches",
        "_promised",
        "_resident",
        "_sizes",
        "capacity",
        "copying",
        "counts_use",
        "free",
        "held",
        "policy",
    )

    def __init__(
        self,
        capacity: float,
        model_bytes: Sequence[float],
        policy: MemoryPolicy,
        homes: Iterable[int] = (),
        *,
        shared: bool = False,
    ) -> None:
        self._homes = frozenset(homes)
        self.capacity = float(capacity)
        self.free = float(capacity)
        self.policy = policy
        self.copying: dict[int, int] = {}
        self.counts_use = shared or policy.eviction == "least-recent"
        self._sizes = model_bytes
        self._prefetches = policy.prefetches
        self._resident: dict[int, int] = {}
        self.held = self._resident.keys()
        self._pins: set[int] = set()
        self._idle: dict[int, list[float]] = {}  # by model, since when each of its idle copies is, the oldest first
        self._promised: dict[int, int] = {}  # by model, how many of the copies under way have a task that waits

    @property
    def resident(self) -> tuple[int, ...]:
        """The models that are there or on their way, the longest held first."""
        return tuple(self._resident)

    def __contains__(self, model: int) -> bool:
        return model in self._resident

    def copies(self, model: int) -> int:
        """How many copies of a model are there or on their way."""
        return self._resident.get(model, 0)

    def idle(self, model: int) -> int:
        """How many copies of a model are there without a task."""
        return len(self._idle.get(model, ()))

    def available(self, model: int) -> int:
        """How many copies of a model a task could claim: idle ones, and those on their way that no task waits for."""
        return self.idle(model) + self.copying.get(model, 0) - self._promised.get(model, 0)

    def claim(self, model: int) -> bool:
        """Let a task have a copy that is available: the one used last, or one on its way; whether it is there."""
        idle = self._idle.get(model)
        if idle:
            idle.pop()
            return True
        self._promised[model] = self._promised.get(model, 0) + 1
        return False

    def release(self, model: int, now: float) -> None:
        """The task of a copy has ended."""
        self._idle.setdefault(model, []).append(now)

    def disclaim(self, model: int) -> None:
        """A task does not wait any more for a copy on its way that it had claimed."""
        self._keep_promise(model)

    def pin(self, model: int) -> None:
        """Keep a resident model for good."""
        if model not in self._resident:
            raise InputError(f"model {model} is not in memory, so it cannot be pinned; prepare it first")
        self._pins.add(model)

    def prepare(self, models: Sequence[int], queue: Iterable[Sequence[int]]) -> Preparation:
        """Make room for a task's models and take them in; `queue` has the models of each waiting task, next first.

        If they cannot fit, nothing changes and the task is to be refused, or has to wait.
        """
        resident, sizes = self._resident, self._sizes
        missing: tuple[int, ...] = ()
        needed = 0.0
        counts_use = self.counts_use
        for model in models:
            lacks = model not in resident if not counts_use else self.available(model) <= 0
            if lacks and model not in missing:
                missing = (*missing, model)
                needed += sizes[model]
        evicted: tuple[int, ...] = ()
        prefetched: tuple[int, ...] = ()
        if needed > self.free:
            evicted, lacking = self._victims(needed - self.free, models, queue)
            if lacking > 0:
                raise self._does_not_fit(models, lacking)
        elif self._prefetches:
            evicted, prefetched = self._next_models(self.free - needed, models, queue)
        for model in evicted:
            self.drop(model)
        for model in missing + prefetched:
            self._take_in(model)
        return made(Preparation, (evicted, missing, prefetched))

    def warm(self, model: int, now: float, *, ahead: bool) -> tuple[int, ...] | None:
        """Take in one more copy of a model: what has to go for it, None if there is no room.

        For a copy that is begun `ahead` of any task nothing goes, for others no copy in its grace.
        """
        lacking = self._sizes[model] - self.free
        evicted: tuple[int, ...] = ()
        if lacking > 0:
            if ahead:
                return None
            evicted, lacking = self._victims(lacking, (model,), (), idle_until=now - GRACE_SECONDS)
            if lacking > 0:
                return None
        for other in evicted:
            self.drop(other)
        self._take_in(model)
        return evicted

    def adopt(self, model: int, now: float) -> None:
        """A copy is there already: it came with the worker."""
        self._take_in(model)
        self.copied(model, now)

    def copied(self, model: int, now: float = 0.0) -> None:
        """A copy of a model has ended."""
        if self.counts_use:
            self._end_copy(model)
            if not self._keep_promise(model):
                self.release(model, now)
        else:  # there is never more than one
            self.copying.pop(model, None)

    def failed(self, model: int) -> None:
        """A copy of a model has failed for good: its room is free again, and a task that waits for it has none."""
        self._end_copy(model)
        self._keep_promise(model)
        self._give_up(model)

    def drop(self, model: int) -> None:
        """Give up a copy that no task has, or that is on its way; its room is free again."""
        idle = self._idle.get(model)
        if idle:
            del idle[0]
        elif model in self.copying:
            self._end_copy(model)
        self._give_up(model)

    def expired(self, now: float, keep_alive_seconds: float) -> list[int]:
        """Give up the copies that have been idle for so long; the model of each."""
        gone = []
        for model, idle in self._idle.items():
            while idle and idle[0] + keep_alive_seconds <= now and model not in self._pins:
                del idle[0]
                gone.append(model)
        for model in gone:
            self._give_up(model)
        return gone

    def next_expiry(self, keep_alive_seconds: float) -> float:
        """When the next copy will have been idle for so long."""
        ends = [idle[0] for model, idle in self._idle.items() if idle and model not in self._pins]
        return min(ends, default=math.inf) + keep_alive_seconds

    def _take_in(self, model: int) -> None:
        self._resident[model] = self._resident.get(model, 0) + 1
        self.copying[model] = self.copying.get(model, 0) + 1
        self.free -= self._sizes[model]

    def _give_up(self, model: int) -> None:
        copies = self._resident[model] - 1
        if copies:
            self._resident[model] = copies
        else:
            del self._resident[model]
            self._pins.discard(model)
        self.free += self._sizes[model]

    def _end_copy(self, model: int) -> None:
        under_way = self.copying.get(model, 0)
        if under_way > 1:
            self.copying[model] = under_way - 1
        elif under_way:
            del self.copying[model]

    def _keep_promise(self, model: int) -> bool:
        """One task less waits for a copy that is on its way; whether there was one."""
        promised = self._promised.get(model, 0)
        if promised:
            self._promised[model] = promised - 1
        return bool(promised)

    def _victims(
        self, lacking: float, kept: Container[int], queue: Iterable[Sequence[int]], idle_until: float = math.inf
    ) -> tuple[tuple[int, ...], float]:
        """What has to go for so many bytes, and how many are lacking even then."""
        victims = []
        for model in self._candidates(kept, queue, idle_until):
            if lacking <= 0:
                break
            victims.append(model)
            lacking -= self._sizes[model]
        return tuple(victims), lacking

    def _candidates(self, kept: Container[int], queue: Iterable[Sequence[int]], idle_until: float) -> list[int]:
        """The models that may go, the first to go first; one of which several copies may go, as often."""
        if self.counts_use:
            idle = [
                (since, model)
                for model, copies in self._idle.items()
                for since in copies
                if since <= idle_until and model not in kept and model not in self._pins
            ]
            if self.policy.eviction == "least-recent":
                return [model for _, model in sorted(idle)]
            candidates = sorted((model for _, model in idle), key=list(self._resident).index)
        else:
            candidates = [model for model in self._resident if model not in kept and model not in self._pins]
        if self.policy.eviction == "look-ahead":
            if self._homes:
                candidates.sort(key=self._homes.__contains__)
            first_use = _first_uses(candidates, queue)
            if first_use:
                never = len(first_use)
                # The sort is stable, so models that no task waits for go in the order in which they were.
                candidates.sort(key=lambda model: -first_use.get(model, never))
        return candidates

    def _next_models(
        self, room: float, models: Sequence[int], queue: Iterable[Sequence[int]]
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The models to fetch for the next tasks, in their order; before them, those that go for it."""
        chosen: list[int] = []
        after = iter(queue)
        kept = set(models)
        for task in islice(after, self.policy.prefetch_tasks):
            kept.update(task)
            for model in task:
                if model in self._resident or model in models or model in chosen:
                    continue
                if len(chosen) == self.policy.prefetch_models:
                    return (), tuple(chosen)
                if self._sizes[model] > room:
                    if chosen or self.copying or not self.policy.replaces:
                        return (), tuple(chosen)
                    victims, lacking = self._victims(self._sizes[model] - room, kept, after)
                    return ((), ()) if lacking > 0 else (victims, (model,))
                chosen.append(model)
                room -= self._sizes[model]
        return (), tuple(chosen)

    def _does_not_fit(self, models: Sequence[int], lacking: float) -> DoesNotFitError:
        needed = sum(self._sizes[model] for model in dict.fromkeys(models))
        return DoesNotFitError(
            f"models {list(models)} need {needed:.0f} bytes together, {lacking:.0f} more than the memory of "
            f"{self.capacity:.0f} bytes has beside what is pinned"
        )


def _first_uses(candidates: Sequence[int], queue: Iterable[Sequence[int]]) -> dict[int, int]:
    """In which order the candidates are first needed; those that no task in the queue needs are left out."""
    waiting = set(candidates)
    uses: dict[int, int] = {}
    for task in queue:
        for model in task:
            if model in waiting:
                waiting.discard(model)
                uses[model] = len(uses)
        if not waiting:
            break
    return uses
