"""Matrix completion: low-rank matrices come back, known entries stay, and little knowledge means the column means."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fairway.errors import InputError
from fairway.profiles import complete


def low_rank(rows: int, columns: int, rank: int, seed: int) -> NDArray[np.float64]:
    """Fractions within [0, 1] of exactly this rank."""
    generator = np.random.default_rng(seed)
    matrix: NDArray[np.float64] = generator.random((rows, rank)) @ generator.random((rank, columns)) / rank
    return matrix


@pytest.mark.parametrize("seed", range(5))
def test_a_low_rank_matrix_is_recovered_exactly(seed: int) -> None:
    truth = low_rank(20, 30, 3, seed)
    given_entries = truth.copy()
    given_entries[-1, np.random.default_rng(seed + 100).permutation(30)[:20]] = np.nan
    given_entries[0, 4] = given_entries[7, 9] = np.nan
    assert np.allclose(complete(given_entries, rank=3, regularisation=1e-9), truth, rtol=0, atol=1e-5)


@given(st.integers(0, 1000), st.integers(1, 12), st.floats(1e-3, 10), st.floats(0, 0.95))
def test_known_entries_stay_and_the_others_are_fractions(
    seed: int, rank: int, regularisation: float, unknown: float
) -> None:
    generator = np.random.default_rng(seed)
    matrix = generator.random((7, 9))
    matrix[generator.random(matrix.shape) < unknown] = np.nan
    matrix[3, 3] = 0.5
    before = matrix.copy()
    filled = complete(matrix, rank=rank, regularisation=regularisation)
    known = ~np.isnan(matrix)
    assert np.array_equal(filled[known], matrix[known])
    assert ((filled >= 0) & (filled <= 1)).all()
    assert np.array_equal(matrix, before, equal_nan=True)
    assert np.array_equal(filled, complete(matrix, rank=rank, regularisation=regularisation))


def test_a_row_without_known_entries_is_the_column_means() -> None:
    matrix = low_rank(6, 8, 2, 0)
    filled = complete(np.vstack([matrix, np.full(8, np.nan)]))
    assert np.allclose(filled[-1], matrix.mean(axis=0), atol=1e-12)


def test_a_column_without_known_entries_is_the_mean_of_all() -> None:
    matrix = low_rank(6, 8, 2, 0)
    filled = complete(np.column_stack([matrix, np.full(6, np.nan)]))
    assert np.allclose(filled[:, -1], matrix.mean(axis=0).mean(), atol=1e-12)


@pytest.mark.parametrize(
    ("value", "rank", "regularisation", "message"),
    [
        (0.5, 0, 0.1, "rank: 0 given, expected at least 1"),
        (0.5, 1, 0.0, "regularisation: 0.0 given, expected more than 0"),
        (0.5, 1, np.nan, "regularisation: nan given, expected more than 0"),
        (np.nan, 1, 0.1, "no entry of the matrix is known"),
    ],
)
def test_what_cannot_be_completed_is_refused(value: float, rank: int, regularisation: float, message: str) -> None:
    with pytest.raises(InputError, match=message):
        complete(np.array([[value, np.nan]]), rank=rank, regularisation=regularisation)
