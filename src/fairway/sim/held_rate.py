"""The highest rate of requests at which a scheduler still answers a given part of them in time.

From a first guess the rate is doubled while it is held, or halved while it is not; then the gap between the highest
rate that is held and the lowest that is not is halved, on a logarithmic scale, until the two differ by no more than
`precision`. All runs of a search have the same number of requests and the same seed, so that they differ in the rate
alone. What is held need not fall evenly with the rate: the answer is a rate that is held, and the next one tried is
not.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from fairway.report.serving.metrics import summarize_serving
from fairway.sim.scenario import Scenario
from fairway.sim.serving import Progress
from fairway.sim.serving_workload import ServingRun, ServingWorkload

PRECISION = 0.05
"""By such a part, a rate that is held and one that is not may differ."""

_MOST_STEPS = 12
"""The rate is doubled or halved so often at most: by then it is 4,096 times the guess, or a part of it."""

Tried = dict[float, float]
"""By rate (requests per second), the part of the requests that was in time."""


class Held(NamedTuple):
    """The highest rate that was held, and the lowest that was not; 0 and infinite where there was none."""

    rate: float
    lost: float


def held_rate(in_time: Callable[[float], float], part: float, guess: float, precision: float = PRECISION) -> Held:
    """Search the highest rate at which `in_time` is at least `part`, from a guess above 0 on."""
    held, lost = 0.0, math.inf
    rate = guess
    for _ in range(_MOST_STEPS):
        if in_time(rate) >= part:
            held = max(held, rate)
            rate *= 2
        else:
            lost = min(lost, rate)
            rate /= 2
        if held and lost < math.inf:
            break
    while held and lost < math.inf and lost > held * (1 + precision):
        rate = math.sqrt(held * lost)
        if in_time(rate) >= part:
            held = rate
        else:
            lost = rate
    return Held(held, lost)


def capacity(scenario: Scenario) -> float:
    """Requests per second that the workers can do if all run without a pause, in the batches that save most."""
    shares = scenario.shares or (1.0,) * len(scenario.workflows)
    work = 0.0
    for workflow, share in zip(scenario.workflows, shares, strict=True):
        for stage in workflow.stages:
            work += share * min(seconds / batch for times in stage.seconds.values() for batch, seconds in times.items())
    return len(scenario.workers) * sum(shares) / work if work > 0 else 1.0


@dataclass(frozen=True, slots=True)
class RateRecord:
    """What a search has found: the rate, None if not even the lowest was held, and all rates that it tried."""

    scheduler: str
    seed: int
    rate: float | None
    tried: Tried
    wall_seconds: float


@dataclass(frozen=True, slots=True)
class RateSearch:
    """The search for one scheduler and one seed, which can be done in another process; `run` says all but the rate."""

    run: ServingRun
    part: float
    precision: float = PRECISION

    @property
    def files(self) -> tuple[str, ...]:
        """The files that it reads."""
        return self.run.files

    def __call__(self, progress: Progress | None = None) -> RateRecord:
        """Search, here and now; `progress` hears of the requests of all runs so far, and the rate that is tried."""
        begin = time.perf_counter()
        run, tried = self.run, Tried()
        assert isinstance(run.workload, ServingWorkload)
        number = run.workload.number

        def in_time(rate: float) -> float:
            done = number * len(tried)
            told = None if progress is None else (lambda ended, _: progress(done + ended, rate))
            record = at_rate(run, rate)(told)
            tried[rate] = summarize_serving(record)["slo_hit_rate"] or 0.0
            return tried[rate]

        found = held_rate(in_time, self.part, capacity(run.workload.make_scenario()) / 2, self.precision)
        name = run.scheduler if isinstance(run.scheduler, str) else str(run.scheduler)
        return RateRecord(name, run.options.seed, found.rate or None, tried, time.perf_counter() - begin)


def at_rate(run: ServingRun, rate: float) -> ServingRun:
    """The same run at another rate."""
    assert isinstance(run.workload, ServingWorkload)
    return replace(run, workload=replace(run.workload, rate=rate))
