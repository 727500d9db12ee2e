"""What waiting costs with some homes, by the formula of Pollaczek and Khinchine; and rows that travel with a delay."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.place.fleet import Fleet, Worker
from fairway.place.graph import TaskGraph
from fairway.place.kinds_of_worker import _cost, _demands, _improve
from fairway.place.lines import Lines
from fairway.workflows import Model, Stage, Workflow


def waits(busy: float, rest: float, counts: float) -> float:
    """counts * R / (1 - u); from u = 0.98 on, a straight line that rises to eleven times that at u = 1."""
    at = counts * rest / (1.0 - min(busy, 0.98))
    return at if busy < 0.98 else at * (1.0 + 10.0 * (busy - 0.98) / 0.02)


def table(values: list[list[float]]) -> np.ndarray:
    return np.array(values, dtype=float)


@given(st.lists(st.tuples(st.floats(0.01, 0.5), st.floats(0.0, 2.0), st.floats(0.1, 3.0)), min_size=1, max_size=5),
       st.lists(st.integers(0, 1), min_size=5, max_size=5))  # fmt: skip
def test_models_with_one_home_each_wait_by_the_formula(rows: list[tuple[float, float, float]], at: list[int]) -> None:
    models = len(rows)
    homes = np.zeros((models, 2), np.bool_)
    homes[np.arange(models), at[:models]] = True
    work, squares = (table([[row[field]] * 2 for row in rows] + [[0.0, 0.0]]) for field in (0, 1))
    worth = np.array([row[2] for row in rows] + [0.0])
    expected = sum(
        waits(*(sum(row[field] for row, where in zip(rows, at, strict=False) if where == worker) for field in range(3)))
        for worker in range(2)
    )
    assert _cost(homes, work, squares, worth) == pytest.approx(expected, rel=1e-9)


@given(
    st.floats(0.01, 0.9), st.floats(0.0, 2.0), st.floats(0.1, 3.0), st.floats(0.01, 0.9), st.floats(0.01, 2.0),
    st.floats(0.1, 3.0), st.booleans(),
)  # fmt: skip
def test_what_has_two_homes_is_given_to_them_in_the_best_of_nine_ways(
    fixed: float, fixed_rest: float, fixed_worth: float, work: float, rest: float, worth: float, none: bool
) -> None:
    """A model, or work that needs none, beside one that is at home on worker 0 only: the cost is convex."""
    shared = [[work, work], [rest, rest]]
    rows = [[fixed, fixed], [fixed_rest, fixed_rest]]
    homes = np.array([[True, False]] if none else [[True, False], [True, True]])
    nothing = [] if none else [[0.0, 0.0]]
    found = _cost(
        homes,
        table([rows[0], shared[0], *nothing]),
        table([rows[1], shared[1], *nothing]),
        np.array([fixed_worth, worth, *([] if none else [0.0])]),
    )
    ways = [
        waits(fixed + k / 8 * work, fixed_rest + k / 8 * rest, fixed_worth + k / 8 * worth)
        + waits((1 - k / 8) * work, (1 - k / 8) * rest, (1 - k / 8) * worth)
        for k in range(9)
    ]
    # Part by part to where it adds least: never better than the best way, and never worse than all on one worker.
    assert min(ways) * (1 - 1e-9) <= found <= max(ways[0], ways[8]) * (1 + 1e-9)


def test_two_workers_that_are_alike_get_half_each() -> None:
    found = _cost(
        np.array([[True, True]]), table([[0.5, 0.5], [0, 0]]), table([[1.0, 1.0], [0, 0]]), np.array([2.0, 0])
    )
    assert found == pytest.approx(2 * waits(0.25, 0.5, 1.0))


def test_a_model_without_a_home_costs_infinitely_much_unless_it_is_worth_nothing() -> None:
    homes = np.array([[False, False], [True, False]])
    work, squares = table([[0, 0], [0.2, 0.2], [0, 0]]), table([[0, 0], [1.0, 1.0], [0, 0]])
    assert _cost(homes, work, squares, np.array([1.0, 1.0, 0.0])) == math.inf
    assert _cost(homes, work, squares, np.array([0.0, 1.0, 0.0])) == pytest.approx(waits(0.2, 1.0, 1.0))
    work[1, 0] = squares[1, 0] = math.inf
    assert _cost(homes, work, squares, np.array([0.0, 1.0, 0.0])) == math.inf, "it cannot run where it is at home"


def test_work_without_a_model_goes_anywhere_but_where_it_cannot_run() -> None:
    homes = np.zeros((0, 2), np.bool_)
    work, squares = table([[math.inf, 0.5]]), table([[math.inf, 1.0]])
    assert _cost(homes, work, squares, np.array([2.0])) == pytest.approx(waits(0.5, 1.0, 2.0))


@given(st.integers(0, 10**6))
def test_no_change_of_one_worker_would_make_the_homes_that_are_found_better(seed: int) -> None:
    rng = np.random.default_rng(seed)
    models, workers = 4, 3
    work = np.append(rng.uniform(0.02, 0.3, (models, workers)), np.zeros((1, workers)), axis=0)
    work[:models][rng.random((models, workers)) < 0.15] = math.inf
    squares, worth = work * rng.uniform(0.1, 4.0, (models + 1, 1)), np.append(rng.uniform(0.1, 3.0, models), 0.0)
    sizes, memory = rng.integers(1, 4, models).astype(float), rng.integers(3, 7, workers).astype(float)
    homes = rng.random((models, workers)) < 0.5
    before = _cost(homes, work, squares, worth)
    found = homes.copy()
    _improve(found, work, squares, worth, sizes, memory)
    least = _cost(found, work, squares, worth)
    assert least <= before
    changed = (found != homes).any(axis=0)
    assert ((found.T @ sizes <= memory) | ~changed).all(), "what is changed fits"
    for worker in range(workers):
        for comes in range(models):
            if found[comes, worker] or math.isinf(work[comes, worker]):
                continue
            there = np.flatnonzero(found[:, worker]).tolist()
            for gone in [(), *((one,) for one in there), *((one, two) for one in there for two in there)]:
                other = found.copy()
                other[comes, worker] = True
                other[list(gone), worker] = False
                if other[:, worker] @ sizes <= memory[worker]:
                    cost = _cost(other, work, squares, worth)
                    assert cost >= least * (1 - 2e-9) or (math.isinf(least) and math.isinf(cost))


def test_demands_are_scaled_so_that_workers_work_four_fifths_of_their_time() -> None:
    """Two stages of 1 s and 3 s, the second with two models and the third, of 4 s, with none: a request takes 8 s."""
    models = [Model("m0", 1), Model("m1", 1), Model("m2", 1)]
    fleet = Fleet.of([Worker("w0", 5), Worker("w1", 5)], models)
    stages = (Stage.of("a", 1.0, "m0"), Stage.of("b", 3.0, models=["m1", "m2"]), Stage.of("c", 4.0))
    workflow = Workflow(stages, (("a", "b"), ("b", "c")), {model.name: model for model in models})
    graphs = [TaskGraph.of(workflow, fleet)]
    work, squares, worth = _demands(graphs, fleet, 2)
    scale = 0.8 * 2 / 8.0
    np.testing.assert_allclose(work, scale * table([[1, 1], [1.5, 1.5], [1.5, 1.5], [4, 4]]))
    np.testing.assert_allclose(squares, scale * table([[0.5] * 2, [2.25] * 2, [2.25] * 2, [8.0] * 2]))
    np.testing.assert_allclose(worth, scale * np.array([1 / 8, 1 / 16, 1 / 16, 1 / 8]))


# Rows


def row(value: float) -> np.ndarray:
    return np.full((3, 3), value)


def test_without_a_delay_a_row_is_seen_at_once() -> None:
    lines = Lines(2, 2)
    lines.write(1, row(5.0), 0.0)
    assert lines.see(0.0)[:, :, 1].tolist() == row(5.0).tolist()
    assert not lines.see(0.0)[:, :, 0].any()
    assert lines.own(1).tolist() == row(5.0).tolist()


def test_rows_are_seen_in_the_order_in_which_they_were_written_each_after_its_delay() -> None:
    lines = Lines(2, 2, delay=2.0)
    lines.write(0, row(1.0), 1.0)
    lines.write(1, row(2.0), 1.5)
    lines.write(0, row(3.0), 4.0)
    assert lines.own(0).tolist() == row(3.0).tolist(), "a worker knows its own at once"
    seen = [(now, lines.see(now)[0, 0].tolist()) for now in (2.5, 3.0, 3.5, 5.5, 6.0)]
    assert seen == [(2.5, [0, 0]), (3.0, [1, 0]), (3.5, [1, 2]), (5.5, [1, 2]), (6.0, [3, 2])]


def test_of_a_worker_that_comes_or_goes_nothing_is_under_way() -> None:
    lines = Lines(2, 2, delay=2.0)
    for worker in (0, 1):
        lines.write(worker, row(1.0), 1.0)
    lines.see(3.0)
    for worker in (0, 1):
        lines.write(worker, row(2.0), 4.0)
    lines.clear(0)
    assert not lines.own(0).any()
    assert lines.see(4.0)[0, 0].tolist() == [0, 1]
    assert lines.see(6.0)[0, 0].tolist() == [0, 2]


def test_a_row_that_came_as_a_message_is_taken_field_by_field_if_it_has_all_of_them() -> None:
    lines = Lines(2, 2)
    lines.receive(1, tuple(range(9)))
    assert lines.see(0.0)[:, :, 1].tolist() == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    lines.receive(1, tuple(range(8)))
    lines.receive(1, tuple(range(10, 20)))
    assert lines.see(0.0)[0, 0, 1] == 0
    assert Lines.size(2, 2) == lines.see(0.0).size == 18
