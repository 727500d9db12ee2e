"""The cheapest addition that reaches a goal: how many workers of which types to add.

For each type by itself, the count is doubled until the goal is reached and then bisected. The cheapest of these bounds
what a mixture may cost, and mixtures below that are tried from the cheapest on. More workers are taken never to do
harm: what has at most as many of each type as an addition that did not reach the goal is not tried. Where nothing has
a price, every worker costs the same.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fairway.errors import InputError
from fairway.experiments.analysis import Estimate, estimate
from fairway.experiments.planning.change import Change
from fairway.experiments.planning.goal import Goal
from fairway.experiments.planning.plan import SEEDS, forward
from fairway.experiments.planning.world import World, changed, counted
from fairway.profiles.catalog import PRICES
from fairway.sim.comparison import Pool, Watcher

MOST_WORKERS = 64
_MOST_MIXTURES = 40

Counts = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """The cheapest addition of those tried that reaches the goal, or None; `values` is the metric by addition tried.

    `dollars_per_hour` is what it costs, None where workers have no price. With `complete`, no cheaper addition up to
    `most` workers of each type is left that could reach the goal, if more workers never do harm.
    """

    goal: Goal
    change: Change | None
    values: Mapping[str, Estimate]
    dollars_per_hour: float | None
    most: int
    complete: bool


class _Trial:
    """Additions that were tried, and what came of them."""

    def __init__(
        self,
        world: World,
        goal: Goal,
        types: Sequence[str],
        seeds: int,
        given: Mapping[str, float],
        pool: Pool,
        watcher: Watcher | None,
    ) -> None:
        self._world, self._goal, self.types, self._seeds = world, goal, types, seeds
        self._given, self._pool, self._watcher = given, pool, watcher
        self.values: dict[Counts, Estimate] = {}

    def reached(self, several: Sequence[Counts]) -> list[bool]:
        """Whether each of several additions reaches the goal; those not tried yet are simulated at once."""
        new = [counts for counts in dict.fromkeys(several) if counts not in self.values]
        worlds = [changed(self._world, self.change(counts), self._given) for counts in new]
        for counts, outlooks in zip(new, forward(worlds, self._seeds, self._pool, self._watcher), strict=True):
            self.values[counts] = estimate([one.numbers()[self._goal.metric] for one in outlooks])
        return [self._goal.reached(self.values[counts].mean) for counts in several]

    def change(self, counts: Counts) -> Change:
        """The change that an addition is."""
        return Change({name: count for name, count in zip(self.types, counts, strict=True) if count})

    def hopeless(self, counts: Counts) -> bool:
        """Whether an addition has at most as many of each type as one that did not reach the goal."""
        return any(
            not self._goal.reached(value.mean)
            and all(mine <= theirs for mine, theirs in zip(counts, tried, strict=True))
            for tried, value in self.values.items()
        )


def cheapest_addition(
    world: World,
    goal: Goal,
    *,
    types: Sequence[str] = (),
    most: int = MOST_WORKERS,
    seeds: int = SEEDS,
    prices: Mapping[str, float] | None = None,
    pool: Pool | None = None,
    watcher: Watcher | None = None,
) -> Found:
    """Search it among `types`, those of the cluster unless given, with at most so many more workers of each."""
    if pool is None:
        with Pool() as own:
            return cheapest_addition(
                world, goal, types=types, most=most, seeds=seeds, prices=prices, pool=own, watcher=watcher
            )
    if most < 1:
        raise InputError(f"most: {most} given, expected at least 1 worker")
    names = tuple(dict.fromkeys(types)) or tuple(counted(world.cluster))
    costs, priced = _costs(world, names, prices or {})
    trial = _Trial(world, goal, names, seeds, prices or {}, pool, watcher)
    nothing = (0,) * len(names)
    best: Counts | None = nothing if trial.reached([nothing])[0] else None
    if best is None:
        alone = _alone(trial, len(names), most)
        best = min(alone, key=lambda counts: (_cost(counts, costs), counts), default=None)
    best, complete = _mixtures(trial, costs, best, most)
    return Found(
        goal,
        None if best is None else trial.change(best),
        {str(trial.change(counts)): value for counts, value in trial.values.items()},
        _cost(best, costs) if best is not None and priced else None,
        most,
        complete,
    )


def _alone(trial: _Trial, types: int, most: int) -> list[Counts]:
    """For each type, the fewest workers that reach the goal without others; types that never do are left out."""
    lows, highs = [0] * types, [1] * types
    growing = list(range(types))
    reached: dict[int, bool] = {}
    while growing:
        verdicts = trial.reached([_only(types, number, highs[number]) for number in growing])
        still = []
        for number, verdict in zip(growing, verdicts, strict=True):
            reached[number] = verdict
            if not verdict and highs[number] < most:
                lows[number], highs[number] = highs[number], min(2 * highs[number], most)
                still.append(number)
            elif not verdict:
                lows[number] = highs[number]
        growing = still
    open_ones = [number for number in range(types) if reached[number]]
    while narrowing := [number for number in open_ones if highs[number] - lows[number] > 1]:
        middles = {number: (lows[number] + highs[number]) // 2 for number in narrowing}
        verdicts = trial.reached([_only(types, number, middles[number]) for number in narrowing])
        for number, verdict in zip(narrowing, verdicts, strict=True):
            (highs if verdict else lows)[number] = middles[number]
    return [_only(types, number, highs[number]) for number in open_ones]


def _mixtures(trial: _Trial, costs: Sequence[float], best: Counts | None, most: int) -> tuple[Counts | None, bool]:
    """Try mixtures that cost less than the best so far, from the cheapest on; whether none is left that might do."""
    types = len(costs)
    limit = math.inf if best is None else _cost(best, costs)
    heap: list[tuple[float, Counts]] = [(0.0, (0,) * types)]
    seen = {heap[0][1]}
    tried = 0
    while heap:
        cost, counts = heapq.heappop(heap)
        if cost >= limit:
            return best, True
        if not trial.hopeless(counts):
            if tried == _MOST_MIXTURES:
                return best, False
            tried += 1
            if trial.reached([counts])[0]:
                return counts, True
        for number in range(types):
            if counts[number] < most:
                more = (*counts[:number], counts[number] + 1, *counts[number + 1 :])
                if more not in seen:
                    seen.add(more)
                    heapq.heappush(heap, (_cost(more, costs), more))
        if len(seen) > 100_000:
            return best, False
    return best, True


def _only(types: int, number: int, count: int) -> Counts:
    return tuple(count if each == number else 0 for each in range(types))


def _cost(counts: Counts, costs: Sequence[float]) -> float:
    return sum(count * cost for count, cost in zip(counts, costs, strict=True))


def _costs(world: World, names: Sequence[str], given: Mapping[str, float]) -> tuple[list[float], bool]:
    """What a worker of each type costs in an hour, and whether that is dollars."""
    known = {**PRICES, **world.cluster.prices, **given}
    if all(name in known for name in names):
        return [known[name] for name in names], True
    return [1.0] * len(names), False
