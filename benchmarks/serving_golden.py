"""Does the serving simulator give the numbers that it should: those of the algorithm, and those of its authors?

The expected ones are in `tests/fixtures`: mean slow-downs of a reference simulation of the algorithm that was written
separately (`compass_edge`), and medians of the authors' own simulator (`navigator`), over the seeds 42 to 44 unless it
says otherwise. A row says by how many percent the worst of its points is off; our default, which adds to the algorithm,
may only be better. Then what that reaches on five seeds, and what staleness and one scheduler for all are worth.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np

from benchmarks._report import Options, Result
from benchmarks._report import run as report
from fairway.report.serving.metrics import summarize_serving
from fairway.sim.serving import ServingOptions
from fairway.sim.serving_workload import ServingRun, ServingWorkload
from tests.figures import compass_reference, navigator_point

REFERENCE = compass_reference()

INTENDED: dict[str, Sequence[float]] = {
    scheduler: REFERENCE.slowdowns[theirs]
    for scheduler, theirs in (
        ("hash", "hash"),
        ("heft", "heft"),
        ("jit", "jit"),
        ("compass:as-published,count-running,no-prefetch", "compass"),
        ("compass:as-published,count-running,no-prefetch,no-adjust", "compass, planning only"),
        ("compass:as-published,no-prefetch", "compass, load of the running task decays"),
        ("compass:as-published", "compass, load of the running task decays"),
    )
}
"""Mean slow-downs of the reference simulation at each of its points, all of them below saturation."""

AUTHORS = ("compass:compat", "compass:compat,adjust", "compass:compat,centralised", "hash:compat")
COMPAT_WORKERS = (20, 40, 60, 80, 100, 140, 160, 200, 240)
"""On so many workers, the authors' simulator was asked for medians at 40 requests per second."""

NEAR_SATURATION_SEEDS = tuple(range(42, 62))
"""Five workers at 4 per second differ so much between seeds that three tell little about staleness."""


def measure(options: Options) -> Iterator[Result]:
    """All rows, in turn."""
    points = REFERENCE.points[:1] if options.quick else REFERENCE.points
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
    for scheduler in AUTHORS:
        theirs = [navigator_point("scalability", scheduler, str(workers)) for workers in sizes]
        ours = [
            slowdown(scheduler, workers, 40.0, point.seeds, "p50") for workers, point in zip(sizes, theirs, strict=True)
        ]
        expected = [float(np.mean(point.median_slowdowns)) for point in theirs]
        yield off(f"{scheduler}, median against the authors", ours, expected, 1.0)
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
