"""Fronts: each step keeps exactly the plans that could be the cheapest within some time."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fairway.configure.search.fronts import Front, either, in_parallel, in_series, nothing, of_stage

points = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=8)


def front_of(stage: int, given_points: list[tuple[int, int]]) -> Front:
    seconds, cost = (np.array(values, float) for values in zip(*given_points, strict=True))
    return of_stage(stage, seconds, cost, np.arange(len(given_points)))


def undominated(values: list[tuple[float, float]]) -> list[tuple[float, float]]:
    return sorted(
        {each for each in values if not any(o != each and o[0] <= each[0] and o[1] <= each[1] for o in values)}
    )


def pairs(front: Front) -> list[tuple[float, float]]:
    return list(zip(front.seconds.tolist(), front.cost.tolist(), strict=True))


@given(points)
def test_the_front_of_a_stage_is_what_nothing_undercuts(given_points: list[tuple[int, int]]) -> None:
    front = front_of(3, given_points)
    assert pairs(front) == undominated([(float(t), float(c)) for t, c in given_points])
    for point in range(len(front)):
        number = front.plan(point)[3]
        assert given_points[number] == (front.seconds[point], front.cost[point])


@given(points, points)
def test_in_series_times_and_costs_add(first: list[tuple[int, int]], second: list[tuple[int, int]]) -> None:
    front = in_series(front_of(0, first), front_of(1, second))
    assert pairs(front) == undominated([(float(a + c), float(b + d)) for (a, b), (c, d) in product(first, second)])
    for point in range(len(front)):
        plan = front.plan(point)
        assert first[plan[0]][0] + second[plan[1]][0] == front.seconds[point]
        assert first[plan[0]][1] + second[plan[1]][1] == front.cost[point]


@given(points, points)
def test_in_parallel_the_slower_counts(first: list[tuple[int, int]], second: list[tuple[int, int]]) -> None:
    front = in_parallel(front_of(0, first), front_of(1, second))
    assert pairs(front) == undominated([(float(max(a, c)), float(b + d)) for (a, b), (c, d) in product(first, second)])
    for point in range(len(front)):
        plan = front.plan(point)
        assert max(first[plan[0]][0], second[plan[1]][0]) <= front.seconds[point]
        assert first[plan[0]][1] + second[plan[1]][1] == front.cost[point]


@given(points, points)
def test_either_is_the_better_of_both(first: list[tuple[int, int]], second: list[tuple[int, int]]) -> None:
    front = either([front_of(0, first), front_of(1, second)])
    assert pairs(front) == undominated([(float(t), float(c)) for t, c in (*first, *second)])
    assert all(len(front.plan(point)) == 1 for point in range(len(front)))


def test_nothing_takes_its_time_and_has_no_plan() -> None:
    assert pairs(nothing(2.0)) == [(2.0, 0.0)]
    assert nothing().plan(0) == {}
    empty = of_stage(0, np.empty(0), np.empty(0), np.empty(0, np.int64))
    assert len(in_series(empty, nothing())) == len(in_parallel(empty, nothing())) == 0
