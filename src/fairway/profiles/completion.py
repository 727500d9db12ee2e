"""Fills the unknown entries of a matrix of fractions from the known ones, as in Gavel's throughput estimator.

Probabilistic matrix factorisation: the entries around their column means are taken as U Vᵀ of low rank, where U and V
minimise Σ over known (i, j) of (A[i, j] - mean[j] - U[i]·V[j])² + regularisation · (‖U‖² + ‖V‖²), by alternating least
squares. The ridge pulls a row with few known entries towards the column means, and one with none is exactly these. The
means are those of the filled matrix, taken anew in every sweep: those of the known entries alone would mix other rows
in each column, which adds a rank that the matrix does not have.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fairway.errors import InputError

Matrix = NDArray[np.float64]

_SWEEPS = 20
_CONVERGED = 1e-9


def complete(matrix: Matrix, *, rank: int = 10, regularisation: float = 0.1) -> Matrix:
    """The matrix with every NaN replaced by a fraction within [0, 1]; the known entries stay as they are.

    The result depends on nothing but the arguments: the factors start from the singular vectors of the matrix whose
    unknown entries are column means.
    """
    if rank < 1:
        raise InputError(f"rank: {rank} given, expected at least 1")
    if not regularisation > 0:
        raise InputError(f"regularisation: {regularisation} given, expected more than 0")
    known = ~np.isnan(matrix)
    if known.all():
        return matrix.copy()
    if not known.any():
        raise InputError("no entry of the matrix is known, expected at least one to complete it from")

    means = _column_means(matrix, known)
    filled: Matrix = np.where(known, matrix, means)
    left, scales, right = np.linalg.svd(filled - means, full_matrices=False)
    kept = min(rank, len(scales))
    U, V = left[:, :kept] * np.sqrt(scales[:kept]), right[:kept].T * np.sqrt(scales[:kept])
    for _ in range(_SWEEPS):
        rest = np.where(known, matrix - means, 0.0)
        U = _ridge(rest, known, V, regularisation)
        V = _ridge(rest.T, known.T, U, regularisation)
        previous, filled = filled, np.where(known, matrix, np.clip(means + U @ V.T, 0.0, 1.0))
        if np.abs(filled - previous).max() < _CONVERGED:
            break
        means = filled.mean(axis=0)
    return filled


def _column_means(matrix: Matrix, known: NDArray[np.bool_]) -> Matrix:
    """The mean of the known entries of each column; of all known entries for a column without any."""
    counts = known.sum(axis=0)
    sums = np.where(known, matrix, 0.0).sum(axis=0)
    means: Matrix = np.where(counts > 0, sums / np.maximum(counts, 1), sums.sum() / counts.sum())
    return means


def _ridge(targets: Matrix, known: NDArray[np.bool_], factors: Matrix, regularisation: float) -> Matrix:
    """For each row of the targets, the x that minimises Σ over known j of (target[j] - x·factors[j])² + reg · ‖x‖²."""
    rank = factors.shape[1]
    outer = (factors[:, :, None] * factors[:, None, :]).reshape(-1, rank * rank)
    grams = (known.astype(np.float64) @ outer).reshape(-1, rank, rank) + regularisation * np.eye(rank)
    return np.asarray(np.linalg.solve(grams, (targets @ factors)[:, :, None])[:, :, 0], dtype=np.float64)
