"""What comes of every configurator with every placer, and of every placer alone, on the same machines and requests?

A scheduler is put together from parts: who plans, a configurator, a placer. Each combination runs on both built-in
scenarios; a row has the part of the requests in time, and beside it the mean slow-down or what a thousand requests
cost, as means over the seeds. `--markdown` prints the two tables of the documentation. Aquatope is `aquatope:exact`,
what a perfect search of its kind would find: its own takes minutes for each application.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean
from typing import Annotated

import typer

from benchmarks._report import Result, show
from fairway.configure.configurators import CONFIGURATORS
from fairway.place.placers import BATCH_PLACERS, PLACERS
from fairway.report.serving.metrics import ServingSummary, summarize_serving
from fairway.sim.comparison import compare
from fairway.sim.serving import ServingOptions
from fairway.sim.serving_workload import EsgApps, ServingRun, ServingWorkload

SEEDS = (1, 2)
ALONE = "no configurator"
OPTIONS_OF = {"aquatope": "aquatope:exact"}

_WARMUP_SECONDS, _DURATION_SECONDS = 10.0, 60.0


@dataclass(frozen=True, slots=True)
class Ground:
    """A scenario and its requests; `beside` is the number that stands beside requests in time, in this unit."""

    name: str
    workload: ServingWorkload | EsgApps
    options: ServingOptions
    beside: str
    unit: str

    def number(self, run: ServingSummary) -> float:
        """What stands beside requests in time."""
        found = run["slowdown"]["mean"] if self.beside == "mean_slowdown" else run["cost_per_1000_requests"]
        return float("nan") if found is None else found


def grounds(*, quick: bool) -> tuple[Ground, Ground]:
    """Both scenarios: 400 requests at 2 per second on 5 workers, and a minute of moderate deadlines at normal load."""
    warmup, duration = (2.0, 5.0) if quick else (_WARMUP_SECONDS, _DURATION_SECONDS)
    requests = 40 if quick else 400
    return (
        Ground(
            "compass-edge",
            ServingWorkload("compass-edge", "poisson", 5, requests, 2.0),
            ServingOptions(),
            "mean_slowdown",
            "×",
        ),
        Ground(
            "esg-apps",
            EsgApps("normal", "moderate", seconds=warmup + duration),
            ServingOptions(noise=0.08, window=(warmup, warmup + duration), drain_seconds=120.0, keep_runs=True),
            "dollars_per_1000",
            "$",
        ),
    )


def combinations() -> Iterator[tuple[str, str, str]]:
    """Every row of the tables, every column, and the scheduler that stands there."""
    for placer in PLACERS:
        yield ALONE, placer, placer
    for configurator in CONFIGURATORS:
        named = OPTIONS_OF.get(configurator, configurator)
        for placer in BATCH_PLACERS:
            yield named, placer, f"{named}+{placer}"


def measure(ground: Ground, seeds: Sequence[int], schedulers: Sequence[str]) -> Iterator[Result]:
    """A row for each scheduler."""
    runs = [
        ServingRun(ground.workload, scheduler, replace(ground.options, seed=seed))
        for scheduler in schedulers
        for seed in seeds
    ]
    summaries = [summarize_serving(record) for record in compare(runs)]
    for place, scheduler in enumerate(schedulers):
        own = summaries[place * len(seeds) : (place + 1) * len(seeds)]
        in_time = [100 * (each["slo_hit_rate"] or 0.0) for each in own]
        yield Result(
            f"{scheduler} on {ground.name}: in time",
            "%",
            mean(in_time),
            extra={
                "scheduler": scheduler,
                "scenario": ground.name,
                ground.beside: mean(map(ground.number, own)),
                "completed": sum(each["completed"] for each in own),
                "requests": sum(each["requests"] for each in own),
                "range": max(in_time) - min(in_time),
            },
        )


def markdown(ground: Ground, results: Mapping[str, Result]) -> str:
    """The table of a scenario: a row for each configurator, a column for each placer."""
    rows = dict.fromkeys(row for row, _, _ in combinations())
    cells = {(row, column): results.get(scheduler) for row, column, scheduler in combinations()}
    beside = "mean slow-down" if ground.beside == "mean_slowdown" else "$ per 1,000"
    lines = [
        "| " + " | ".join((f"{ground.name}: in time (%), {beside}", *(f"`{name}`" for name in BATCH_PLACERS))) + " |",
        "|---" + "|--:" * len(BATCH_PLACERS) + "|",
    ]
    for row in rows:
        shown = [_cell(ground, cells.get((row, column))) for column in BATCH_PLACERS]
        lines.append("| " + " | ".join((row if row == ALONE else f"`{row}`", *shown)) + " |")
    return "\n".join(lines)


def _cell(ground: Ground, result: Result | None) -> str:
    return "" if result is None else f"{result.ours:.1f}, {result.extra[ground.beside]:.2f}"


def command(
    destination: Annotated[str | None, typer.Option("--json", help="Write the results here, - for stdout.")] = None,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print the tables of the documentation.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes and one seed, to see that it runs.")] = False,
) -> None:
    """Run every combination of parts on both scenarios."""
    seeds = SEEDS[:1] if quick else SEEDS
    schedulers = [scheduler for _, _, scheduler in combinations()]
    kept: list[tuple[Ground, dict[str, Result]]] = [(ground, {}) for ground in grounds(quick=quick)]

    def measured() -> Iterator[Result]:
        for ground, found in kept:
            for result in measure(ground, seeds, schedulers):
                found[result.extra["scheduler"]] = result
                yield result

    show("serving_parts", measured(), destination)
    if as_markdown:
        sys.stdout.write("\n\n".join(markdown(ground, found) for ground, found in kept) + "\n")


if __name__ == "__main__":
    typer.run(command)
