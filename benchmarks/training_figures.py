"""How long do jobs take, against what the authors of Gavel published, and under our engine instead of their mechanism?

The rows of Gavel's evaluation run with the original's mechanism (`--compat gavel`): jobs 4000 to 4999 of seed 0 on 36
accelerators of each of three types, mean completion time in hours; and 300 jobs at once, makespan. The peer is the
authors' own figure, recorded in the notebooks of their repository; at 2.6 multi-GPU jobs per hour their repository
as it is now does not give it, so that the rows there have other peers: what was promised, and their simulator as
others ran it. `within` is the relative difference that we promise.

Then the same jobs and policy under our engine, with and without a restart cost, with space sharing, and how much of the
benefit of space sharing is left when only a fifth of the co-location rates is measured (4 accelerators of each type,
jobs 100 to 349). `--only rates` makes the table of the rates that every policy sustains, and with `--figure` a page of
it; it takes hours, so it is not part of the rest, and `--points FILE` goes on where an earlier run has stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import mean
from typing import Annotated

import numpy as np
import typer

from benchmarks._recorded_runs import differences
from benchmarks._report import Result, show
from benchmarks._training_rates import Points, curves, draw, rows
from benchmarks._training_runs import WINDOW, mean_hours, run
from fairway.cluster import Cluster
from fairway.sim.profiling import Profiling
from fairway.sim.submissions import TrainingOptions

COMPAT = TrainingOptions(window=WINDOW, compat="gavel")
OURS = TrainingOptions(window=WINDOW)
REFERENCE = "a reference simulation written separately"
THEIR_CODE = "the authors' simulator, run by others (github.com/Turquoise-T/cs244c-GPU_fragment)"


@dataclass(frozen=True, slots=True)
class Published:
    """A figure of the authors, and how close we promise to come."""

    jobs: str
    policy: str
    hours: float
    within: float = 0.05
    who: str = "the authors"


ROWS = (
    Published("rate=4.0,seed=0", "max-min-fairness", 16.82),
    Published("rate=4.0,seed=0", "max-min-fairness:agnostic", 23.49),
    Published("rate=4.0,seed=0", "fifo", 17.08),
    Published("rate=5.6,seed=0", "max-min-fairness", 28.96),
    Published("rate=5.6,seed=0", "max-min-fairness:agnostic", 95.99),
    Published("rate=5.6,seed=0", "fifo", 104.12),
    Published("rate=2.6,multi-gpu,seed=0", "max-min-fairness", 30.3, who=f"{REFERENCE} (authors 36.44)"),
    Published("rate=2.6,multi-gpu,seed=0", "max-min-fairness:agnostic", 70.7, who=f"{REFERENCE} (authors 70.54)"),
    Published("rate=2.6,multi-gpu,seed=0", "max-min-fairness", 34.30, who=THEIR_CODE),
    Published("rate=2.6,multi-gpu,seed=0", "max-min-fairness:agnostic", 70.54, who=THEIR_CODE),
)


def quickly() -> Iterator[Result]:
    asked = TrainingOptions(window=(50, 80), compat="gavel")
    yield Result("quick run", "h", mean_hours(run("rate=4.0,seed=0", "max-min-fairness", asked)))


def published() -> Iterator[Result]:
    """The rows of Gavel's evaluation with the original's mechanism."""
    hours = cache(lambda jobs, policy: mean_hours(run(jobs, policy, COMPAT)))
    for row in ROWS:
        yield _compared(row, hours(row.jobs, row.policy))
    yield static()


def recorded() -> Iterator[Result]:
    """How far we are from the recorded runs of the original's own simulator."""
    found = list(differences())
    _, times, makespans = zip(*found, strict=True)
    for name, column in (("completion times", times), ("makespans", makespans)):
        sizes = [100 * abs(difference) for difference in column]
        yield Result(f"recorded runs: {name} differ by, mean", "%", mean(sizes), target=3.0, extra={"runs": len(found)})
        yield Result(f"recorded runs: {name} differ by, most", "%", max(sizes), target=8.0)


def _compared(row: Published, hours: float) -> Result:
    return Result(
        f"as the original: {row.policy}, {row.jobs}",
        "h",
        hours,
        peer_name=row.who,
        peer=row.hours,
        ratio=row.hours / hours,
        extra={
            "difference": hours / row.hours - 1,
            "within": row.within,
            "met": abs(hours / row.hours - 1) <= row.within,
        },
    )


def static() -> Result:
    """The mean over three seeds, as the authors'."""
    ends = [
        run(f"jobs=300,lam=0,multi-gpu,seed={seed}", "makespan", TrainingOptions(compat="gavel", seed=seed))
        for seed in range(3)
    ]
    row = Published("300 jobs at once, multi-gpu, seeds 0-2", "makespan", 161.2, 0.08)
    return _compared(row, mean(record.makespan_seconds for record in ends) / 3600)


def our_engine() -> Iterator[Result]:
    for jobs, bound in (("rate=4.0,seed=0", 16.9), ("rate=2.6,multi-gpu,seed=0", 29.0)):
        record = run(jobs, "max-min-fairness", OURS)
        yield Result(
            f"our engine: max-min-fairness, {jobs}",
            "h",
            mean_hours(record),
            target=bound,
            extra={"preemptions_per_job": float(record.jobs.preemptions.mean())},
        )
    free, charged = (
        mean_hours(run("rate=5.6,seed=0", "max-min-fairness", TrainingOptions(window=WINDOW, restart_seconds=seconds)))
        for seconds in (0.0, 30.0)
    )
    yield Result(
        "our engine: lost by restarts of 30 s, rate=5.6,seed=0",
        "%",
        100 * (charged / free - 1),
        target=10.0,
        extra={"hours_without": free, "hours_with": charged},
    )


def sharing() -> Iterator[Result]:
    """Max-min fairness with space sharing under our engine."""
    for jobs, bound in (("rate=5.6,seed=0", 19.0), ("rate=2.8,multi-gpu,seed=0", 27.0)):
        yield _fair("max-min-fairness:space-sharing", jobs, bound)


def shortest_mean() -> Iterator[Result]:
    """`min-jct` on the same jobs: the mean and the job that is worst off against an equal share."""
    for jobs, bound in (("rate=5.6,seed=0", 17.5), ("rate=6.0,seed=0", 18.5), ("rate=2.8,multi-gpu,seed=0", 21.5)):
        yield _fair("min-jct:space-sharing", jobs, bound)


def whole_jobs() -> Iterator[Result]:
    """Policies that choose which jobs run, and share no time out."""
    for policy, bound in (("allox", 25.3), ("shortest-job-first", 32.0)):
        yield _fair(policy, "rate=5.6,seed=0", bound)


def _fair(policy: str, jobs: str, bound: float | None, what: str = "", **fields: object) -> Result:
    record = run(jobs, policy, replace(OURS, **fields))  # type: ignore[arg-type]
    counted, taken = record.jobs.counted, record.jobs.finish - record.jobs.arrival
    return Result(
        f"our engine: {policy}, {jobs}{what and ', '}{what}",
        "h",
        mean_hours(record),
        target=bound,
        extra={
            "worst_rho": float(np.nanmax((taken / record.jobs.isolated_seconds)[counted])),
            "preemptions_per_job": float(record.jobs.preemptions[counted].mean()),
        },
    )


IGNORANT_HOURS = {"lengths are unknown": 17.8, "80 % of pair rates are unknown": 18.5}
IGNORANCE: Mapping[str, Mapping[str, object]] = {
    "all is known": {},
    "restarts take 30 s": {"restart_seconds": 30.0},
    "lengths are unknown": {"hide_lengths": True},
    "80 % of pair rates are unknown": {"profiling": Profiling(0.2, 16)},
    "lengths are wrong by a factor of up to 100": {"wrong_lengths": 100.0},
    "80 % of pair rates are unknown and never measured": {"profiling": Profiling(0.2, 16, watches=False)},
    "lengths and 80 % of pair rates are unknown": {"hide_lengths": True, "profiling": Profiling(0.2, 16)},
}


def ignorance() -> Iterator[Result]:
    """What each kind of ignorance costs `min-jct:space-sharing` at 5.6 jobs per hour, and where more come than fit."""
    for name, fields in IGNORANCE.items():
        yield _fair("min-jct:space-sharing", "rate=5.6,seed=0", IGNORANT_HOURS.get(name), name, **fields)


def estimates() -> Iterator[Result]:
    cluster, kept = Cluster({"v100": 4, "p100": 4, "k80": 4}), []
    for seed in range(3):
        jobs = f"jobs=400,rate=0.9,seed={seed}"
        alone, known, estimated = (
            mean_hours(run(jobs, policy, TrainingOptions(window=(100, 350), profiling=profiling, seed=seed), cluster))
            for policy, profiling in (
                ("max-min-fairness", None),
                ("max-min-fairness:space-sharing", None),
                ("max-min-fairness:space-sharing", Profiling(0.2, 16)),
            )
        )
        kept.append((alone - estimated) / (alone - known))
    yield Result(
        "benefit of space sharing lost by estimating 80 % of it",
        "%",
        100 * (1 - mean(kept)),
        target=10.0,
        extra={"kept_by_seed": kept},
    )


PARTS: Mapping[str, Callable[[], Iterator[Result]]] = {
    "recorded": recorded,
    "published": published,
    "engine": our_engine,
    "sharing": sharing,
    "min-jct": shortest_mean,
    "whole-jobs": whole_jobs,
    "ignorance": ignorance,
    "estimates": estimates,
}


def _rates(figure: Path | None, points: Path | None, seed: int, *, quick: bool) -> Iterator[Result]:
    found = []
    for curve in curves(quick=quick, seed=seed, points=Points(points)):
        found.append(curve)
        yield from rows(curve)
    if figure is not None:
        draw(found, figure)


def main(
    destination: Annotated[str | None, typer.Option("--json", help="Write the results here, - for stdout.")] = None,
    only: Annotated[list[str] | None, typer.Option(help=f"One of the parts: {', '.join(PARTS)}, rates.")] = None,
    figure: Annotated[Path | None, typer.Option(help="Draw the rates into this HTML file.")] = None,
    points: Annotated[
        Path | None, typer.Option(help="Keep each point of the rates in this file, and measure only what is missing.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Few jobs, to see that it runs; no targets.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Other jobs, for the rates.")] = 0,
) -> None:
    chosen = set(only or PARTS)
    if unknown := sorted(chosen - {*PARTS, "rates"}):
        raise typer.BadParameter(
            f"'{unknown[0]}' given, expected one of {', '.join(PARTS)}, rates", param_hint="--only"
        )
    for path, hint, does in ((figure, "--figure", "draws the rates"), (points, "--points", "keeps the rates")):
        if path is not None and "rates" not in chosen:
            raise typer.BadParameter(f"{does}; add --only rates", param_hint=hint)
    parts = [part() for name, part in PARTS.items() if name in chosen]
    if quick:
        parts = [quickly()] if only is None else []
    if "rates" in chosen:
        parts.append(_rates(figure, points, seed, quick=quick))
    show("training_figures", (result for part in parts for result in part), destination)


if __name__ == "__main__":
    typer.run(main)
