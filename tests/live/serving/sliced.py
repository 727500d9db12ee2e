"""Workflows whose models have slices, for tests of the serving runtime; workers import them by name."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

import fairway


def spin(seconds: float) -> None:
    """Use a CPU for so long, as this process counts it."""
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


@fairway.stage(memory="1MB", seconds=0.02, model="small")
class Small:
    def load(self) -> str:
        return "small"

    def __call__(self, model: str, seconds: list[float]) -> list[list[Any]]:
        spin(sum(seconds))
        return [[model, os.getpid()] for _ in seconds]


@fairway.stage(memory="1MB", seconds=0.02, model="large")
class Large:
    def load(self) -> str:
        return "large"

    def __call__(self, model: str, seconds: list[float]) -> list[list[Any]]:
        spin(sum(seconds))
        return [[model, os.getpid()] for _ in seconds]


@fairway.workflow
def small(seconds: float) -> Any:
    return Small()(seconds)


@fairway.workflow
def large(seconds: float) -> Any:
    return Large()(seconds)


@fairway.stage(memory="1MB", seconds=0.01, model="greedy")
class Greedy:
    """Takes what it is asked to, without end if that is nothing; or ends its process; or raises."""

    def load(self) -> str:
        return "greedy"

    def __call__(self, model: str, wishes: list[str]) -> list[list[Any]]:
        for wish in wishes:
            if wish == "die":
                os._exit(3)
            if wish == "raise":
                raise RuntimeError("no luck")
            if wish == "unsendable":
                return [lambda: 1 for _ in wishes]  # type: ignore[misc]
            taken = []
            while wish == "all":
                taken.append(os.urandom(2**20) * 8)
        return [[model, os.getpid()] for _ in wishes]


@fairway.workflow
def greedy(wish: str) -> Any:
    return Greedy()(wish)


@fairway.stage(memory="1MB", seconds=0.01, model="speller")
class Speller:
    def load(self) -> str:
        return "!"

    def __call__(self, model: str, words: list[str]) -> Iterator[str]:
        yield from words[0]
        if words[0] == "bad":
            raise RuntimeError("no more")
        yield model


@fairway.workflow
def spelling(word: str) -> Any:
    return Speller()(word)


@fairway.stage(memory="1MB", seconds=0.01, model="unloadable")
class Unloadable:
    def load(self) -> str:
        raise OSError("no such file")

    def __call__(self, model: str, words: list[str]) -> list[str]:
        return [model + word for word in words]


@fairway.workflow
def unloadable(word: str) -> Any:
    return Unloadable()(word)


@fairway.stage(seconds=1e-5)
class Glue:
    """Plain code, which has no slice."""

    def __call__(self, first: list[list[Any]], second: list[list[Any]]) -> list[list[Any]]:
        return [[*one, *other, os.getpid()] for one, other in zip(first, second, strict=True)]


@fairway.workflow(slo="60s")
def both(seconds: float) -> Any:
    return Glue()(Small()(seconds), Large()(seconds))


ALL = [small, large, greedy, spelling, unloadable, both]
TWO = [small, large]
