"""Systems of a few linear equations: Gaussian elimination with the largest pivot of each column.

The systems of a decision have a row for each accelerator type and one more. That is so little that calling a library
of linear algebra takes longer than the arithmetic, and what such a library answers differs in its last digits between
processors.
"""

from __future__ import annotations

import numpy as np

from fairway.allocate.arrays import FloatArray
from fairway.compiled import FloatTable, compiled_within


@compiled_within(releases_gil=True)
def eliminate(left: FloatTable, answer: FloatTable) -> bool:
    """Replace `answer` by the X with `left` X = `answer`, whose matrix is lost; False if that is singular."""
    size, width = answer.shape
    for column in range(size):
        pivot = column
        for row in range(column + 1, size):
            if abs(left[row, column]) > abs(left[pivot, column]):
                pivot = row
        if left[pivot, column] == 0.0:
            return False
        if pivot != column:
            for k in range(size):
                left[column, k], left[pivot, k] = left[pivot, k], left[column, k]
            for k in range(width):
                answer[column, k], answer[pivot, k] = answer[pivot, k], answer[column, k]
        for row in range(column + 1, size):
            factor = left[row, column] / left[column, column]
            if factor != 0.0:
                for k in range(column + 1, size):
                    left[row, k] -= factor * left[column, k]
                for k in range(width):
                    answer[row, k] -= factor * answer[column, k]
    for row in range(size - 1, -1, -1):
        for k in range(width):
            value = answer[row, k]
            for column in range(row + 1, size):
                value -= left[row, column] * answer[column, k]
            answer[row, k] = value / left[row, row]
    return True


@compiled_within(releases_gil=True)
def times(matrix: FloatTable, vector: FloatArray) -> FloatArray:
    """Their product."""
    product = np.zeros(len(matrix))
    for row in range(len(matrix)):
        for column in range(len(vector)):
            product[row] += matrix[row, column] * vector[column]
    return product
