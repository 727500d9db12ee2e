"""Does the serving simulator give the numbers that it should: those of the algorithm, and those of its authors?

The expected ones come from outside the project: mean slow-downs of an independent simulation of the algorithm, and
medians of the authors' own simulator, over the seeds 42 to 44 unless it says otherwise. A row says by how many percent
the worst of its points is off; our default, which adds to the algorithm, may only be better. Then what that reaches on
five seeds, and what staleness and one scheduler for all are worth.
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

INTENDED: dict[str, Sequence[float]] = {
    "hash": (6.2, 13.3, 55.6, 11.5, 5.5, 3.96, 2.86),
    "heft": (5.7, 12.4, 51.5, 11.6, 5.7, 4.2, 3.0),
    "jit": (3.3, 5.4, 18.9, 2.5, 2.3, 2.2, 2.1),
    "compass:as-published,count-running,no-prefetch": (1.41, 2.26, 5.5, 1.30, 1.21, 1.18, 1.19),
    "compass:as-published,count-running,no-prefetch,no-adjust": (1.50, 2.28, 5.8, 1.76, 1.62, 1.60, 1.47),
    "compass:as-published,no-prefetch": (1.35, 1.91, 4.0, 1.34, 1.27, 1.32, 1.28),
    "compass:as-published": (1.35, 1.91, 4.0, 1.34, 1.27, 1.32, 1.28),
}
"""Mean slow-downs of the independent simulation, at each of the points."""

COMPAT_WORKERS = (20, 40, 60, 80, 100, 140, 160, 200, 240)
AUTHORS: dict[str, Sequence[float]] = {
    "compass:compat": (69.169, 4.890, 4.167, 3.900, 4.246, 3.930, 3.988, 4.155, 3.997),
    "compass:compat,adjust": (66.956, 6.152, 3.567, 3.479, 3.562, 3.235, 3.328, 3.545, 3.661),
    "compass:compat,centralised": (67.423, 6.090, 4.008, 4.008, 4.008, 4.008, 4.008, 4.008, 4.008),
    "hash:compat": (113.793, 38.764, 18.232, 10.122, 6.735, 4.350, 3.728, 3.115, 2.930),
}
"""Median slow-downs of the authors' simulator at 40 requests per second, on so many workers."""

ADJUST_SEEDS = (42, 43)
"""Those that it was run with for `adjust`."""

NEAR_SATURATION_SEEDS = tuple(range(42, 62))
"""Five workers at 4 per second differ so much between seeds that three tell little about staleness."""


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
    ours = [slowdown("compass", workers, rate, seeds, "mean") for workers, rate in points]
    worse = max(mine / theirs - 1 for mine, theirs in zip(ours, INTENDED["compass:as-published"], strict=False))
    yield Result("compass, mean, worse than the algorithm", "%", 100 * worse, target=None if options.quick else 0.0,
                 extra={"ours_at": ours})  # fmt: skip
    sizes = COMPAT_WORKERS[-1:] if options.quick else COMPAT_WORKERS
    for scheduler, expected in AUTHORS.items():
        theirs = ADJUST_SEEDS if "adjust" in scheduler else (42, 43, 44)
        ours = [slowdown(scheduler, workers, 40.0, theirs, "p50") for workers in sizes]
        yield off(f"{scheduler}, median against the authors", ours, expected[-len(sizes) :], 1.0)
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
    for workers, rate, seeds in (
        (5, 4.0, NEAR_SATURATION_SEEDS),
        (140, 40.0, (42, 43, 44)),
        (5, 0.5, (42, 43, 44)),
        (140, 10.0, (42, 43, 44)),
    ):
        for age in (0.001, 0.05, 0.1, 0.2, 0.3):
            of_seeds = slowdowns("compass", workers, rate, seeds, "mean", age)
            name = f"compass, {workers} workers, {rate:g}/s, loads {1000 * age:g} ms old"
            error = float(np.std(of_seeds, ddof=1)) / len(of_seeds) ** 0.5
            yield Result(name, "×", float(np.mean(of_seeds)), extra={"seeds": len(of_seeds), "standard_error": error})
        central = slowdown("compass:centralised", workers, rate, seeds, "mean")
        own = slowdown("compass", workers, rate, seeds, "mean")
        name = f"compass, {workers} workers, {rate:g}/s, off one scheduler for all"
        yield Result(name, "%", 100 * abs(own / central - 1), target=15.0)


def slowdown(scheduler: str, workers: int, rate: float, seeds: Sequence[int], what: str) -> float:
    """The mean over seeds of a mean or a median."""
    return float(np.mean(slowdowns(scheduler, workers, rate, tuple(seeds), what)))


@cache
def slowdowns(
    scheduler: str, workers: int, rate: float, seeds: tuple[int, ...], what: str, load_age: float = 0.001
) -> list[float]:
    """The mean or the median of each seed."""
    workload = ServingWorkload("compass-edge", "clients", workers, 1000, rate)
    runs = [
        ServingRun(workload, scheduler, ServingOptions(load_staleness_seconds=load_age, seed=seed)) for seed in seeds
    ]
    return [float(summarize_serving(run())["slowdown"][what]) for run in runs]  # type: ignore[literal-required]


def off(name: str, ours: Sequence[float], expected: Sequence[float], target: float | None) -> Result:
    """The worst point of a row, in percent."""
    pairs = list(zip(ours, expected, strict=False))
    worst = max(abs(mine / theirs - 1) for mine, theirs in pairs)
    return Result(name, "%", 100 * worst, target=target, extra={"ours_at": list(ours), "expected_at": list(expected)})


if __name__ == "__main__":
    report("serving_golden", measure)
