"""Workflows for tests of the HTTP side; workers import them by name."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import fairway


@fairway.stage(memory="5MB", seconds=2e-3)
class Measure:
    def load(self) -> Any:
        return len

    def __call__(self, model: Any, blobs: list[Any], times: list[int]) -> list[int]:
        return [model(blob) * factor for blob, factor in zip(blobs, times, strict=True)]


@fairway.workflow(slo="5s")
def measure(blob: bytes, times: int = 1) -> Any:
    return Measure()(blob, times)


@fairway.stage(seconds=1e-5)
class Describe:
    def __call__(self, texts: list[str]) -> list[dict[str, Any]]:
        return [{"text": text, "array": np.arange(3), "none": float("nan"), "raw": b"hi", "set": {1}} for text in texts]


@fairway.workflow
def describe(text: str) -> Any:
    return Describe()(text)


@fairway.stage(seconds=1e-5)
class Reverse:
    def __call__(self, blobs: list[Any]) -> list[bytes]:
        return [bytes(blob)[::-1] for blob in blobs]


@fairway.workflow
def reverse(blob: bytes) -> Any:
    return Reverse()(blob)


@fairway.stage(seconds=1e-5)
class Odd:
    def __call__(self, kinds: list[str]) -> list[Any]:
        return [{"object": object(), "function": lambda: 1}[kind] for kind in kinds]


@fairway.workflow
def odd(kind: str) -> Any:
    return Odd()(kind)


@fairway.stage(seconds=0.05)
class Sleep:
    def __call__(self, seconds: list[float]) -> list[int]:
        time.sleep(sum(seconds))
        return [os.getpid() for _ in seconds]


@fairway.workflow
def sleep(seconds: float) -> Any:
    return Sleep()(seconds)


@fairway.stage(seconds=2e-3)
class Count:
    """Yields numbers, and writes down how far it came; a negative number is where it raises."""

    def __call__(self, ends: list[int], marks: list[str]) -> Iterator[int]:
        for number in range(abs(ends[0])):
            Path(marks[0]).write_text(str(number))
            yield number
            time.sleep(0.05)
        if ends[0] < 0:
            raise ValueError("no more")


@fairway.workflow
def count(end: int, mark: str) -> Any:
    return Count()(end, mark)


@fairway.stage(seconds=1e-5)
class Fail:
    def __call__(self, texts: list[str]) -> list[str]:
        raise RuntimeError(f"no luck with {texts[0]}")


@fairway.workflow
def fail(text: str) -> Any:
    return Fail()(text)


@fairway.stage(seconds=100.0)
class Endless:
    def __call__(self, texts: list[str]) -> list[str]:
        return texts


@fairway.workflow
def endless(text: str) -> Any:
    return Endless()(text)


ALL = [measure, describe, reverse, odd, sleep, count, fail, endless]
