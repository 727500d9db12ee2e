"""The cheapest splits against a linear program per job."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from fairway.allocate.arrays import FloatArray
from fairway.allocate.kernels.cheapest import Splits
from tests.allocate.problems import NASTY, random_problem


class Split:
    """One question to `Splits`, with its answers by name."""

    def __init__(self, rates: FloatArray, load: FloatArray, price: FloatArray, demand: FloatArray) -> None:
        splits = Splits(rates, load)
        splits.price(price)
        self.cost, self.usage, self.slope = splits.cheapest(demand, demand)[0], splits.usage, splits.slope
        self.shares = np.zeros_like(rates)
        splits.add_to(self.shares, 1.0)


def least_cost(rates: FloatArray, price: FloatArray, demand: float) -> float:
    types = len(price)
    found = linprog(
        price, A_ub=[np.ones(types), -rates / rates.max()], b_ub=[1.0, -demand / rates.max()], bounds=(0, None)
    )
    assert found.status == 0
    return float(found.fun)


@given(st.integers(0, 10_000), st.sampled_from([kind for kind in NASTY if kind != "wide rates"]), st.booleans())
def test_no_split_is_cheaper_than_the_one_found(seed: int, kind: str, free_types: bool) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(seed, jobs=5, types=int(rng.integers(1, 6)), rates=kind)
    rates = problem.throughputs[problem.throughputs.any(axis=1)]
    price = rng.uniform(0.0, 2.0, rates.shape[1]) * (rng.random(rates.shape[1]) < (0.6 if free_types else 1.1))
    load = rng.uniform(0.5, 4.0, len(rates))
    demand = rng.uniform(0.0, 1.0, len(rates)) * rates.max(axis=1)
    split = Split(rates, load, price, demand)
    expected = [least_cost(*job) for job in zip(rates, [price] * len(rates), demand, strict=True)]
    assert split.cost == pytest.approx(load @ expected, rel=1e-7, abs=1e-9)


@given(st.integers(0, 10_000), st.sampled_from(NASTY))
def test_the_split_gives_the_demanded_rate_and_costs_what_it_says(seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(seed, jobs=8, types=int(rng.integers(1, 9)), rates=kind)
    rates = problem.throughputs[problem.throughputs.any(axis=1)]
    price, load = rng.uniform(0.0, 2.0, rates.shape[1]), rng.uniform(0.5, 4.0, len(rates))
    demand = rng.uniform(0.0, 1.0, len(rates)) * rates.max(axis=1)
    split = Split(rates, load, price, demand)
    assert (split.shares >= 0).all()
    assert (split.shares.sum(axis=1) <= 1 + 1e-12).all()
    assert (split.shares * rates).sum(axis=1) == pytest.approx(demand, rel=1e-9, abs=1e-12)
    assert split.usage == pytest.approx(load @ split.shares, abs=1e-12)
    assert split.cost == pytest.approx(float(load @ split.shares @ price), rel=1e-9, abs=1e-12)


def test_the_slope_is_what_a_little_more_rate_costs() -> None:
    rng = np.random.default_rng(0)
    rates, price, load = rng.uniform(0.5, 5.0, (20, 4)), rng.uniform(0.1, 2.0, 4), rng.uniform(0.5, 4.0, 20)
    demand = rng.uniform(0.1, 0.9, 20) * rates.max(axis=1)
    split = Split(rates, load, price, demand)
    for job in range(20):
        more = demand.copy()
        more[job] += 1e-6
        assert Split(rates, load, price, more).cost - split.cost == pytest.approx(split.slope[job] * 1e-6, rel=1e-4)


def test_a_job_that_demands_nothing_idles_for_nothing() -> None:
    split = Split(np.array([[2.0, 1.0]]), np.ones(1), np.array([1.0, 1.0]), np.zeros(1))
    assert split.cost == 0.0
    assert split.usage.tolist() == [0.0, 0.0]


def test_a_job_that_demands_its_best_rate_spends_all_its_time_there() -> None:
    split = Split(np.array([[2.0, 1.0, 0.0]]), np.ones(1), np.array([5.0, 1.0, 0.0]), np.array([2.0]))
    assert split.shares.tolist() == [[1.0, 0.0, 0.0]]
    assert split.cost == 5.0


def test_of_two_types_with_equal_rates_the_cheaper_one_is_used() -> None:
    for price in ([1.0, 3.0], [3.0, 1.0]):
        split = Split(np.array([[2.0, 2.0]]), np.ones(1), np.array(price), np.array([1.0]))
        assert split.cost == pytest.approx(0.5)
