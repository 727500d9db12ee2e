"""Asks an application for answers, in asyncio, and writes down how long each took: the same for every system.

Either so many clients, each of which asks again as soon as it has its answer, for a while; or requests that arrive at
given moments, whether or not those before have their answers. A system whose clients can wait without asyncio may be
asked by one such client, too.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from fairway.live.serving.clients.client_protocol import RequestFailedError

Ask = Callable[[int], Awaitable[Any]]
"""Asks for what the number says, and fails if the answer is not right."""


@dataclass(frozen=True, slots=True)
class Load:
    """What came of it; times are in seconds. `late` is how late the last request was sent, at worst."""

    requests: int
    seconds: float
    mean: float
    p50: float
    p99: float
    late: float = 0.0

    @property
    def throughput(self) -> float:
        return self.requests / self.seconds

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


async def clients(ask: Ask, count: int, seconds: float) -> Load:
    """So many clients for so long; requests that end later do not count."""
    latencies: list[float] = []
    begin = time.perf_counter()
    end = begin + seconds

    async def client(number: int) -> None:
        while (sent := time.perf_counter()) < end:
            await ask(number)
            done = time.perf_counter()
            if done <= end:
                latencies.append(done - sent)
            number += count

    await asyncio.gather(*(client(number) for number in range(count)))
    return load_of(latencies, seconds)


def one_client(ask: Callable[[int], Any], seconds: float) -> Load:
    """One client that waits for each answer, without asyncio."""
    latencies: list[float] = []
    begin = sent = time.perf_counter()
    while sent < begin + seconds:
        ask(len(latencies))
        done = time.perf_counter()
        latencies.append(done - sent)
        sent = done
    return load_of(latencies, sent - begin)


async def arrivals(ask: Ask, moments: Sequence[float], inputs: Sequence[int]) -> Load:
    """A request at each of these moments; latency counts from when it should have come."""
    latencies = [0.0] * len(moments)
    late = 0.0
    begin = time.perf_counter()

    async def one(number: int, due: float) -> None:
        await ask(inputs[number])
        latencies[number] = time.perf_counter() - due

    waiting = []
    for number, moment in enumerate(moments):
        due = begin + moment
        if (left := due - time.perf_counter()) > 0:
            await asyncio.sleep(left)
        late = max(late, time.perf_counter() - due)
        waiting.append(asyncio.ensure_future(one(number, due)))
    await asyncio.gather(*waiting)
    return load_of(latencies, time.perf_counter() - begin, late)


async def in_time(ask: Ask, moments: Sequence[float], inputs: Sequence[int], deadline: float) -> float:
    """A request at each of these moments; the part that had its answer so soon after it should have come.

    One that is refused had none.
    """
    found = 0
    begin = time.perf_counter()

    async def one(number: int, due: float) -> None:
        nonlocal found
        with suppress(RequestFailedError):
            await ask(inputs[number])
            found += time.perf_counter() - due <= deadline

    waiting = []
    for number, moment in enumerate(moments):
        due = begin + moment
        if (left := due - time.perf_counter()) > 0:
            await asyncio.sleep(left)
        waiting.append(asyncio.ensure_future(one(number, due)))
    await asyncio.gather(*waiting)
    return found / len(moments)


def load_of(latencies: Sequence[float], seconds: float, late: float = 0.0) -> Load:
    assert latencies, "no request was answered in time"
    p50, p99 = np.percentile(latencies, [50, 99])
    return Load(len(latencies), seconds, float(np.mean(latencies)), float(p50), float(p99), late)


def poisson(rate: float, count: int, seed: int) -> list[float]:
    """The moments of requests that come at a rate, independently of each other."""
    gaps: list[float] = np.random.default_rng(seed).exponential(1 / rate, count).cumsum().tolist()
    return gaps
