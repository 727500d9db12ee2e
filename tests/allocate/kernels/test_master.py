"""The master problem against a general solver."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from fairway.allocate.arrays import FloatArray
from fairway.allocate.kernels.master import Master, begin, mixture, offer


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


def mixed(usages: FloatArray, levels: FloatArray) -> Master:
    """The problem with all of these answers, offered one after the other."""
    master = begin(usages[0], float(levels[0]), len(levels))
    for usage, level in zip(usages[1:], levels[1:], strict=True):
        offer(master, usage, float(level))
    return master


@given(st.integers(0, 10_000))
def test_after_each_answer_the_mixture_is_the_best_and_its_prices_prove_it(seed: int) -> None:
    usages, levels = answers(seed)
    master = mixed(usages, levels)
    value, prices = float(master.best[-1]), master.best[:-1]
    assert value == pytest.approx(best_mixture(usages, levels), rel=1e-8)
    assert (prices >= 0).all()
    # Weak duality: no answer is worth more than its usage costs at these prices, plus what is left of the value.
    rest = value - prices.sum()
    assert (levels - usages @ prices <= rest + 1e-8 * levels.max()).all()


@given(st.integers(0, 10_000))
def test_the_mixture_fits_and_reaches_the_value(seed: int) -> None:
    usages, levels = answers(seed)
    master = mixed(usages, levels)
    value = float(master.best[-1])
    parts = np.zeros(len(levels))
    answers_in, their_parts = mixture(master)
    parts[answers_in] = their_parts
    assert parts.sum() == pytest.approx(1.0)
    assert (parts >= 0).all()
    assert (parts @ usages <= 1 + 1e-8).all()
    assert parts @ levels == pytest.approx(value, rel=1e-8)


def test_an_only_answer_is_the_mixture() -> None:
    master = begin(np.array([0.5, 0.2]), 3.0, 1)
    assert master.best[-1] == pytest.approx(3.0)
    assert [part.tolist() for part in mixture(master)] == [[0], [1.0]]


def test_an_answer_that_does_not_fit_is_mixed_in_as_far_as_it_does() -> None:
    master = begin(np.array([0.5]), 1.0, 1)
    offer(master, np.array([1.5]), 3.0)
    assert master.best[-1] == pytest.approx(2.0)
    assert master.best[:-1] == pytest.approx([2.0])  # a whole capacity more would lift the level by 2
    numbers, parts = mixture(master)
    assert numbers.tolist() == [0, 1]
    assert parts == pytest.approx([0.5, 0.5])
