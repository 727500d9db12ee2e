"""Workflows with an SLO, for tests of schedulers that choose configurations; workers import them by name."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import fairway

_BATCHES = {"*": {1: 0.02, 2: 0.021, 4: 0.022, 8: 0.024}}
"""Batches that are hardly slower than one request."""


@fairway.stage(seconds=_BATCHES, memory="10MB")
class Double:
    def load(self) -> int:
        return 2

    def __call__(self, model: int, numbers: list[int]) -> list[tuple[int, int]]:
        """Each number doubled, and how many there were in the batch."""
        time.sleep(0.02)
        if 13 in numbers:
            raise ValueError("thirteen")
        return [(model * number, len(numbers)) for number in numbers]


@fairway.stage(seconds=_BATCHES, memory="10MB")
class Square:
    def load(self) -> str:
        return "square"

    def __call__(self, model: str, numbers: list[int]) -> list[int]:
        assert model == "square"
        time.sleep(0.02)
        return [number * number for number in numbers]


@fairway.stage(seconds=1e-5)
class Sum:
    def __call__(self, doubled: list[tuple[int, int]], squared: list[int], given: list[int]) -> list[dict[str, int]]:
        return [
            {"sum": double + square + number, "batch": batch}
            for (double, batch), square, number in zip(doubled, squared, given, strict=True)
        ]


@fairway.workflow(slo="2s")
def fork(x: int) -> Any:
    """A fork and a join, with a stage in the end that takes the request's own input too."""
    return Sum()(Double()(x), Square()(x), x)


@fairway.stage(seconds=2e-3)
class Grow:
    def __call__(self, sizes: list[int]) -> list[Any]:
        return [np.arange(size, dtype=np.float64) for size in sizes]


@fairway.stage(seconds=2e-3)
class Total:
    def __call__(self, arrays: list[Any]) -> list[Any]:
        return [(float(array.sum()), array[::-1]) for array in arrays]


@fairway.workflow(slo="2s")
def arrays(size: int) -> Any:
    return Total()(Grow()(size))


@fairway.stage(seconds=2e-3)
class Spell:
    def __call__(self, words: list[str]) -> Iterator[str]:
        for letter in words[0]:
            time.sleep(0.02)
            yield letter


@fairway.workflow(slo="2s")
def spelling(word: str) -> Any:
    return Spell()(word)


@fairway.stage(memory="1MB", seconds=1e-3)
class Stubborn:
    def load(self) -> str:
        raise OSError("no such file")

    def __call__(self, model: str, texts: list[str]) -> list[str]:
        return [model + text for text in texts]


@fairway.workflow(slo="2s")
def unloadable(text: str) -> Any:
    return Stubborn()(text)


@fairway.stage(seconds=0.05)
class Sleep:
    def __call__(self, seconds: list[float]) -> list[int]:
        time.sleep(sum(seconds))
        return [os.getpid() for _ in seconds]


@fairway.workflow(slo="2s")
def sleeping(seconds: float) -> Any:
    return Sleep()(seconds)


@fairway.stage(seconds={"*": {1: 0.02, 4: 0.022}})
class Deadly:
    def __call__(self, texts: list[str]) -> list[str]:
        time.sleep(0.02)
        if "poison" in texts:
            os.kill(os.getpid(), signal.SIGKILL)
        return texts


@fairway.workflow(slo="2s")
def deadly(text: str) -> Any:
    return Deadly()(text)


@fairway.stage(seconds=1e-5)
class Unsendable:
    def __call__(self, numbers: list[int]) -> list[Any]:
        return [lambda number=number: number for number in numbers]


@fairway.workflow(slo="2s")
def unsendable(x: int) -> Any:
    return Unsendable()(x)


@fairway.stage(seconds=100.0)
class Endless:
    def __call__(self, texts: list[str]) -> list[str]:
        return texts


@fairway.workflow(slo="2s")
def endless(text: str) -> Any:
    """Takes long, as one says; not really."""
    return Endless()(text)


@fairway.workflow
def unhurried(x: int) -> Any:
    """Has no SLO."""
    return Double()(x)


ALL = [fork, arrays, spelling, unloadable, sleeping, deadly, unsendable, endless]
