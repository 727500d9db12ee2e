"""How much of the load that workers could do does the scheduler `fairway` serve in time, and what is each part worth?

Grounds are pipelines with a promise: the highest rate with 99 % or 90 % of all requests in time (the mean over seeds,
each searched to 3 %), the part in time at a rate beyond that, or the slow-down where there is no SLO, with requests as
in the table of `compass`, which is the peer there. The peer is
the bound: what workers could do if no request ever waited. No scheduler reaches it. A row's target is what is promised,
as a part of the bound. With `--ablation`, each part of the scheduler is taken away in turn, and the peer is the whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import mean
from typing import Annotated, Literal

import typer

from benchmarks._report import Result, show, spread
from fairway.report.serving.metrics import ServingSummary, summarize_serving
from fairway.sim.held_rate import held_rate
from fairway.sim.serving import ServingOptions
from fairway.sim.serving_workload import ServingRun, ServingWorkload

SEEDS = (1, 2, 3)

PARTS = (
    "no-joining",
    "no-moving",
    "no-fetching",
    "lingers=0",
    "no-deadlines",
    "no-batching",
    "no-mixing",
    "no-homes",
    "no-separating",
    "late=last",
    "late=serve",
)
"""Options of the scheduler that take something away, or do it in another way."""


@dataclass(frozen=True, slots=True)
class Ground:
    """A pipeline under a load: requests, SLO, and the rate (requests/s) that no scheduler could exceed."""

    scenario: str
    requests: int
    bound: float
    slo_scale: float = 1.0
    workers: int | None = None
    stale_seconds: float = 0.001

    @property
    def name(self) -> str:
        """As it stands in the table."""
        scale = "" if self.slo_scale == 1.0 else f", SLO x {self.slo_scale:g}"
        stale = "" if self.stale_seconds <= 0.001 else f", news {self.stale_seconds * 1000:g} ms old"
        return f"{self.scenario}{scale}{stale}"

    def run(self, scheduler: str, rate: float, seed: int) -> ServingRun:
        """One run at a rate."""
        ages = {"load_staleness_seconds": self.stale_seconds, "cache_staleness_seconds": self.stale_seconds}
        options = ServingOptions(slo_scale=self.slo_scale, seed=seed, **ages)  # type: ignore[arg-type]
        workload = ServingWorkload(self.scenario, workers=self.workers, requests=self.requests, rate=rate)
        return ServingRun(workload, scheduler, options)

    def in_time(self, scheduler: str, rate: float, seed: int) -> float:
        """The part of the requests in time."""
        return summarize_serving(self.run(scheduler, rate, seed)())["slo_hit_rate"] or 0.0

    def held(self, scheduler: str, part: float, seed: int) -> float:
        """The highest rate that has this part in time."""
        return held_rate(lambda rate: self.in_time(scheduler, rate, seed), part, 0.7 * self.bound, 0.03).rate


TRAFFIC = Ground("loki-traffic", 1500, 296.0)
BOTH = Ground("loki-both-tight", 1500, 293.0)
HELD = (
    (TRAFFIC, 190.0, 215.0),
    (BOTH, 175.0, 205.0),
    (Ground("compass-edge", 1000, 5.02, 1.5), 3.0, 4.2),
    (Ground("compass-edge", 1000, 5.02, 2.5), 3.8, 4.6),
)
"""Grounds with the rates that are promised at 99 % and at 90 % in time."""

STALE = Ground("loki-traffic", 1500, 296.0, stale_seconds=0.1)


def measure(scheduler: str, seeds: tuple[int, ...], *, quick: bool) -> Iterator[Result]:
    """All rows, in turn."""
    for ground, most, many in HELD[: 1 if quick else None]:
        for part, target in ((0.99, most), (0.9, many)):
            rates = [ground.held(scheduler, part, seed) for seed in seeds]
            yield _of_bound(f"{ground.name}: {part:.0%} in time", "requests/s", rates, ground.bound, target)
    beyond = [TRAFFIC.in_time(scheduler, 300.0, seed) for seed in seeds]
    yield _of_bound(f"{TRAFFIC.name}: in time at 300/s", "of all", beyond, TRAFFIC.bound / 300.0, 0.5)
    if quick:
        return
    fresh, old = ([ground.held(scheduler, 0.99, seed) for seed in seeds] for ground in (TRAFFIC, STALE))
    yield Result(
        f"{STALE.name}: 99% in time", "requests/s", mean(old), "fresh news", mean(fresh), mean(old) / mean(fresh), 0.9,
        spread(old),
    )  # fmt: skip
    yield from without_slo(scheduler, seeds)


def without_slo(scheduler: str, seeds: tuple[int, ...]) -> Iterator[Result]:
    """The slow-down where there is no SLO, against `compass`, and what a decision takes."""
    for workers, rate, promised in ((5, 4.0, 2.4), *((many, 40.0, 1.1) for many in (60, 100, 140, 240))):
        ours, theirs = ([_without_slo(name, workers, rate, seed) for seed in seeds] for name in (scheduler, "compass"))
        kinds: tuple[tuple[Literal["mean", "p50"], float | None], ...] = (
            ("mean", promised), ("p50", 1.01 if workers > 5 else None),
        )  # fmt: skip
        for kind, target in kinds:
            reached, peer = ([each["slowdown"][kind] or 0.0 for each in runs] for runs in (ours, theirs))
            promise = None if target is None else mean(peer) / target
            yield Result(
                f"compass-edge, {workers} workers, {rate:g}/s, no SLO: {kind} slow-down", "times", mean(reached),
                "compass", mean(peer), mean(peer) / mean(reached), promise, spread(reached),
            )  # fmt: skip
    for scenario, workers, rate, target in (("loki-traffic", 8, 150.0, 50e-6), ("compass-edge", 1000, 40.0, 200e-6)):
        options = ServingOptions(seed=seeds[0])
        run = ServingRun(ServingWorkload(scenario, workers=workers, requests=1500, rate=rate), scheduler, options)
        seconds = summarize_serving(run())["decision_seconds"]["p50"] or 0.0
        yield Result(f"{scenario}, {workers} workers: decision, median", "s", seconds, target=target)


def _without_slo(scheduler: str, workers: int, rate: float, seed: int) -> ServingSummary:
    workload = ServingWorkload("compass-edge", "clients", workers, 1000, rate)
    return summarize_serving(ServingRun(workload, scheduler, ServingOptions(seed=seed))())


def ablation(scheduler: str, seeds: tuple[int, ...], *, quick: bool) -> Iterator[Result]:
    """The rate at 90 % in time with each part taken away, against that of the whole."""
    for ground, _, _ in HELD[: 1 if quick else None]:
        whole = [ground.held(scheduler, 0.9, seed) for seed in seeds]
        for part in PARTS:
            joint = "," if ":" in scheduler else ":"
            rates = [ground.held(f"{scheduler}{joint}{part}", 0.9, seed) for seed in seeds]
            yield Result(
                f"{ground.name}: 90% in time, {part}", "requests/s", mean(rates), "all parts", mean(whole),
                mean(rates) / mean(whole), None, spread(rates) if all(rates) else None,
            )  # fmt: skip


def _of_bound(name: str, unit: str, reached: list[float], bound: float, target: float) -> Result:
    ratio = mean(reached) / bound
    wide = spread(reached) if all(reached) else None
    return Result(name, unit, mean(reached), "bound", bound, ratio, target / bound, wide, {"each": reached})


def main(
    destination: Annotated[str | None, typer.Option("--json", help="Write the results here, - for stdout.")] = None,
    scheduler: Annotated[str, typer.Option(help="The scheduler, with its options.")] = "fairway",
    seeds: Annotated[str, typer.Option(help="The seeds that a figure is the mean of.")] = "1,2,3",
    no_slo: Annotated[
        bool, typer.Option("--no-slo", help="Only what has no SLO, and how long decisions take.")
    ] = False,
    parts: Annotated[bool, typer.Option("--ablation", help="Take each part of the scheduler away.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="One ground only, to see that it runs.")] = False,
) -> None:
    """Measure, and print a table."""
    chosen = tuple(int(seed) for seed in seeds.split(","))
    if no_slo:
        show("joined", without_slo(scheduler, chosen), destination)
        return
    rows = ablation if parts else measure
    show("joined", rows(scheduler, chosen, quick=quick), destination)


if __name__ == "__main__":
    typer.run(main)
