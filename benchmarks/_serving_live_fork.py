"""A small workflow with a fork, a join and two models, whose answers can be checked: what is killed while it works.

Its arrays are large enough to travel through shared memory, and its models too large to stay on one worker together.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import fairway

SIZE = 8192
"""Numbers in an array: 64 KB."""


@fairway.stage(seconds=1e-4)
class Spread:
    def __call__(self, numbers: Sequence[int]) -> list[np.ndarray]:
        return [np.arange(SIZE) + number for number in numbers]


@fairway.stage(seconds=3e-3, model="double", memory="60MB")
class Double:
    def load(self) -> int:
        return 2

    def __call__(self, model: int, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        time.sleep(3e-3)
        return [array * model for array in arrays]


@fairway.stage(seconds=2e-3, model="shift", memory="60MB")
class Shift:
    def load(self) -> int:
        return 7

    def __call__(self, model: int, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        time.sleep(2e-3)
        return [array + model for array in arrays]


@fairway.stage(seconds=1e-4)
class Join:
    def __call__(self, one: Sequence[np.ndarray], other: Sequence[np.ndarray]) -> list[int]:
        return [int((first - second).sum()) for first, second in zip(one, other, strict=True)]


@fairway.workflow(name="fork")
def fork(number: int) -> Any:
    spread = Spread()(number)
    return Join()(Double()(spread), Shift()(spread))


class Fork(NamedTuple):
    """One request."""

    number: int
    workflow: str = "fork"

    @property
    def inputs(self) -> dict[str, Any]:
        return {"number": self.number}

    def check(self, answer: Any) -> None:
        expected = SIZE * (SIZE - 1) // 2 + SIZE * (self.number - 7)
        assert answer == expected, f"{answer} came for {self.number}, not {expected}"
