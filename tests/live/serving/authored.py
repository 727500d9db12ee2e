"""An application for tests of authoring: plain stages, two models of known sizes, several workflows."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import fairway

LARGE, SMALL = 48_000_000, 16_000_000
"""Bytes of the models."""


@fairway.stage(model="table-{size}")
class Table:
    """Holds so many bytes; takes 20 ms to load and 2 ms for each request of a batch."""

    def __init__(self, size: int) -> None:
        self.size = size

    def load(self) -> np.ndarray:
        time.sleep(0.02)
        return np.ones(self.size // 8)

    def __call__(self, model: np.ndarray, numbers: list[float]) -> list[float]:
        time.sleep(0.002 * len(numbers))
        return [number + float(model[0]) for number in numbers]


@fairway.stage
def halve(number: float) -> float:
    return number / 2


@fairway.stage
class Both:
    def __call__(self, left: list[float], right: list[float], numbers: list[float]) -> list[list[float]]:
        return [list(each) for each in zip(left, right, numbers, strict=True)]


def numbers() -> Iterator[dict[str, Any]]:
    yield {"number": 3}
    yield {"number": 5.5}


@fairway.workflow(slo="1s", samples=numbers)
def tables(number: float) -> Any:
    half = halve(number)
    return Both()(Table(LARGE)(half), Table(SMALL)(half), number)


@fairway.workflow
def small(number: float) -> Any:
    return Table(SMALL)(number)


@fairway.stage
class Spell:
    def __call__(self, texts: list[str]) -> Iterator[str]:
        yield from texts[0]


@fairway.workflow
def spell(text: str) -> Any:
    return Spell()(text)


several = [tables, small]


@fairway.stage(model="opt", seconds=1.0)
def simulated(text: str) -> str:
    return text


@fairway.workflow
def only_simulated(text: str) -> Any:
    return simulated(text)


not_a_workflow = 7
