"""`fairway reproduce`: runs a published experiment and prints ours beside the figures of others, and whose they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from fairway.cli import completion
from fairway.cli.output import STDOUT, write_json
from fairway.cli.simulate.options import JsonTo, Processes, Quiet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairway.experiments.published import PublishedExperiment, ReproducedRow


def reproduce(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="The experiment; without a name, they are listed.",
            autocompletion=completion.published,
            show_default=False,
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A small part of it, to see that it runs: no figures beside ours.")
    ] = False,
    processes: Processes = None,
    json_to: JsonTo = None,
    quiet: Quiet = False,
) -> None:
    """Run a published experiment, and print ours beside the published figures.

    Each says where its figures come from. Streams of jobs and requests are drawn as the originals draw them, so nothing
    has to be fetched. Those of Gavel take minutes, the others less.

    [bold]Examples[/bold]

    fairway reproduce

    fairway reproduce compass-scalability

    fairway reproduce gavel-single-gpu --quick
    """
    from fairway.experiments.published import EXPERIMENTS, distinct_runs, experiment_of
    from fairway.experiments.published import reproduce as run

    if name is None:
        if json_to is not None:
            write_json({each.name: each.about for each in EXPERIMENTS.values()}, json_to)
        if json_to != STDOUT:
            for each in EXPERIMENTS.values():
                typer.echo(f"{each.name:20} {each.about}")
        return
    experiment = experiment_of(name)
    from fairway.cli.first_use import tell_of_compiling
    from fairway.cli.simulate.progress import watching

    tell_of_compiling()
    rows = experiment.rows(quick)
    count = len(distinct_runs(rows))
    labels = [f"run {number} of {count}" for number in range(1, count + 1)]
    with watching(labels, None, shown=not quiet, told=lambda now: f"ended, {now:,.0f} s of virtual time") as watcher:
        found = run(name, quick=quick, processes=processes, watcher=watcher)
    if json_to is not None:
        write_json(_document(experiment, found, quick=quick), json_to)
    if json_to != STDOUT:
        _print(experiment, found, quick=quick)


def _document(experiment: PublishedExperiment, rows: Sequence[ReproducedRow], *, quick: bool) -> dict[str, object]:
    return {
        "experiment": experiment.name,
        "source": experiment.source,
        "note": experiment.note,
        "quick": quick,
        "rows": [
            {
                "name": row.name,
                "unit": row.unit,
                "ours": row.ours,
                "theirs": row.figure,
                "difference": row.difference,
            }
            for row in rows
        ],
    }


def _print(experiment: PublishedExperiment, rows: Sequence[ReproducedRow], *, quick: bool) -> None:
    from rich.console import Console
    from rich.table import Table

    from fairway.report.training.comparison import digits

    table = Table("", "ours", "theirs", "difference", box=None, pad_edge=False)
    for row in rows:
        theirs = "" if row.figure is None else f"{digits(row.figure)} {row.unit}"
        off = "" if row.difference is None else f"{100 * row.difference:+.1f} %"
        table.add_row(row.name, f"{digits(row.ours)} {row.unit}", theirs, off)
    console = Console(highlight=False)
    console.print(experiment.about, markup=False)
    console.print(table)
    console.print(f"theirs: {experiment.source}", markup=False)
    if experiment.note:
        console.print(experiment.note, markup=False)
    if quick:
        console.print("Only a small part was run (--quick), of which there are no published figures.")
