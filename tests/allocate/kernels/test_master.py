"""The master problem against a general solver."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from fairway.allocate.arrays import FloatArray
from fairway.allocate.kernels.master import Master


def best_mixture(usages: FloatArray, levels: FloatArray) -> float:
    fits, all_of_it = np.ones(usages.shape[1]), np.ones((1, len(levels)))
    found = linprog(-levels, A_ub=usages.T, b_ub=fits, A_eq=all_of_it, b_eq=[1.0], bounds=(0, None))
    assert found.status == 0
    return -float(found.fun)


def answers(seed: int) -> tuple[FloatArray, FloatArray]:
    """Random answers; the first fits, the better ones need more; some stand there twice."""
    rng = np.random.default_rng(seed)
    types, count = int(rng.integers(1, 9)), int(rng.integers(2, 80))
    levels = rng.choice([1.0, 1e-6, 1e6]) * rng.uniform(0.1, 1.0, count)
    usages = rng.exponential(1.0, (count, types)) * levels[:, None] / levels.max()
    usages[rng.random((count, types)) < 0.2] = 0.0
    usages[0], levels[0] = rng.uniform(0.1, 0.6, types), levels.min()
    again = rng.integers(0, count, count)
    keep = rng.random(count) < 0.8
    keep[0] = True
    return np.where(keep[:, None], usages, usages[again]), np.where(keep, levels, levels[again])


@given(st.integers(0, 10_000))
def test_after_each_answer_the_mixture_is_the_best_and_its_prices_prove_it(seed: int) -> None:
    usages, levels = answers(seed)
    master = Master(usages[0], float(levels[0]))
    for count in range(1, len(levels)):
        master.add(usages[count], float(levels[count]))
        value, prices = master.solve()
    assert value == pytest.approx(best_mixture(usages, levels), rel=1e-8)
    assert (prices >= 0).all()
    # Weak duality: no answer is worth more than its usage costs at these prices, plus what is left of the value.
    rest = value - prices.sum()
    assert (levels - usages @ prices <= rest + 1e-8 * levels.max()).all()


@given(st.integers(0, 10_000))
def test_the_mixture_fits_and_reaches_the_value(seed: int) -> None:
    usages, levels = answers(seed)
    master = Master(usages[0], float(levels[0]))
    for usage, level in zip(usages[1:], levels[1:], strict=True):
        master.add(usage, float(level))
    value, _ = master.solve()
    mixture = master.mixture()
    parts = np.zeros(len(levels))
    for answer, part in mixture:
        parts[answer] = part
    assert parts.sum() == pytest.approx(1.0)
    assert (parts >= 0).all()
    assert (parts @ usages <= 1 + 1e-8).all()
    assert parts @ levels == pytest.approx(value, rel=1e-8)


def test_an_only_answer_is_the_mixture() -> None:
    master = Master(np.array([0.5, 0.2]), 3.0)
    assert master.solve()[0] == pytest.approx(3.0)
    assert master.mixture() == [(0, 1.0)]


def test_an_answer_that_does_not_fit_is_mixed_in_as_far_as_it_does() -> None:
    master = Master(np.array([0.5]), 1.0)
    master.add(np.array([1.5]), 3.0)
    value, prices = master.solve()
    assert value == pytest.approx(2.0)
    assert prices == pytest.approx([2.0])  # a whole capacity more would lift the level by 2
    assert master.mixture() == [(0, pytest.approx(0.5)), (1, pytest.approx(0.5))]
