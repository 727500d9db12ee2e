"""Does the serving simulator give the numbers that it should: those of the algorithm, and those of its authors?

The expected ones come from outside the project: mean slow-downs of an independent simulation of the algorithm, and
medians of the authors' own simulator, all over the seeds 42 to 44. A row says by how many percent the worst of its
points is off. Then what our default reaches on five seeds, and what staleness and one scheduler for all are worth.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np

from benchmarks._report import Options, Result
from benchmarks._report import run as report
from fairway.report.serving_metrics import summarize_serving
from fairway.sim.serving import ServingOptions
from fairway.sim.serving_workload import ServingRun, ServingWorkload

POINTS = ((5, 2.0), (5, 3.0), (5, 4.0), (60, 40.0), (100, 40.0), (140, 40.0), (240, 40.0))
"""Workers and requests per second, all below saturation."""

INTENDED = {
    "hash": (6.2, 13.3, 55.6, 11.5, 5.5, 3.96, 2.86),
    "heft": (5.7, 12.4, 51.5, 11.6, 5.7, 4.2, 3.0),
    "jit": (3.3, 5.4, 18.9, 2.5, 2.3, 2.2, 2.1),
    "compass:count-running,no-prefetch": (1.41, 2.26, 5.5, 1.30, 1.21, 1.18, 1.19),
    "compass:count-running,no-prefetch,no-adjust": (1.50, 2.28, 5.8, 1.76, 1.62, 1.60, 1.47),
    "compass:no-prefetch": (1.35, 1.91, 4.0, 1.34, 1.27, 1.32, 1.28),
    "compass": (1.35, 1.91, 4.0, 1.34, 1.27, 1.32, 1.28),
}
"""Mean slow-downs of the independent simulation, at each of the points."""

COMPAT_WORKERS = (20, 40, 60, 80, 100, 140, 160, 200, 240)
AUTHORS = {
    "compass:compat": (69.2, 4.89, 4.17, 3.90, 4.25, 3.93, 3.99, 4.15, 4.00),
    "hash:compat": (113.8, 38.8, 18.2, 10.1, 6.73, 4.35, 3.73, 3.12, 2.93),
}
"""Median slow-downs of the authors' simulator at 40 requests per second, on so many workers."""


def measure(options: Options) -> Iterator[Result]:
    """All rows, in turn."""
    points = POINTS[:1] if options.quick else POINTS
    seeds = (42,) if options.quick else (42, 43, 44)
    for scheduler, expected in INTENDED.items():
        ours = [slowdown(scheduler, workers, rate, seeds, "mean") for workers, rate in points]
        target: float | None = 15.0 if scheduler.startswith("compass") else 20.0
        if "no-adjust" in scheduler:  # near saturation, draws between equals alone move it by more than that
            target = None
        yield off(f"{scheduler}, mean against the algorithm", ours, expected, None if options.quick else target)
    sizes = COMPAT_WORKERS[-1:] if options.quick else COMPAT_WORKERS
    for scheduler, expected in AUTHORS.items():
        ours = [slowdown(scheduler, workers, 40.0, seeds, "p50") for workers in sizes]
        yield off(f"{scheduler}, median against the authors", ours, expected[-len(sizes) :], 15.0)
    if not options.quick:
        yield from defaults()
        yield from staleness()


def defaults() -> Iterator[Result]:
    """What our default reaches."""
    seeds = (42, 43, 44, 45, 46)
    for workers, rate, bound in ((5, 4.0, 5.0), (60, 40.0, 1.4), (100, 40.0, 1.4), (140, 40.0, 1.4), (240, 40.0, 1.4)):
        mean = slowdown("compass", workers, rate, seeds, "mean")
        yield Result(f"compass, {workers} workers, {rate:g}/s, mean slow-down", "×", mean, target=bound)


def staleness() -> Iterator[Result]:
    """How much older news cost, and what one scheduler that sees everything would gain."""
    seeds = (42, 43, 44)
    for workers, rate in ((5, 4.0), (140, 40.0), (140, 10.0)):
        for age in (0.001, 0.05, 0.1, 0.2):
            mean = slowdown("compass", workers, rate, seeds, "mean", age)
            yield Result(f"compass, {workers} workers, {rate:g}/s, loads {1000 * age:g} ms old", "×", mean)
        central = slowdown("compass:centralised", workers, rate, seeds, "mean")
        own = slowdown("compass", workers, rate, seeds, "mean")
        name = f"compass, {workers} workers, {rate:g}/s, off one scheduler for all"
        yield Result(name, "%", 100 * abs(own / central - 1), target=15.0)


@cache
def slowdown(
    scheduler: str, workers: int, rate: float, seeds: Sequence[int], what: str, load_age: float = 0.001
) -> float:
    """The mean over seeds of a mean or a median."""
    workload = ServingWorkload("compass-edge", "clients", workers, 1000, rate)
    runs = [
        ServingRun(workload, scheduler, ServingOptions(load_staleness_seconds=load_age, seed=seed)) for seed in seeds
    ]
    return float(np.mean([summarize_serving(run())["slowdown"][what] for run in runs]))  # type: ignore[literal-required]


def off(name: str, ours: Sequence[float], expected: Sequence[float], target: float | None) -> Result:
    """The worst point of a row, in percent."""
    pairs = list(zip(ours, expected, strict=False))
    worst = max(abs(mine / theirs - 1) for mine, theirs in pairs)
    return Result(name, "%", 100 * worst, target=target, extra={"ours_at": list(ours), "expected_at": list(expected)})


if __name__ == "__main__":
    report("serving_golden", measure)
