"""The compiled loops against their definitions, tried one by one; in whole numbers, so that ties are many."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from fairway.configure.search.kernels import (
    best_completions,
    best_first_search,
    every_plan,
    layered_search,
    same_answer_between,
    side_by_side,
    undominated,
)

INSTANCES = 150


def layers_of(generator: np.random.Generator, most: int = 4) -> list[list[tuple[float, float]]]:
    """One to three layers of configurations (seconds, cost), each in order of time, then cost."""
    return [
        sorted(
            zip(
                generator.integers(1, 6, size).astype(float).tolist(),
                generator.integers(1, 6, size).astype(float).tolist(),
                strict=True,
            )
        )
        for size in generator.integers(1, most + 1, generator.integers(1, 4)).tolist()
    ]


def flat(layers: list[list[tuple[float, float]]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    points = [point for layer in layers for point in layer]
    offsets = np.cumsum([0, *map(len, layers)])
    return np.array([point[0] for point in points]), np.array([point[1] for point in points]), offsets


def best_by_first(
    layers: list[list[tuple[float, float]]], budget: float
) -> dict[int, tuple[float, float, set[tuple[int, ...]]]]:
    """By first configuration the least cost in time, then the least seconds, and all paths that have both."""
    found: dict[int, tuple[float, float, set[tuple[int, ...]]]] = {}
    for path in product(*(range(len(layer)) for layer in layers)):
        seconds = sum(layers[layer][choice][0] for layer, choice in enumerate(path))
        cost = sum(layers[layer][choice][1] for layer, choice in enumerate(path))
        if seconds <= budget:
            before = found.get(path[0], (np.inf, np.inf, set()))
            if (cost, seconds) < before[:2]:
                before = (cost, seconds, set())
            if (cost, seconds) == before[:2]:
                before[2].add(path)
            found[path[0]] = before
    return found


@pytest.mark.parametrize("search", ["layered", "best first"])
@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_the_search_of_a_chain_finds_the_k_cheapest_and_of_equals_the_fastest(search: str, k: int) -> None:
    for seed in range(INSTANCES):
        generator = np.random.default_rng(seed)
        layers = layers_of(generator)
        seconds, cost, offsets = flat(layers)
        fastest = sum(layer[0][0] for layer in layers)
        budget = fastest + int(generator.integers(-1, 8))
        if search == "layered":
            times, costs, choices, expanded = layered_search(seconds, cost, offsets, budget, k, True)
        else:
            times, costs, choices, expanded = best_first_search(seconds, cost, offsets, budget, k)
        truth = best_by_first(layers, budget)
        assert (expanded > 0) is bool(truth)
        wanted = sorted(found[0] for found in truth.values())[:k]
        assert sorted(costs[np.isfinite(costs)].tolist())[:k] == wanted, (seed, layers, budget)
        if search == "best first":
            assert np.isfinite(costs).sum() == len(wanted), "the first k that end are the answers"
        for first, (least, soonest, paths) in truth.items():
            if (wanted and least < wanted[-1]) or (least == costs[first] and len(truth) <= k):
                assert (costs[first], times[first]) == (least, soonest), (seed, layers, budget)
                assert tuple((choices[first] - offsets[:-1]).tolist()) in paths
        for first in range(len(layers[0])):
            if np.isinf(costs[first]):
                assert np.isinf(times[first])
                assert (choices[first] == -1).all()


def test_between_first_configurations_of_equal_cost_the_best_first_search_ends_the_faster() -> None:
    seconds, cost, offsets = flat([[(1.0, 2.0), (2.0, 2.0), (3.0, 1.0)], [(1.0, 1.0)]])
    times, costs, _, _ = best_first_search(seconds, cost, offsets, 10.0, 2)
    assert costs.tolist() == [3.0, np.inf, 2.0]
    assert times.tolist() == [2.0, np.inf, 4.0]


def test_more_nodes_than_there_was_room_for_are_kept() -> None:
    many = 2100
    layers = [[(float(1 + at), 1.0) for at in range(many)], [(1.0, 1.0)], [(1.0, 1.0)]]
    seconds, cost, offsets = flat(layers)
    times, costs, choices, expanded = layered_search(seconds, cost, offsets, 5000.0, 2, True)
    assert expanded == 3 * many
    assert times.tolist() == [3.0 + at for at in range(many)]
    assert (costs == 3.0).all()
    assert choices[-1].tolist() == [many - 1, many, many + 1]
    times, costs, choices, expanded = best_first_search(seconds, cost, offsets, 5000.0, 2)
    assert times[:2].tolist() == [3.0, 4.0]
    assert choices[1].tolist() == [1, many, many + 1]
    assert expanded == many + 2 * 2


def test_paths_that_cannot_end_in_time_or_cost_more_than_k_known_ones_are_not_counted() -> None:
    # By hand: within 4 s the slowest of the first layer cannot end (3 + 2); the others end with one of two. Without a
    # cost between them to choose, all six others are kept: two of the first layer, and two after each.
    layers = [[(1.0, 1.0), (2.0, 1.0), (3.0, 1.0)], [(2.0, 1.0), (2.0, 1.0)]]
    for search in (lambda *given: layered_search(*given, True), best_first_search):
        assert search(*flat(layers), 4.0, 3)[3] == 6
        assert search(*flat(layers), 2.9, 3)[3] == 0
    # The fastest costs 2, so that nothing of the dear one is kept when one answer is wanted, and all when two are.
    dear = [[(1.0, 1.0), (2.0, 9.0)], [(1.0, 1.0)]]
    assert layered_search(*flat(dear), 9.0, 1, True)[3] == 2
    assert layered_search(*flat(dear), 9.0, 2, True)[3] == 4
    assert best_first_search(*flat(dear), 9.0, 1)[3] == 2
    assert best_first_search(*flat(dear), 9.0, 2)[3] == 4


def test_every_plan_of_a_graph_is_tried_and_the_best_kept_by_what_stage_0_does() -> None:
    for seed in range(INSTANCES):
        generator = np.random.default_rng(seed)
        layers = layers_of(generator, most=3)
        seconds, cost, offsets = flat(layers)
        before = [[s for s in range(stage) if generator.random() < 0.5] for stage in range(len(layers))]
        before_offsets = np.cumsum([0, *map(len, before)])
        budget = float(generator.integers(2, 12))
        times, costs, choices, tried = every_plan(
            seconds,
            cost,
            offsets,
            before_offsets,
            np.array([s for some in before for s in some], dtype=np.int64),
            budget,
        )
        truth: dict[int, tuple[float, float]] = {}
        for plan in product(*(range(len(layer)) for layer in layers)):
            ends: list[float] = []
            for stage, choice in enumerate(plan):
                ends.append(max((ends[source] for source in before[stage]), default=0.0) + layers[stage][choice][0])
            price = sum(layers[stage][choice][1] for stage, choice in enumerate(plan))
            if max(ends) <= budget:
                truth[plan[0]] = min(truth.get(plan[0], (np.inf, np.inf)), (price, max(ends)))
        assert tried == np.prod([len(layer) for layer in layers])
        for first in range(len(layers[0])):
            assert (costs[first], times[first]) == truth.get(first, (np.inf, np.inf))
            assert bool((choices[first] >= 0).all()) is (first in truth)
            if first in truth:
                assert choices[first, 0] == first
                assert cost[choices[first]].sum() == costs[first]


def test_what_completes_a_first_configuration_best_is_the_last_point_of_its_front_in_time() -> None:
    for seed in range(INSTANCES):
        generator = np.random.default_rng(seed)
        count = int(generator.integers(1, 6))
        own_seconds, own_cost = (generator.integers(1, 5, count).astype(float) for _ in range(2))
        fronts = []
        for _ in range(count):
            size = int(generator.integers(0, 5))
            times = np.sort(generator.choice(9, size, replace=False)).astype(float)
            fronts.append((times, np.sort(generator.choice(9, size, replace=False))[::-1].astype(float)))
        ends = np.cumsum([len(front[0]) for front in fronts])
        begins = ends - [len(front[0]) for front in fronts]
        rest_seconds, rest_cost = (np.concatenate([front[part] for front in fronts]) for part in (0, 1))
        added, budget, k = (
            float(generator.integers(0, 3)),
            float(generator.integers(2, 14)),
            int(generator.integers(1, 5)),
        )
        truth = []
        for number in range(count):
            own = own_seconds[number] + added
            options = [
                (own_cost[number] + cost, own + time, number, begins[number] + at)
                for at, (time, cost) in enumerate(zip(*fronts[number], strict=True))
                if own + time <= budget
            ]
            if options:
                truth.append(min(options))
        truth.sort(key=lambda one: one[:3])
        got = best_completions(own_seconds, own_cost, begins, ends, rest_seconds, rest_cost, added, budget, k)
        assert list(zip(got[2].tolist(), got[1].tolist(), got[0].tolist(), got[3].tolist(), strict=True)) == truth[:k]


def test_the_front_of_two_things_side_by_side_is_that_of_all_pairs_of_their_points() -> None:
    for seed in range(INSTANCES):
        generator = np.random.default_rng(seed)
        sizes = generator.integers(1, 6, 2)
        times = [np.sort(generator.choice(9, size, replace=False)).astype(float) for size in sizes]
        costs = [np.sort(generator.choice(9, size, replace=False))[::-1].astype(float) for size in sizes]
        got = side_by_side(times[0], costs[0], times[1], costs[1])
        pairs = sorted(
            (max(a, b), costs[0][i] + costs[1][j], i, j) for i, a in enumerate(times[0]) for j, b in enumerate(times[1])
        )
        front: list[tuple[float, float, int, int]] = []
        for pair in pairs:
            if not front or pair[1] < front[-1][1]:
                front.append(pair)
        assert [tuple(row) for row in zip(*(column.tolist() for column in got), strict=True)] == front


def test_points_that_something_faster_undercuts_are_left_out() -> None:
    cost = np.array([3.0, 3.0, 2.0, 4.0, 1.0])
    assert undominated(cost, np.arange(5)).tolist() == [0, 2, 4]
    assert undominated(cost, np.array([3, 1, 0, 4, 2])).tolist() == [3, 1, 4]
    assert undominated(cost, np.arange(0)).tolist() == []


def answer_holds(budget: float, k: int, most_cost: float, *, added: float = 0.0) -> tuple[float, float]:
    """From and until which budget the answer at one of them holds, of the two configurations below."""
    columns = (
        np.array([1.0, 2.0]),
        np.array([5.0, 1.0]),
        np.array([0, 3]),
        np.array([3, 5]),
        np.array([1.0, 2.0, 4.0, 1.0, 6.0]),
        np.array([3.0, 2.0, 1.0, 4.0, 2.0]),
    )
    numbers, _, _, points = best_completions(*columns, added, budget, k)
    return same_answer_between(*columns, added, budget, numbers, points, most_cost)


@pytest.mark.parametrize(
    ("budget", "k", "most_cost", "since", "until"),
    [  # what can end, at (seconds, cost): first (2, 8), (3, 7) or (5, 6); second (3, 5) or (8, 3)
        (1.5, 2, np.inf, -np.inf, 2.0),  # nothing is in time yet: the first of all is
        (2.5, 2, np.inf, 2.0, 3.0),  # then both of the second's points, and a better one of the first, come
        (4.0, 2, np.inf, 3.0, 5.0),  # both are answers: the first gets better
        (6.0, 2, np.inf, 5.0, 8.0),  # the first has its last point: the second gets better
        (9.0, 2, np.inf, 8.0, np.inf),
        (4.0, 1, 5.0, 3.0, 8.0),  # only the second counts, and no point of the first is as cheap
        (2.5, 1, 8.0, 2.0, 3.0),
    ],
)
def test_an_answer_holds_until_the_first_point_that_could_change_it_is_in_time(
    budget: float, k: int, most_cost: float, since: float, until: float
) -> None:
    assert answer_holds(budget, k, most_cost) == (pytest.approx(since, abs=1e-11), pytest.approx(until, abs=1e-11))
    later = answer_holds(budget + 10.0, k, most_cost, added=10.0)
    assert later == (pytest.approx(since + 10.0, abs=1e-11), pytest.approx(until + 10.0, abs=1e-11))


def test_a_configuration_that_costs_as_much_as_the_dearest_answer_may_change_it_with_any_point() -> None:
    """At equal cost the faster one wins, so a first configuration that costs just as much counts, a dearer one not."""
    columns = (np.array([1.0, 1.0]), np.array([0.0, 0.0]), np.array([0, 1]), np.array([1, 3]))
    fronts = (np.array([4.0, 2.0, 6.0]), np.array([3.0, 5.0, 3.0]))
    numbers, points = np.array([0]), np.array([0])
    assert same_answer_between(*columns, *fronts, 0.0, 5.5, numbers, points, 3.0) == pytest.approx((5.0, 7.0))
    assert same_answer_between(*columns, *fronts, 0.0, 5.5, numbers, points, 2.9) == pytest.approx((5.0, np.inf))
    assert same_answer_between(*columns, *fronts, 0.0, 7.5, numbers, points, 3.0) == pytest.approx((7.0, np.inf))
