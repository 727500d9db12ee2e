"""Guesses at the prices that clear a market: exact where uses are linear, and none where there is nothing to go by."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.allocate.kernels.secant import Secant


@given(st.integers(0, 10_000), st.integers(2, 5))
def test_where_uses_are_linear_in_prices_one_guess_is_enough(seed: int, types: int) -> None:
    rng = np.random.default_rng(seed)
    clearing = rng.uniform(1.0, 2.0, types)
    slopes = -np.eye(types) + 0.1 * rng.uniform(0.0, 1.0, (types, types))
    secant = Secant(types, relative=False)
    for _ in range(types + 1):
        assert secant.guess() is None
        budgets = clearing * rng.uniform(0.8, 1.2, types)
        secant.add(budgets, 1.0 + slopes @ (budgets - clearing))
    assert secant.guess() == pytest.approx(clearing, rel=1e-6)


def test_answers_that_are_all_the_same_allow_no_guess() -> None:
    secant = Secant(2, relative=True)
    for _ in range(2):
        secant.add(np.array([0.5, 0.5]), np.array([1.5, 0.5]))
    assert secant.guess() is None


def test_guesses_end_after_three_that_come_no_nearer() -> None:
    secant = Secant(2, relative=True)
    for part in (0.4, 0.6):
        secant.add(np.array([part, 1.0 - part]), np.array([2.0 - part, part]))
    for failures in range(3):
        assert secant.guess() is not None, failures
        secant.add(np.array([0.3 + 0.1 * failures, 0.7 - 0.1 * failures]), np.array([3.0, 0.1]))
    assert secant.guess() is None


def test_with_one_type_there_is_nothing_to_guess() -> None:
    secant = Secant(1, relative=True)
    secant.add(np.array([1.0]), np.array([1.2]))
    assert secant.guess() is None
