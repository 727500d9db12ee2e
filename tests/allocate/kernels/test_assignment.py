"""The choice of jobs with the highest value, against every choice there is."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.allocate.arrays import FloatArray, IntArray
from fairway.allocate.kernels.assignment import choose_jobs

NO_PAIRS = np.zeros((0, 0, 2, 2))


def chosen(value: list[float], rates: object, scale: list[int], workers: list[int]) -> tuple[list[int], float]:
    none = np.full(len(value), -1)
    fast, sizes, room = np.array(rates, dtype=float), np.array(scale), np.array(workers)
    to, _, worth = choose_jobs(np.array(value), fast, sizes, none * 0, NO_PAIRS, room, none, none, 1.0)
    return to.tolist(), worth


def test_a_job_gives_way_on_the_fast_type_to_one_that_gains_more_there() -> None:
    assert chosen([1.0, 1.0], [[3.0, 2.0], [3.0, 1.0]], [1, 1], [1, 1]) == ([1, 0], 5.0)


def test_a_gang_takes_the_place_of_several_jobs_that_are_worth_less_and_the_other_way_round() -> None:
    rates = [[1.0, 0.0], [1.0, 0.0], [3.0, 0.0]]
    assert chosen([1.0, 1.0, 1.0], rates, [1, 1, 2], [2, 0]) == ([-1, -1, 0], 3.0)
    assert chosen([2.0, 2.0, 1.0], rates, [1, 1, 2], [2, 0]) == ([0, 0, -1], 4.0)


def test_what_runs_is_not_changed_for_less_than_its_restart_costs() -> None:
    rates, scale, none = np.array([[1.0, 1.0], [1.04, 1.0]]), np.ones(2, np.int64), np.full(2, -1)
    on, workers = np.array([0, -1]), np.array([1, 0])
    for stay, runs in ((1.05, [0, -1]), (1.03, [-1, 0])):
        to, _, _ = choose_jobs(np.ones(2), rates, scale, none * 0, NO_PAIRS, workers, on, none, stay)
        assert to.tolist() == runs


def _worth(to: tuple[int, ...], mate: IntArray, value: FloatArray, rates: FloatArray, table: FloatArray) -> float:
    total = 0.0
    for m, w in enumerate(to):
        if w >= 0:
            total += value[m] * (rates[m, w] if mate[m] < 0 else table[m, mate[m], w, 0])
    return total


def _instance(seed: int) -> tuple[FloatArray, FloatArray, IntArray, FloatArray, IntArray, bool]:
    draw = np.random.default_rng(seed)
    jobs, sharing = int(draw.integers(1, 6)), bool(draw.integers(2))
    value, rates = draw.uniform(0.5, 2, jobs), draw.choice([0.0, 1.0, 2.0, 5.0], (jobs, 2))
    scale, workers = draw.choice([1, 1, 2], jobs), draw.integers(0, 4, 2)
    kept = draw.uniform(0.3, 0.9, (jobs, jobs, 2))
    table = np.zeros((jobs, jobs, 2, 2))
    for a, b, w in product(range(jobs), range(jobs), range(2)):
        if sharing and a < b and scale[a] == scale[b] and rates[a, w] * rates[b, w] > 0:
            table[a, b, w] = kept[a, b, w] * rates[a, w], kept[b, a, w] * rates[b, w]
            table[b, a, w] = table[a, b, w, ::-1]
    return value, rates, scale, table, workers, sharing


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_the_choice_fits_is_worth_what_it_says_and_leaves_no_worker_idle_that_a_waiting_job_could_use(
    seed: int,
) -> None:
    value, rates, scale, table, workers, sharing = _instance(seed)
    none = np.full(len(value), -1)
    to, mate, worth = choose_jobs(
        value, rates, scale, np.arange(len(value)), table if sharing else NO_PAIRS, workers, none, none, 1.0
    )
    places = tuple(to.tolist())
    assert _fits(places, mate, scale, workers, rates, table)
    assert worth == pytest.approx(_worth(places, mate, value, rates, table))
    for m, w in product(np.flatnonzero(to < 0).tolist(), range(2)):
        assert not _fits((*places[:m], w, *places[m + 1 :]), mate, scale, workers, rates, table)


def test_choices_of_jobs_that_run_alone_are_close_to_the_best_of_all() -> None:
    parts = []
    for seed in range(150):
        value, rates, scale, table, workers, _ = _instance(seed)
        none = np.full(len(value), -1)
        _, _, worth = choose_jobs(value, rates, scale, none * 0, NO_PAIRS, workers, none, none, 1.0)
        best = max(
            _worth(places, none, value, rates, table)
            for places in product((-1, 0, 1), repeat=len(value))
            if _fits(places, none, scale, workers, rates, table)
        )
        parts.append(worth / best if best else 1.0)
    assert np.mean(parts) >= 0.99


def _fits(
    to: tuple[int, ...], mate: IntArray, scale: IntArray, workers: IntArray, rates: FloatArray, table: FloatArray
) -> bool:
    used = np.zeros(2)
    for m, w in enumerate(to):
        if w < 0:
            continue
        if mate[m] < 0:
            if rates[m, w] <= 0:
                return False
            used[w] += scale[m]
        else:
            if to[mate[m]] != w or mate[mate[m]] != m or table[m, mate[m], w].min() <= 0:
                return False
            used[w] += scale[m] / 2
    return bool((used <= workers).all())
