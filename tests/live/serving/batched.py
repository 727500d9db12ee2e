"""Workflows for tests of batches; workers import them by name."""

from __future__ import annotations

import time
from typing import Any

import fairway

TIMES = {"cpu": {1: 0.02, 2: 0.022, 4: 0.026, 8: 0.034}}
"""What the stages really take: a batch is hardly longer than a single run."""


def spend(size: int) -> None:
    time.sleep(0.018 + 0.002 * size)


@fairway.stage(memory="10MB", seconds=TIMES)
class Count:
    """Says how many ran together."""

    def load(self) -> str:
        return "count"

    def __call__(self, model: str, numbers: list[int]) -> list[tuple[int, int]]:
        assert model == "count"
        spend(len(numbers))
        return [(number, len(numbers)) for number in numbers]


@fairway.stage(seconds=TIMES)
class Widen:
    def __call__(self, pairs: list[tuple[int, int]], numbers: list[int]) -> list[tuple[int, int, int]]:
        spend(len(pairs))
        return [(*pair, number + len(pairs)) for pair, number in zip(pairs, numbers, strict=True)]


@fairway.workflow
def counting(x: int) -> Any:
    return Widen()(Count()(x), x)


@fairway.workflow(slo="25ms")
def hurried(x: int) -> Any:
    return Count()(x)


@fairway.stage(seconds=TIMES)
class Choose:
    """Does not like multiples of five, and tells nobody which of a batch it was."""

    def __call__(self, numbers: list[int]) -> list[tuple[int, int]]:
        spend(len(numbers))
        if any(number % 5 == 0 for number in numbers):
            raise ValueError(f"no fives, please: {numbers}")
        return [(number, len(numbers)) for number in numbers]


@fairway.workflow
def choosing(x: int) -> Any:
    return Choose()(x)
