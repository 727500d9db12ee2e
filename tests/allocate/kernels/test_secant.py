"""Guesses at the prices that clear a market: exact where uses are linear, and none where there is nothing to go by."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.allocate.arrays import FloatArray
from fairway.allocate.kernels.secant import Secant, begin_guessing, guess, take_down


def guessed(secant: Secant, types: int) -> FloatArray | None:
    """The guess, None if there is no good one."""
    prices = np.zeros(types)
    return prices if guess(secant, prices) else None


@given(st.integers(0, 10_000), st.integers(2, 5))
def test_where_uses_are_linear_in_prices_one_guess_is_enough(seed: int, types: int) -> None:
    rng = np.random.default_rng(seed)
    clearing = rng.uniform(1.0, 2.0, types)
    slopes = -np.eye(types) + 0.1 * rng.uniform(0.0, 1.0, (types, types))
    secant = begin_guessing(types, relative=False)
    for _ in range(types + 1):
        assert guessed(secant, types) is None
        budgets = clearing * rng.uniform(0.8, 1.2, types)
        take_down(secant, budgets, 1.0 + slopes @ (budgets - clearing))
    assert guessed(secant, types) == pytest.approx(clearing, rel=1e-6)


def test_answers_that_are_all_the_same_allow_no_guess() -> None:
    secant = begin_guessing(2, relative=True)
    for _ in range(2):
        take_down(secant, np.array([0.5, 0.5]), np.array([1.5, 0.5]))
    assert guessed(secant, 2) is None


def test_guesses_end_after_three_that_come_no_nearer() -> None:
    secant = begin_guessing(2, relative=True)
    for part in (0.4, 0.6):
        take_down(secant, np.array([part, 1.0 - part]), np.array([2.0 - part, part]))
    for failures in range(3):
        assert guessed(secant, 2) is not None, failures
        take_down(secant, np.array([0.3 + 0.1 * failures, 0.7 - 0.1 * failures]), np.array([3.0, 0.1]))
    assert guessed(secant, 2) is None


def test_with_one_type_there_is_nothing_to_guess() -> None:
    secant = begin_guessing(1, relative=True)
    take_down(secant, np.array([1.0]), np.array([1.2]))
    assert guessed(secant, 1) is None
