"""The cheapest addition: the one that trying all of them finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.cluster import Cluster
from fairway.errors import InputError
from fairway.experiments.planning import Change, Goal, Outlook, cheapest_addition
from fairway.experiments.planning.outlook import Forecast
from fairway.sim.comparison import Pool
from fairway.sim.submissions import Progress


@dataclass(frozen=True)
class Formula:
    """A world whose one job waits 1000 s divided by how strong its cluster is."""

    strengths: tuple[float, ...]
    counts: tuple[int, ...]
    prices: tuple[float, ...]
    files: tuple[str, ...] = ()

    @property
    def cluster(self) -> Cluster:
        names = [f"t{number}" for number in range(len(self.counts))]
        return Cluster(dict.fromkeys(names, 1), dict(zip(names, self.prices, strict=True)))

    def changed(self, change: Change, prices: Mapping[str, float]) -> Formula:
        assert not prices
        more = [change.add.get(f"t{number}", 0) for number in range(len(self.counts))]
        return replace(self, counts=tuple(a + b for a, b in zip(self.counts, more, strict=True)))

    def run(self, seed: int, progress: Progress | None = None) -> Outlook:
        assert seed == 0
        assert progress is not None
        wait = 1000.0 / (1 + sum(a * b for a, b in zip(self.strengths, self.counts, strict=True)))
        return Outlook((Forecast("a", None, 0.0, wait, wait, float("nan"), 0.0),))


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=3),
    st.integers(10, 900),
)
def test_the_cheapest_addition_is_found(types: list[tuple[int, int]], bound: int) -> None:
    most = 6
    strengths, prices = tuple(float(a) for a, _ in types), tuple(float(b) for _, b in types)
    world = Formula(strengths, (0,) * len(types), prices)
    goal = Goal.parse(f"mean wait <= {bound}s")
    found = cheapest_addition(world, goal, most=most, seeds=1, pool=Pool(1))
    costs = [
        sum(count * price for count, price in zip(counts, prices, strict=True))
        for counts in product(range(most + 1), repeat=len(types))
        if 1000.0 / (1 + sum(a * b for a, b in zip(strengths, counts, strict=True))) <= bound
    ]
    if found.change is None:
        assert not costs or not found.complete
    else:
        added = [found.change.add.get(f"t{number}", 0) for number in range(len(types))]
        assert found.dollars_per_hour == pytest.approx(sum(a * b for a, b in zip(added, prices, strict=True)))
        reached = world.changed(found.change, {}).run(0, lambda *_: None).numbers()["mean wait"]
        assert goal.reached(reached)
        if found.complete:
            assert found.dollars_per_hour == pytest.approx(min(costs))


def test_nothing_is_added_where_the_goal_is_reached_already() -> None:
    world = Formula((1.0,), (0,), (1.0,))
    found = cheapest_addition(world, Goal.parse("mean wait < 2000s"), seeds=1, pool=Pool(1))
    assert found.change == Change()
    assert found.dollars_per_hour == 0
    assert list(found.values) == ["as it is"]


def test_a_goal_out_of_reach_is_said_to_be_so() -> None:
    world = Formula((1.0,), (0,), (1.0,))
    found = cheapest_addition(world, Goal.parse("mean wait < 1s"), most=3, seeds=1, pool=Pool(1))
    assert found.change is None
    assert found.dollars_per_hour is None
    with pytest.raises(InputError, match="most: 0 given"):
        cheapest_addition(world, Goal.parse("mean wait < 1s"), most=0, seeds=1, pool=Pool(1))
