"""`fairway compare A B`: whether two policies of a sweep differ, run by run."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from fairway.cli.output import STDOUT, write_json


def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="A policy or scheduler of the sweep.", show_default=False)],
    b: Annotated[str, typer.Argument(metavar="B", help="Another one.", show_default=False)],
    results: Annotated[
        str, typer.Option("--in", metavar="FILE.parquet", help="The results of [bold]fairway sweep[/bold].")
    ] = "sweep.parquet",
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="What to compare, as in jct_p99 or cost_dollars; the mean time otherwise.",
            show_default=False,
        ),
    ] = None,
    json_to: Annotated[
        str | None, typer.Option("--json", metavar="-|FILE", help="Print as JSON (-), or write it to a file.")
    ] = None,
) -> None:
    """Say whether two policies of a sweep differ: runs that differ in nothing else are paired.

    The ratio is the geometric mean of B over A, with its 95 % interval; p is that of Wilcoxon's signed-rank test.

    [bold]Examples[/bold]

    fairway compare fifo max-min-fairness

    fairway compare compass jit --in results.parquet --metric latency_p99
    """
    from fairway.extras import require

    require("polars")
    from fairway.experiments.analysis import compared
    from fairway.experiments.results import read_rows

    found = compared(read_rows(Path(results)), a, b, metric)
    if json_to is not None:
        write_json(
            {
                "a": a, "b": b, "metric": found.column, "pairs": found.pairs, "ratio": found.ratio,
                "interval": [found.low, found.high], "b_lower": found.lower, "p": found.p,
            },
            json_to,
        )  # fmt: skip
    if json_to != STDOUT:
        typer.echo(_sentence(a, b, found.column, found.ratio, found.low, found.high))
        chance = "too few runs for a test" if math.isnan(found.p) else f"p = {found.p:.2g} (Wilcoxon signed-rank)"
        typer.echo(f"{found.pairs} pairs of runs; {b} is lower in {found.lower} of them; {chance}")


def _sentence(a: str, b: str, column: str, ratio: float, low: float, high: float) -> str:
    interval = "" if math.isnan(low) else f" (95 % interval {low:.3g} to {high:.3g})"
    return f"{column} of {b} is {ratio:.3g} times that of {a}{interval}"
