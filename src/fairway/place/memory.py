"""Manages what one accelerator's memory holds: what goes when room is needed, what comes before it is asked for.

Asked before each task (Compass, memory management). Eviction looks ahead: first go the models that no task in the queue
needs, the longest held first, then those whose first use is furthest away (Belady's rule, as far as the queue goes).
The baseline evicts in the order in which models came. If the task needs nothing evicted, a model of one of the next few
tasks may be fetched while it runs; prefetching never evicts and never passes over an earlier task's model.

What is decided counts at once: a model that is evicted is gone and one that is to be fetched has its room before the
copy begins, so the memory is never overbooked. Models are read-only, so eviction copies nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal, NamedTuple

from fairway.errors import FairwayError, InputError
from fairway.made import made


class DoesNotFitError(FairwayError):
    """A task's models do not fit in memory beside those that cannot go; the task has to be refused."""


@dataclass(frozen=True, slots=True)
class MemoryPolicy:
    """How to evict, how many models to prefetch at most before a task, and how far down the queue to look for them."""

    eviction: Literal["look-ahead", "fifo"] = "look-ahead"
    prefetch_models: int = 1
    prefetch_tasks: int = 3

    @classmethod
    def looking_ahead(cls, *, prefetches: bool) -> MemoryPolicy:
        """Eviction that looks ahead, with prefetching or without."""
        return cls() if prefetches else cls(prefetch_models=0, prefetch_tasks=0)

    @property
    def prefetches(self) -> bool:
        """Whether models may come before the task that needs them."""
        return self.eviction == "look-ahead" and self.prefetch_models > 0 and self.prefetch_tasks > 0


class Preparation(NamedTuple):
    """What to do before a task runs: evict, fetch and wait for it, and what to fetch while the task runs."""

    evict: tuple[int, ...]
    fetch: tuple[int, ...]
    prefetch: tuple[int, ...]


class DeviceMemory:
    """The models in one accelerator's memory, by number, in the order in which they came.

    A model counts from the decision to fetch it. Pinned models never go. `copying` are those whose copy has not ended
    yet; if one of these is evicted, its copy has to be stopped. `held` are all of them, as a set to look into.
    """

    __slots__ = ("_pins", "_prefetches", "_resident", "_sizes", "capacity", "copying", "free", "held", "policy")

    def __init__(self, capacity: float, model_bytes: Sequence[float], policy: MemoryPolicy) -> None:
        self.capacity = float(capacity)
        self.free = float(capacity)
        self.policy = policy
        self.copying: set[int] = set()
        self._sizes = model_bytes
        self._prefetches = policy.prefetches
        self._resident: dict[int, None] = {}
        self.held = self._resident.keys()
        self._pins: dict[int, int] = {}

    @property
    def resident(self) -> tuple[int, ...]:
        """The models that are there or on their way, the longest held first."""
        return tuple(self._resident)

    def __contains__(self, model: int) -> bool:
        return model in self._resident

    def pin(self, model: int) -> None:
        """Keep a resident model until it is unpinned as often as it was pinned."""
        if model not in self._resident:
            raise InputError(f"model {model} is not in memory, so it cannot be pinned; prepare it first")
        self._pins[model] = self._pins.get(model, 0) + 1

    def unpin(self, model: int) -> None:
        """Take one pin away."""
        if model not in self._pins:
            raise InputError(f"model {model} is not pinned, so it cannot be unpinned")
        self._pins[model] -= 1
        if not self._pins[model]:
            del self._pins[model]

    def prepare(self, models: Sequence[int], queue: Iterable[Sequence[int]]) -> Preparation:
        """Make room for a task's models and take them in; `queue` has the models of each waiting task, next first.

        If they cannot fit, nothing changes and the task is to be refused.
        """
        resident, sizes = self._resident, self._sizes
        missing: tuple[int, ...] = ()
        needed = 0.0
        for model in models:
            if model not in resident and model not in missing:
                missing = (*missing, model)
                needed += sizes[model]
        evicted: tuple[int, ...] = ()
        prefetched: tuple[int, ...] = ()
        if needed > self.free:
            evicted = self._victims(needed - self.free, models, queue)
            for model in evicted:
                self.drop(model)
        elif self._prefetches:
            prefetched = self._next_models(self.free - needed, models, queue)
        for model in missing + prefetched:
            resident[model] = None
            self.copying.add(model)
            self.free -= sizes[model]
        return made(Preparation, (evicted, missing, prefetched))

    def copied(self, model: int) -> None:
        """The copy of a model has ended."""
        self.copying.discard(model)

    def drop(self, model: int) -> None:
        """Give up a model, or its copy if that has not ended; its room is free again."""
        del self._resident[model]
        self.copying.discard(model)
        self._pins.pop(model, None)
        self.free += self._sizes[model]

    def _victims(self, lacking: float, models: Sequence[int], queue: Iterable[Sequence[int]]) -> tuple[int, ...]:
        candidates = [model for model in self._resident if model not in models and model not in self._pins]
        if self.policy.eviction == "look-ahead":
            first_use = _first_uses(candidates, queue)
            if first_use:
                never = len(first_use)
                # The sort is stable, so models that nobody waits for go in the order in which they came.
                candidates.sort(key=lambda model: -first_use.get(model, never))
        victims = []
        for model in candidates:
            if lacking <= 0:
                break
            victims.append(model)
            lacking -= self._sizes[model]
        if lacking > 0:
            needed = sum(self._sizes[model] for model in dict.fromkeys(models))
            raise DoesNotFitError(
                f"models {list(models)} need {needed:.0f} bytes together, {lacking:.0f} more than the memory of "
                f"{self.capacity:.0f} bytes has beside what is pinned"
            )
        return tuple(victims)

    def _next_models(self, room: float, models: Sequence[int], queue: Iterable[Sequence[int]]) -> tuple[int, ...]:
        chosen: list[int] = []
        for task in islice(queue, self.policy.prefetch_tasks):
            for model in task:
                if model in self._resident or model in models or model in chosen:
                    continue
                if len(chosen) == self.policy.prefetch_models or self._sizes[model] > room:
                    return tuple(chosen)
                chosen.append(model)
                room -= self._sizes[model]
        return tuple(chosen)


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
