"""Two stages whose models have slices, and neighbours that misbehave, for `benchmarks.slices`."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import fairway

_SIZE = 160


class _Multiplies:
    """A stage that computes for some time, always as much."""

    rounds = 1

    def load(self) -> np.ndarray:
        return np.ones((_SIZE, _SIZE)) / _SIZE

    def __call__(self, model: np.ndarray, numbers: list[float]) -> list[float]:
        found = []
        for number in numbers:
            value = model + number
            for _ in range(self.rounds):
                value = np.tanh(value @ model)
            found.append(float(value[0, 0]))
        return found


@fairway.stage(model="quarter", memory="1MB")
class Quarter(_Multiplies):
    rounds = 60


@fairway.stage(model="rest", memory="1MB")
class Rest(_Multiplies):
    rounds = 180


def samples() -> Iterator[dict[str, Any]]:
    yield {"number": 1.0}


@fairway.workflow(samples=samples)
def quarter(number: float) -> Any:
    return Quarter()(number)  # type: ignore[call-arg, arg-type]


@fairway.workflow(samples=samples)
def rest(number: float) -> Any:
    return Rest()(number)  # type: ignore[call-arg, arg-type]


@fairway.stage(model="bad", memory="1MB", seconds=1.0)
class Bad:
    """Spins in several processes for some seconds, or takes memory without end."""

    def load(self) -> str:
        return "bad"

    def __call__(self, model: str, wishes: list[str]) -> list[str]:
        for wish in wishes:
            if wish == "memory":
                taken = []
                while True:
                    taken.append(os.urandom(2**20) * 16)
            children = [pid for pid in (os.fork() for _ in range(4)) if pid]
            until = time.monotonic() + float(wish)
            if len(children) < 4:
                while time.monotonic() < until:
                    pass
                os._exit(0)
            for pid in children:
                os.waitpid(pid, 0)
        return [model for _ in wishes]


@fairway.workflow
def bad(wish: str) -> Any:
    return Bad()(wish)  # type: ignore[call-arg]


TWO = [quarter, rest]
ALL = [quarter, rest, bad]
