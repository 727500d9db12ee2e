"""Workflows for tests of the serving runtime; workers import them by name."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import fairway


@fairway.stage(seconds=1e-5)
class Add:
    def __call__(self, numbers: list[int]) -> list[int]:
        return [number + 1 for number in numbers]


@fairway.workflow
def chain(x: int) -> Any:
    return Add()(Add()(Add()(x)))


@fairway.stage(seconds=1e-5)
class Device:
    """Which accelerators it sees."""

    def __call__(self, numbers: list[int]) -> list[str]:
        return [os.environ["CUDA_VISIBLE_DEVICES"] for _ in numbers]


@fairway.workflow
def device(x: int) -> Any:
    return Device()(x)


@fairway.stage(memory="10MB", seconds=0.01)
class Double:
    def load(self) -> str:
        return "double"

    def __call__(self, model: str, numbers: list[int]) -> list[int]:
        assert model == "double"
        time.sleep(0.01)
        return [2 * number for number in numbers]


@fairway.stage(memory="10MB", seconds=0.01)
class Square:
    def load(self) -> str:
        return "square"

    def __call__(self, model: str, numbers: list[int]) -> list[int]:
        assert model == "square"
        time.sleep(0.01)
        return [number * number for number in numbers]


@fairway.stage(seconds=1e-5)
class Sum:
    def __call__(self, first: list[int], second: list[int], third: list[int]) -> list[int]:
        return [a + b + c for a, b, c in zip(first, second, third, strict=True)]


@fairway.workflow
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


@fairway.workflow
def arrays(size: int) -> Any:
    return Total()(Grow()(size))


@fairway.stage(seconds=1e-5)
class Fail:
    def __call__(self, texts: list[str]) -> list[str]:
        raise RuntimeError(f"no luck with {texts[0]}")


@fairway.workflow
def failing(text: str) -> Any:
    return Fail()(text)


@fairway.stage(memory="1MB", seconds=1e-3)
class Stubborn:
    def load(self) -> str:
        raise OSError("no such file")

    def __call__(self, model: str, texts: list[str]) -> list[str]:
        return [model + text for text in texts]


@fairway.workflow
def unloadable(text: str) -> Any:
    return Stubborn()(text)


@fairway.stage(seconds=2e-3)
class Spell:
    def __call__(self, words: list[str]) -> Iterator[str]:
        for letter in words[0]:
            time.sleep(0.02)
            yield letter


@fairway.workflow
def spelling(word: str) -> Any:
    return Spell()(word)


@fairway.stage(seconds=0.05)
class Sleep:
    def __call__(self, seconds: list[float]) -> list[int]:
        time.sleep(sum(seconds))
        return [os.getpid() for _ in seconds]


@fairway.workflow
def sleeping(seconds: float) -> Any:
    return Sleep()(seconds)


@fairway.stage(memory="60MB", seconds=5e-3)
class Heavy:
    def load(self) -> Any:
        return np.ones(60_000_000 // 8)

    def __call__(self, model: Any, numbers: list[int]) -> list[float]:
        return [float(model[0]) + number for number in numbers]


@fairway.stage(memory="60MB", seconds=5e-3)
class AlsoHeavy:
    def load(self) -> Any:
        return np.full(60_000_000 // 8, 2.0)

    def __call__(self, model: Any, numbers: list[int]) -> list[float]:
        return [float(model[0]) + number for number in numbers]


@fairway.workflow
def heavy(x: int) -> Any:
    return Heavy()(x)


@fairway.workflow
def also_heavy(x: int) -> Any:
    return AlsoHeavy()(x)


BOTH = [heavy, also_heavy]


def resident_bytes(pid: int) -> int:
    """The memory of a process that is really there."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@fairway.stage(seconds=0.02)
class Uneven:
    """Takes half a second on worker 0, where everybody else expects 20 ms."""

    def __call__(self, numbers: list[int]) -> list[str]:
        time.sleep(0.5 if os.environ["FAIRWAY_WORKER"] == "0" else 0.02)
        return [os.environ["FAIRWAY_WORKER"] for _ in numbers]


@fairway.workflow
def uneven(x: int) -> Any:
    return Uneven()(x)


@fairway.stage(seconds=0.02)
class Deadly:
    def __call__(self, texts: list[str]) -> list[str]:
        if texts[0] == "poison":
            os.kill(os.getpid(), signal.SIGKILL)
        return texts


@fairway.workflow
def deadly(text: str) -> Any:
    return Deadly()(text)


@fairway.stage(seconds=1e-5)
class Unsendable:
    def __call__(self, numbers: list[int]) -> list[Any]:
        return [lambda number=number: number for number in numbers]


@fairway.stage(seconds=1e-5)
class Call:
    def __call__(self, functions: list[Any]) -> list[int]:
        return [function() for function in functions]


@fairway.workflow
def unsendable(x: int) -> Any:
    return Call()(Unsendable()(x))


TOGETHER = [chain, spelling, arrays, unsendable, deadly]
TRACED = [chain, failing]
