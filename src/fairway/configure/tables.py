"""An application on a platform as arrays: what each configuration takes and costs, once for all decisions.

A stage that comes later is expected to find its input on its worker and its model there:

    seconds = t + overhead + local fetch                 cost = rate · t / batch, per job

For the stage that is being decided, the fetch is whatever is expected at that moment, and is added to `run_seconds`.
Everything here depends on prices and profiles only, never on a queue, and is worked out when it is first needed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from fairway.configure.application import Application
from fairway.configure.arrays import BoolArray, FloatArray, IntArray
from fairway.configure.platform import Platform
from fairway.configure.profile import Profile
from fairway.configure.queues import Choice, Kind
from fairway.configure.search.fronts import Front, of_stage
from fairway.configure.search.graph_front import graph_front

Allowed = Callable[[Profile], BoolArray]
"""Which configurations of a profile may be used."""

_MOST_STEPS = 4096


class Steps:
    """The answers of a step function that are known: each holds from a time on, and below another one."""

    __slots__ = ("_answers", "_since", "_until")

    def __init__(self) -> None:
        self._since: list[float] = []
        self._until: list[float] = []
        self._answers: list[tuple[int, ...]] = []

    def at(self, time: float) -> tuple[int, ...] | None:
        """The answer that holds at a time, if it is known."""
        step = bisect_right(self._since, time) - 1
        return self._answers[step] if step >= 0 and time < self._until[step] else None

    def add(self, answer: tuple[int, ...], since: float, until: float) -> None:
        """Take in an answer, which holds for no time that has one already; of very many, all others go."""
        if len(self._since) >= _MOST_STEPS:
            self._since.clear()
            self._until.clear()
            self._answers.clear()
        step = bisect_right(self._since, since)
        self._since.insert(step, since)
        self._until.insert(step, until)
        self._answers.insert(step, answer)


@dataclass(frozen=True, eq=False)
class FirstLayer:
    """The configurations of the stage to decide that a queue can fill, in the order of the profile.

    `steps` are answers that were found (`front`), by what is added to run times and how many were asked for.
    """

    numbers: IntArray
    run_seconds: FloatArray
    cost: FloatArray
    begins: IntArray
    ends: IntArray
    rest_seconds: FloatArray
    rest_cost: FloatArray
    rests: tuple[Front, ...]
    steps: dict[tuple[float, int], Steps] = field(default_factory=dict, repr=False)

    @property
    def columns(self) -> tuple[FloatArray, FloatArray, IntArray, IntArray, FloatArray, FloatArray]:
        """As the kernels take them."""
        return self.run_seconds, self.cost, self.begins, self.ends, self.rest_seconds, self.rest_cost

    @cached_property
    def fastest(self) -> tuple[int, ...]:
        """The numbers of all configurations by their time, between equals the cheaper first."""
        return tuple(self.numbers[np.lexsort((self.cost, self.run_seconds))].tolist())

    @cached_property
    def cheapest(self) -> tuple[int, ...]:
        """The numbers of all configurations by their cost per job, between equals the faster first."""
        return tuple(self.numbers[np.lexsort((self.run_seconds, self.cost))].tolist())

    @cached_property
    def least_seconds(self) -> float:
        """The time of the fastest."""
        return float(self.run_seconds.min())


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
    _choices: dict[tuple[int, tuple[int, ...], Kind], tuple[Choice, ...]] = field(default_factory=dict, repr=False)

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
    def batches(self) -> tuple[list[int], ...]:
        """By stage, the batch sizes that may be used, rising."""
        return tuple(
            np.unique(profile.batch[mask]).tolist()
            for profile, mask in zip(self.application.profiles, self.masks, strict=True)
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
        usable = bisect_right(self.batches[stage], queue_length)
        key = (stage, after, usable)
        layer = self._firsts.get(key)
        if layer is None:
            layer = self._firsts[key] = self._first_layer(stage, after, queue_length)
        return layer

    def choices(self, stage: int, numbers: tuple[int, ...], kind: Kind) -> tuple[Choice, ...]:
        """The configurations of these numbers as choices of this kind; there are few answers, each given often."""
        key = (stage, numbers, kind)
        choices = self._choices.get(key)
        if choices is None:
            profile = self.application.profiles[stage]
            choices = tuple([Choice(profile.configuration(number), kind) for number in numbers])
            self._choices[key] = choices
        return choices

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
