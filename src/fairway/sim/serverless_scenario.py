"""A serverless scenario: which applications are asked for, on how many invokers; and the requests of a run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairway.configure.arrays import FloatArray, IntArray
from fairway.configure.platform import Platform
from fairway.engine.serverless import Function, ServedApplication
from fairway.errors import InputError


@dataclass(frozen=True, eq=False)
class ServerlessScenario:
    """Applications, the functions that their stages run, and invokers that are all alike.

    With `one_at_a_time`, an invoker creates and removes its containers one after the other, as over one bus.
    """

    name: str
    applications: tuple[ServedApplication, ...]
    functions: tuple[Function, ...]
    platform: Platform
    invokers: int
    one_at_a_time: bool = False


@dataclass(frozen=True, eq=False)
class ServerlessArrivals:
    """One entry per request, in order of time (seconds): when it comes and which application it asks for.

    `draws[request, stage]` are standard normal: the run time of a task is that of its profile times exp(noise · draw),
    by the draw of its oldest request. So noise belongs to the request and not to the order in which things run.
    """

    time: FloatArray
    application: IntArray
    draws: FloatArray

    def __len__(self) -> int:
        return len(self.time)


def uniform_gaps(
    least: float, most: float, end: float, applications: int, seed: int, stages: int = 8
) -> ServerlessArrivals:
    """Gaps drawn evenly between two bounds, in seconds, and each application as likely as any other.

    The draws of a request follow each other in one stream, and those of the noise come after all of them, so that a
    seed gives the same requests to every scheduler.
    """
    if not 0 < least <= most:
        raise InputError(f"gaps from {least} to {most} s given, expected a rising range above 0")
    stream = np.random.Generator(np.random.PCG64(seed))
    times: list[float] = []
    asked: list[int] = []
    # In milliseconds, as published: a sum of seconds would differ in its last digits.
    now, low, high, over = 0.0, 1e3 * least, 1e3 * most, 1e3 * end
    while True:
        now += stream.uniform(low, high)
        if now >= over:
            break
        times.append(now / 1e3)
        asked.append(int(stream.integers(0, applications)))
    draws = stream.standard_normal((len(times), stages))
    return ServerlessArrivals(np.array(times), np.array(asked, np.int64), draws)
