"""When requests arrive, for which workflow, and at which worker: drawn, or read from a trace.

`clients` is the experiment of Compass's authors: each workflow has a client of its own that asks for nothing else, and
the draws are those of numpy's older generator, so that the requests of a reference simulation can be repeated. The
others draw all gaps from one process and the workflow of each request by the shares of the scenario.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairway.errors import InputError
from fairway.place.arrays import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Arrivals:
    """One entry per request, in order of time (seconds).

    `ingress` is a number from [0, 1): the part of the row of workers at which the receiving one stands. `work` is how
    much longer than expected its tasks really take, 1 where nothing is known. `draws[request, stage]`, where they are
    given, are standard normal: with noise, the time of a task is its profile's times exp(noise · draw).
    """

    time: FloatArray
    workflow: IntArray
    ingress: FloatArray
    work: FloatArray
    draws: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.time)


def from_clients(requests: int, rate: float, workflows: int, seed: int) -> Arrivals:
    """A client for each workflow, with exponential gaps; the first request of each at its part of the mean gap.

    With mean gap I, client c of n asks at c·I/n first. All clients draw as many gaps as there are requests, one after
    the other, then the ingress of each request is drawn.
    """
    draws = np.random.RandomState(seed)
    gap = workflows / rate
    times = np.empty((workflows, requests))
    for client in range(workflows):
        gaps = draws.exponential(gap, requests)
        times[client, 0] = client * gap / workflows
        # One after the other, as a program that schedules each from the last would add them.
        times[client, 1:] = gaps[:-1]
        np.add.accumulate(times[client], out=times[client])
    owner = np.repeat(np.arange(workflows), requests)
    first = np.lexsort((owner, times.ravel()))[:requests]
    return Arrivals(times.ravel()[first], owner[first], draws.random_sample(requests), np.ones(requests))


def uniform(requests: int, rate: float, shares: FloatArray, seed: int) -> Arrivals:
    """Equal gaps."""
    return _drawn(np.full(requests, 1.0 / rate), shares, np.random.default_rng(seed))


def poisson(requests: int, rate: float, shares: FloatArray, seed: int) -> Arrivals:
    """Exponential gaps."""
    draws = np.random.default_rng(seed)
    return _drawn(draws.exponential(1.0 / rate, requests), shares, draws)


def gamma(requests: int, rate: float, variation: float, shares: FloatArray, seed: int) -> Arrivals:
    """Gaps of a gamma distribution with this coefficient of variation: above 1, requests come in bursts.

    With shape 1/CV² and scale mean·CV².
    """
    draws = np.random.default_rng(seed)
    shape = 1.0 / variation**2
    return _drawn(draws.gamma(shape, 1.0 / (rate * shape), requests), shares, draws)


def replayed(time: FloatArray, workflow: IntArray, work: FloatArray, rate: float | None, seed: int) -> Arrivals:
    """The requests of a trace, at its own pace or faster or slower, so that the mean rate is the one asked for."""
    draws = np.random.default_rng(seed)
    since = time - time[0] if len(time) else time
    if rate is not None and len(time) > 1 and since[-1] > 0:
        since = since * ((len(time) - 1) / (rate * since[-1]))
    return Arrivals(since, workflow, draws.random(len(time)), work)


def _drawn(gaps: FloatArray, shares: FloatArray, draws: np.random.Generator) -> Arrivals:
    number = len(gaps)
    workflow = draws.choice(len(shares), size=number, p=shares / shares.sum())
    return Arrivals(np.cumsum(gaps), workflow.astype(np.int64), draws.random(number), np.ones(number))


def uniform_gaps(least: float, most: float, end: float, workflows: int, seed: int, stages: int = 8) -> Arrivals:
    """Gaps drawn evenly between two bounds, in seconds, and each workflow as likely as any other.

    The draws of a request follow each other in one stream, those of the noise come after all of them, and those of the
    ingress last, so that a seed gives the same requests to every scheduler.
    """
    if not 0 < least <= most:
        raise InputError(f"gaps from {least} to {most} s given, expected a rising range above 0")
    stream = np.random.Generator(np.random.PCG64(seed))
    times: list[float] = []
    asked: list[int] = []
    # In milliseconds, as in the reference simulation: a sum of seconds would differ in its last digits.
    now, low, high, over = 0.0, 1e3 * least, 1e3 * most, 1e3 * end
    while True:
        now += stream.uniform(low, high)
        if now >= over:
            break
        times.append(now / 1e3)
        asked.append(int(stream.integers(0, workflows)))
    draws = stream.standard_normal((len(times), stages))
    ingress = stream.random(len(times))
    return Arrivals(np.array(times), np.array(asked, np.int64), ingress, np.ones(len(times)), draws)
