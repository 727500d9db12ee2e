"""What all commands of `fairway simulate` share: options, and the version that goes into the settings of a run."""

from __future__ import annotations

from typing import Annotated

import typer

Processes = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Runs at the same time; one per core otherwise.",
        show_default=False,
        rich_help_panel="How to run it",
    ),
]
JsonTo = Annotated[
    str | None,
    typer.Option(
        "--json",
        metavar="-|FILE",
        help="Print JSON instead of the table (-), or write it to a file.",
        show_default=False,
        rich_help_panel="Results",
    ),
]
Report = Annotated[
    str | None,
    typer.Option(
        metavar="FILE.html",
        help="Write one page with charts, which opens without a network.",
        show_default=False,
        rich_help_panel="Results",
    ),
]
Save = Annotated[
    str | None,
    typer.Option(
        metavar="FILE.fairway",
        help="Save the runs with all that happened in them, to look at with [bold]fairway open[/bold].",
        show_default=False,
        rich_help_panel="Results",
    ),
]
Perfetto = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Write a timeline for Perfetto's viewer; of the first run, if there are several.",
        show_default=False,
        rich_help_panel="Results",
    ),
]
JobsTo = Annotated[
    str | None,
    typer.Option(
        "--jobs",
        metavar="FILE.csv|.parquet",
        help="Write a table with a row for each job: wait, run, preemptions, accelerator seconds by type, cost, rho, "
        "team.",
        show_default=False,
        rich_help_panel="Results",
    ),
]
RequestsTo = Annotated[
    str | None,
    typer.Option(
        "--requests-to",
        metavar="FILE.csv|.parquet",
        help="Write a table with a row for each request: latency, wait, slowdown, in time or not, cost.",
        show_default=False,
        rich_help_panel="Results",
    ),
]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="Print results and errors only.", rich_help_panel="Results"),
]


def installed_version() -> str:
    """The version of Fairway that runs."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("fairway")
    except PackageNotFoundError:  # run from its source, without being installed
        return "unknown"
