"""Chooses how to cut a GPU for a load: the fewest slices on which every model answers all of its requests in time.

An instance serves one model. With s the seconds that a request of a model takes on a profile, an instance takes up to
u/s requests per second (u is how busy it may be); it is of use only where s is within the model's limit. A model has to
get instances that take its rate together:

    minimise  Σ_p price_p · n_p,  then the memory slices,   so that some layout has n_p instances of each profile p and
              they can be dealt out with  Σ_p n_mp · u / s_mp ≥ rate_m  for every model m.

Counts of instances are points in a small grid, and of those that a layout has any smaller ones are legal, too. So a
model needs looking at only with counts from which no instance can be taken away, and the sums of such counts that stay
legal, model after model, are all that can come out. The answer is exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from fairway.configure.arrays import BoolArray, FloatArray, IntArray
from fairway.configure.slices.layouts import Counts, Layout, MigInstance, layouts_by_counts
from fairway.configure.slices.mig import MigDevice
from fairway.errors import InputError

_ROUNDING = 1e-9
"""By which part a rate may be missed: what is left over of adding up numbers."""


@dataclass(frozen=True, slots=True)
class ModelLoad:
    """A model to be served: requests per second, seconds of one on each profile where it runs, and its limit."""

    name: str
    rate: float
    seconds: Mapping[str, float]
    limit_seconds: float = float("inf")

    def __post_init__(self) -> None:
        if not 0 < self.rate < float("inf"):
            raise InputError(f"{self.name}: rate: {self.rate} given, expected requests per second > 0")
        if not self.limit_seconds > 0:
            raise InputError(f"{self.name}: limit_seconds: {self.limit_seconds} given, expected a number > 0")
        for profile, seconds in self.seconds.items():
            if not 0 < seconds < float("inf"):
                raise InputError(f"{self.name}: seconds.{profile}: {seconds} given, expected a number > 0")


@dataclass(frozen=True, slots=True)
class LayoutChoice:
    """The layout, and the instances of it that each model gets; without a layout, `reason` says why there is none."""

    layout: Layout | None
    instances: Mapping[str, tuple[MigInstance, ...]] = field(default_factory=dict)
    price: float = float("inf")
    reason: str | None = None


def choose_layout(
    device: MigDevice,
    load: Sequence[ModelLoad],
    *,
    most_busy: float = 1.0,
    prices: Mapping[str, float] | None = None,
    present: Layout = (),
) -> LayoutChoice:
    """The cheapest instances that hold the load, in the layout of them that keeps most of the `present` one.

    A profile costs its compute slices, or what `prices` says.
    """
    if not 0 < most_busy <= 1:
        raise InputError(f"most_busy: {most_busy} given, expected a number above 0, up to 1")
    repeated = {one.name for one in load if sum(other.name == one.name for other in load) > 1}
    if repeated:
        raise InputError(f"load: {min(repeated)} is given twice")
    grid = _Grid.of(device)
    needs: list[IntArray] = []
    for model in load:
        for name in model.seconds:
            device.profile(name)
        each = _taken(device, model, most_busy)
        if not each.any():
            return LayoutChoice(None, reason=_too_slow(device, model))
        enough = grid.least_counts(each, model.rate)
        if not len(enough):
            return LayoutChoice(None, reason=f"{model.name} alone needs more than one {device.name}")
        needs.append(enough)
    reached = [np.zeros(1, np.int64)]
    for enough in needs:
        sums = np.unique(reached[-1][:, None] + enough)
        reached.append(sums[grid.is_legal[sums]])
        if not len(reached[-1]):
            return LayoutChoice(None, reason=f"the load needs more than one {device.name}")
    cost = np.array([_price(device, prices, name.name) for name in device.profiles])
    last = reached[-1]
    counts = grid.counts[grid.number[last]]
    memory = counts @ np.array([profile.memory for profile in device.profiles])
    best = np.lexsort((last, memory, counts @ cost))[0]
    layout = _nearest(layouts_by_counts(device)[tuple(counts[best].tolist())], present)
    shares = _dealt(grid, needs, reached, int(last[best]))
    return LayoutChoice(layout, _given(device, load, shares, layout), float(counts[best] @ cost))


@dataclass(frozen=True, eq=False)
class _Grid:
    """Counts as single numbers that can be added: `radix` has what one instance of each profile adds.

    `counts` are the legal ones, `codes` their numbers; `is_legal` says whether a number is one of them, `number` which.
    """

    counts: IntArray
    codes: IntArray
    radix: IntArray
    is_legal: BoolArray
    number: IntArray

    @staticmethod
    @cache
    def of(device: MigDevice) -> _Grid:
        counts = np.array(list(layouts_by_counts(device)), np.int64)
        widths = 2 * counts.max(axis=0) + 1  # the sum of two legal counts does not run over into the next place
        radix = np.concatenate(([1], np.cumprod(widths)[:-1])).astype(np.int64)
        codes = counts @ radix
        is_legal = np.zeros(int(np.prod(widths)), bool)
        is_legal[codes] = True
        number = np.zeros(len(is_legal), np.int64)
        number[codes] = np.arange(len(codes))
        return _Grid(counts, codes, radix, is_legal, number)

    def least_counts(self, each: FloatArray, rate: float) -> IntArray:
        """The codes of counts that take a rate, and would not with any one instance less; `each` is what one takes."""
        wanted = rate * (1 - _ROUNDING)
        total = self.counts @ each
        spare = np.where(self.counts > 0, total[:, None] - each < wanted, True).all(axis=1)
        return self.codes[(total >= wanted) & spare]


def _taken(device: MigDevice, model: ModelLoad, most_busy: float) -> FloatArray:
    """How many requests per second an instance of each profile takes in time."""
    seconds = [model.seconds.get(profile.name, float("inf")) for profile in device.profiles]
    return np.array([most_busy / one if one <= model.limit_seconds else 0.0 for one in seconds])


def _too_slow(device: MigDevice, model: ModelLoad) -> str:
    if not model.seconds:
        return f"{model.name} runs on no slice of a {device.name}"
    fastest = min(model.seconds, key=lambda name: model.seconds[name])
    return (
        f"{model.name} takes {model.seconds[fastest]:g} s on its fastest slice of a {device.name} ({fastest}), "
        f"and has {model.limit_seconds:g} s"
    )


def _price(device: MigDevice, prices: Mapping[str, float] | None, name: str) -> float:
    if prices is None:
        return device.profile(name).compute
    if name not in prices or not 0 < prices[name] < float("inf"):
        raise InputError(f"prices: {name}: {prices.get(name)} given, expected a number > 0")
    return prices[name]


def _nearest(layouts: Sequence[Layout], present: Layout) -> Layout:
    """The layout that keeps most instances of what there is; the first of several."""
    there = set(present)
    return max(layouts, key=lambda layout: len(there.intersection(layout)))


def _dealt(grid: _Grid, needs: Sequence[IntArray], reached: Sequence[IntArray], code: int) -> list[Counts]:
    """Which counts each model gets of those that were chosen for all of them, from the last model back."""
    shares: list[Counts] = []
    for enough, before in zip(reversed(needs), reversed(reached[:-1]), strict=True):
        own = int(enough[np.isin(code - enough, before)][0])
        shares.append(tuple(grid.counts[grid.number[own]].tolist()))
        code -= own
    return shares[::-1]


def _given(
    device: MigDevice, load: Sequence[ModelLoad], shares: Sequence[Counts], layout: Layout
) -> dict[str, tuple[MigInstance, ...]]:
    free = {profile.name: [one for one in layout if one.profile == profile.name] for profile in device.profiles}
    return {
        model.name: tuple(
            sorted(
                free[profile.name].pop(0)
                for profile, count in zip(device.profiles, counts, strict=True)
                for _ in range(count)
            )
        )
        for model, counts in zip(load, shares, strict=True)
    }
