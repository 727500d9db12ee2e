"""An application on a platform as arrays: what each configuration takes and costs, once for all decisions.

A stage that comes later is expected to find its input on its worker and its model there:

    seconds = t + overhead + local fetch                 cost = rate · t / batch, per job

For the stage that is being decided, the fetch is whatever is expected at that moment, and is added to `run_seconds`.
Everything here depends on prices and profiles only, never on a queue, and is worked out when it is first needed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from fairway.configure.application import Application
from fairway.configure.arrays import BoolArray, FloatArray, IntArray
from fairway.configure.fronts import Front, of_stage
from fairway.configure.graph_front import graph_front
from fairway.configure.platform import Platform
from fairway.configure.profile import Profile

Allowed = Callable[[Profile], BoolArray]
"""Which configurations of a profile may be used."""


class FirstLayer(NamedTuple):
    """The configurations of the stage to decide that a queue can fill, in the order of the profile."""

    numbers: IntArray
    run_seconds: FloatArray
    cost: FloatArray
    begins: IntArray
    ends: IntArray
    rest_seconds: FloatArray
    rest_cost: FloatArray
    rests: tuple[Front, ...]


def everything(profile: Profile) -> BoolArray:
    """All configurations may be used."""
    return np.ones(len(profile), np.bool_)


@dataclass(frozen=True, eq=False)
class Tables:
    """The arrays of an application on a platform, with those configurations only that are allowed.

    With `same_batch`, later stages get batches no larger than that of the stage that is decided.
    """

    application: Application
    platform: Platform
    allowed: Allowed = everything
    same_batch: bool = False
    _fronts: dict[tuple[int, int | None], Front] = field(default_factory=dict, repr=False)
    _rests: dict[tuple[tuple[int, ...], int | None], Front] = field(default_factory=dict, repr=False)
    _firsts: dict[tuple[int, tuple[int, ...], int], FirstLayer] = field(default_factory=dict, repr=False)

    @cached_property
    def masks(self) -> tuple[BoolArray, ...]:
        """By stage, which configurations may be used."""
        return tuple(self.allowed(profile) for profile in self.application.profiles)

    @cached_property
    def costs(self) -> tuple[FloatArray, ...]:
        """By stage, the cost per job of each configuration."""
        prices = self.platform.prices
        return tuple(
            prices.cost_per_job(profile.batch, profile.cpu, profile.gpu, profile.seconds)
            for profile in self.application.profiles
        )

    @cached_property
    def added(self) -> tuple[float, ...]:
        """By stage, what it takes on top of its run time if its input is local."""
        local = self.platform.transfers.local_seconds
        return tuple(self.platform.overhead_seconds + local(size) for size in self.application.workflow.input_bytes)

    @cached_property
    def batches(self) -> tuple[IntArray, ...]:
        """By stage, the batch sizes that may be used, rising."""
        return tuple(
            np.unique(profile.batch[mask]) for profile, mask in zip(self.application.profiles, self.masks, strict=True)
        )

    @cached_property
    def fastest_rests(self) -> tuple[float, ...]:
        """By stage, the least time from its end to the end of the request."""
        least = [
            float(profile.seconds[mask].min()) + added if mask.any() else np.inf
            for profile, mask, added in zip(self.application.profiles, self.masks, self.added, strict=True)
        ]
        ranks = self.application.workflow.upward_ranks(least, [0.0] * len(self.application))
        return tuple(rank - own for rank, own in zip(ranks, least, strict=True))

    def stage_front(self, stage: int, most_batch: int | None = None) -> Front:
        """The front of a later stage, with batches of at most this size."""
        key = (stage, most_batch)
        if key not in self._fronts:
            profile = self.application.profiles[stage]
            mask = self.masks[stage] if most_batch is None else self.masks[stage] & (profile.batch <= most_batch)
            numbers = np.flatnonzero(mask)
            seconds = profile.seconds[numbers] + self.added[stage]
            self._fronts[key] = of_stage(stage, seconds, self.costs[stage][numbers], numbers)
        return self._fronts[key]

    def rest_front(self, stages: tuple[int, ...], most_batch: int | None = None) -> Front:
        """The front of all of these stages together."""
        key = (stages, most_batch)
        if key not in self._rests:
            fronts = {stage: self.stage_front(stage, most_batch) for stage in stages}
            self._rests[key] = graph_front(self.application.workflow, stages, fronts)
        return self._rests[key]

    def first_layer(self, stage: int, after: tuple[int, ...], queue_length: int) -> FirstLayer:
        """The configurations of a stage that so many jobs can fill, with the front of what comes after."""
        usable = int(np.searchsorted(self.batches[stage], queue_length, side="right"))
        key = (stage, after, usable)
        if key not in self._firsts:
            self._firsts[key] = self._first_layer(stage, after, queue_length)
        return self._firsts[key]

    def _first_layer(self, stage: int, after: tuple[int, ...], queue_length: int) -> FirstLayer:
        profile = self.application.profiles[stage]
        numbers = np.flatnonzero(self.masks[stage] & (profile.batch <= queue_length))
        if self.same_batch:
            sizes = np.unique(profile.batch[numbers])
            rests = tuple(self.rest_front(after, int(size)) for size in sizes.tolist())
            which = np.searchsorted(sizes, profile.batch[numbers])
        else:
            rests = (self.rest_front(after),)
            which = np.zeros(len(numbers), np.int64)
        offsets = np.cumsum([0, *map(len, rests)])
        return FirstLayer(
            numbers,
            profile.seconds[numbers],
            self.costs[stage][numbers],
            offsets[which],
            offsets[which + 1],
            np.concatenate([rest.seconds for rest in rests] or [np.empty(0)]),
            np.concatenate([rest.cost for rest in rests] or [np.empty(0)]),
            rests,
        )
