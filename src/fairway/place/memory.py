"""Manages what one accelerator's memory holds: what goes when room is needed, what comes before it is asked for.

Asked before each task (Compass, memory management). Eviction looks ahead: first go the models that no task in the queue
needs, the longest held first, then those whose first use is furthest away (Belady's rule, as far as the queue goes). Of
those that nobody needs, models that are at home on this worker (`homes`) stay longer than guests; that is ours.
The baseline evicts in the order in which models came. If the task needs nothing evicted, a model of one of the next few
tasks may be fetched while it runs, never past an earlier task's model. Compass's prefetching takes free room only. Ours
may also take that of models that are needed later than the one that comes, or by nobody: "do no harm", the rule of
integrated prefetching and caching (Cao et al., SIGMETRICS 1995); and only while no other copy is under way, since the
longer it waits, the better it knows.

What is decided counts at once: a model that is evicted is gone and one that is to be fetched has its room before the
copy begins, so the memory is never overbooked. Models are read-only, so eviction copies nothing.
"""

from __future__ import annotations

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

    eviction: Literal["look-ahead", "fifo"] = "look-ahead"
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


class DeviceMemory:
    """The models in one accelerator's memory, by number, in the order in which they came.

    A model counts from the decision to fetch it. Pinned models never go. `copying` are those whose copy has not ended
    yet; if one of these is evicted, its copy has to be stopped. `held` are all of them, as a set to look into. `homes`
    are the models that are at home here, whether they are there or not.
    """

    __slots__ = (
        "_homes",
        "_pins",
        "_prefetches",
        "_resident",
        "_sizes",
        "capacity",
        "copying",
        "free",
        "held",
        "policy",
    )

    def __init__(
        self, capacity: float, model_bytes: Sequence[float], policy: MemoryPolicy, homes: Iterable[int] = ()
    ) -> None:
        self._homes = frozenset(homes)
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
            evicted, lacking = self._victims(needed - self.free, models, queue)
            if lacking > 0:
                raise self._does_not_fit(models, lacking)
        elif self._prefetches:
            evicted, prefetched = self._next_models(self.free - needed, models, queue)
        for model in evicted:
            self.drop(model)
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

    def _victims(
        self, lacking: float, kept: Container[int], queue: Iterable[Sequence[int]]
    ) -> tuple[tuple[int, ...], float]:
        """What has to go for so many bytes, and how many are lacking even then."""
        candidates = [model for model in self._resident if model not in kept and model not in self._pins]
        if self.policy.eviction == "look-ahead":
            if self._homes:
                candidates.sort(key=self._homes.__contains__)
            first_use = _first_uses(candidates, queue)
            if first_use:
                never = len(first_use)
                # The sort is stable, so models that nobody waits for go in the order in which they were.
                candidates.sort(key=lambda model: -first_use.get(model, never))
        victims = []
        for model in candidates:
            if lacking <= 0:
                break
            victims.append(model)
            lacking -= self._sizes[model]
        return tuple(victims), lacking

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
