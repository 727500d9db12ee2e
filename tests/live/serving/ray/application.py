"""A small application for tests on several nodes: numbers, and arrays that are too large for a message."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import fairway


@fairway.stage(seconds=0.002)
class Add:
    def __call__(self, numbers: list[int]) -> list[int]:
        time.sleep(0.002 * len(numbers))
        return [number + 1 for number in numbers]


@fairway.stage(seconds=0.02)
class Double:
    def __call__(self, numbers: list[int]) -> list[int]:
        time.sleep(0.02 * len(numbers))
        return [2 * number for number in numbers]


@fairway.workflow
def sums(x: int) -> Any:
    return Add()(Double()(Add()(x)))


@fairway.stage(seconds=0.01)
class Spread:
    """A large array of one number."""

    def __call__(self, numbers: list[int]) -> list[Any]:
        time.sleep(0.01 * len(numbers))
        return [np.full(500_000, number) for number in numbers]


@fairway.stage(seconds=0.01)
class Left:
    def __call__(self, arrays: list[Any]) -> list[Any]:
        time.sleep(0.01 * len(arrays))
        return [array + 1 for array in arrays]


@fairway.stage(seconds=0.01)
class Right:
    def __call__(self, arrays: list[Any]) -> list[Any]:
        time.sleep(0.01 * len(arrays))
        return [array + 2 for array in arrays]


@fairway.stage(seconds=0.01)
class Total:
    def __call__(self, lefts: list[Any], rights: list[Any]) -> list[int]:
        return [int(left.sum() + right.sum()) for left, right in zip(lefts, rights, strict=True)]


@fairway.workflow
def totals(x: int) -> Any:
    spread = Spread()(x)
    return Total()(Left()(spread), Right()(spread))
