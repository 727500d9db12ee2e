"""`fairway sweep`: runs every policy at every load with every seed on every cluster, into one file of results."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairway.cli.simulate.options import Processes, Quiet, Report
from fairway.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairway.experiments.results import Results
    from fairway.experiments.sweep import Sweep

_WHAT = "What to run"


def sweep(
    file: Annotated[
        str | None,
        typer.Argument(metavar="[FILE.yaml]", help="A sweep file; options go before it.", show_default=False),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policy", "-p", metavar="NAME[:OPTION,...]", help="Policies of training.", rich_help_panel=_WHAT
        ),
    ] = None,
    scheduler: Annotated[
        list[str] | None,
        typer.Option("--scheduler", "-s", metavar="NAME[+NAME]", help="Schedulers of serving.", rich_help_panel=_WHAT),
    ] = None,
    rate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="X,...",
            help="Loads: jobs per hour, times as fast as a trace, or requests per second.",
            rich_help_panel=_WHAT,
        ),
    ] = None,
    seed: Annotated[
        list[str] | None,
        typer.Option(metavar="N,...", help="Seeds; 0,1,2 otherwise.", show_default=False, rich_help_panel=_WHAT),
    ] = None,
    cluster: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TYPE=COUNT,...|FILE",
            help="Clusters, repeatable; for serving, numbers of workers.",
            show_default=False,
            rich_help_panel=_WHAT,
        ),
    ] = None,
    generate: Annotated[
        str | None,
        typer.Option(
            metavar="KEY=VALUE,...",
            help="Generated jobs, without their rate.",
            show_default=False,
            rich_help_panel=_WHAT,
        ),
    ] = None,
    trace: Annotated[
        str | None, typer.Option(metavar="FILE", help="The jobs of a trace.", show_default=False, rich_help_panel=_WHAT)
    ] = None,
    scenario: Annotated[
        str | None,
        typer.Option(metavar="NAME|FILE", help="The scenario of serving.", show_default=False, rich_help_panel=_WHAT),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE,...",
            help="More settings, each varied over its values: round, restart; requests, slo-scale, noise, arrivals.",
            show_default=False,
            rich_help_panel=_WHAT,
        ),
    ] = None,
    to: Annotated[
        str, typer.Option(metavar="FILE.parquet", help="Where results go, row by row.", rich_help_panel="Results")
    ] = "sweep.parquet",
    processes: Processes = None,
    report: Report = None,
    quiet: Quiet = False,
) -> None:
    """Run every policy at every load with every seed on every cluster, and keep the results in one file.

    Results are kept as they come. Interrupted, the same command goes on where it was; the same sweep gives
    the same bytes. Needs the extra [bold]tables[/bold].

    [bold]Examples[/bold]

    fairway sweep -p fifo -p max-min-fairness --rate 2,4,6 --seed 0,1,2
    --generate jobs=1000,multi-gpu --cluster v100=36,p100=36,k80=36 --report sweep.html

    fairway sweep -s compass -s jit --rate 1,2,3,4 --option requests=1000

    fairway sweep experiment.yaml --to results.parquet
    """
    from fairway.cli.first_use import tell_of_compiling
    from fairway.cli.simulate.training_options import check_outputs
    from fairway.experiments.results import Results, complete

    check_outputs(None, report, to=to)
    if not to.endswith(".parquet"):
        raise InputError(f"--to: '{to}' given, expected the name of a .parquet file")
    if processes is not None and processes < 1:
        raise InputError(f"--processes: {processes} given, expected a whole number of at least 1")
    given: dict[str, Any] = {
        "policies": policy,
        "schedulers": scheduler,
        "rates": _numbers("--rate", rate, float),
        "seeds": _numbers("--seed", seed, int),
        "clusters": cluster,
        "generate": generate,
        "trace": trace,
        "scenario": scenario,
        "options": _options(option),
    }
    asked = _asked(file, {name: value for name, value in given.items() if value})
    from pathlib import Path

    results = Results(asked, Path(to))
    tell_of_compiling()
    if not quiet:
        typer.echo(_begin(results), err=True)
    try:
        with _bar(results, shown=not quiet) as told:
            complete(results, processes=processes, told=told)
    except KeyboardInterrupt:
        typer.echo(
            f"stopped; {to} has {len(results.rows)} of {len(results.points)} runs; the same command goes on", err=True
        )
        raise
    if report is not None:
        _write_report(asked, results, report)
    if not quiet:
        _print_summary(results)


def _asked(file: str | None, given: dict[str, Any]) -> Sweep:
    from fairway.experiments.sweep import Sweep, read_sweep

    return Sweep(**(dict(read_sweep(file)) | given if file is not None else given))


def _numbers(option: str, given: Sequence[str] | None, kind: type[float] | type[int]) -> list[float] | list[int]:
    """The numbers of `2,4,6`, however often the option was given."""
    found: list[Any] = []
    for text in ",".join(given or ()).split(","):
        if text.strip():
            try:
                found.append(kind(text))
            except ValueError:
                raise InputError(f"{option}: '{text}' given, expected numbers, as in {option} 0,1,2") from None
    return found


def _options(given: Sequence[str] | None) -> dict[str, list[str]]:
    options: dict[str, list[str]] = {}
    for one in given or ():
        name, equals, values = one.partition("=")
        if not equals or not values:
            raise InputError(f"--option: '{one}' given, expected NAME=VALUE,..., as in round=6m,12m")
        if name in options:
            raise InputError(f"--option: '{name}' given twice; write its values after one another, as in {one},…")
        options[name.strip()] = [value.strip() for value in values.split(",")]
    return options


def _begin(results: Results) -> str:
    kept = f", {results.begun} of them in {results.path} already" if results.begun else ""
    return f"{len(results.points)} runs{kept}"


class _bar:  # noqa: N801 - a context manager, used as a function
    """One bar for all runs, on a terminal only."""

    def __init__(self, results: Results, *, shown: bool) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        console = Console(stderr=True)
        self._shown = shown and console.is_terminal
        self._labels = [f"{point.name} at {point.rate:g}, seed {point.seed}" for point in results.points]
        self._progress = Progress(
            BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"), console=console
        )
        self._task = self._progress.add_task("", total=len(results.points), completed=results.begun)

    def __enter__(self) -> Any:
        if self._shown:
            self._progress.start()
        return lambda position: self._progress.update(self._task, advance=1, description=self._labels[position])

    def __exit__(self, *_: object) -> None:
        if self._shown:
            self._progress.stop()


def _write_report(asked: Sweep, results: Results, report: str) -> None:
    import json

    from fairway.cli.simulate.saving import save_runs
    from fairway.dashboard.of_loads import saved_sweep
    from fairway.experiments.analysis import page_curves, who_of

    rows = results.rows
    time = "mean JCT" if asked.is_training else "mean latency"
    about = f"{len(rows)} runs: {len(asked.rates)} loads, {len(asked.seeds)} seeds"
    run = saved_sweep(
        page_curves(rows),
        of=who_of(rows),
        time=time,
        load=asked.load_unit,
        about=about,
        settings={"fixed": json.loads(asked.fixed), "rates": list(asked.rates), "seeds": list(asked.seeds)},
    )
    save_runs([run], report=report, command=shlex.join(["fairway", *sys.argv[1:]]))


def _print_summary(results: Results) -> None:
    from rich.console import Console
    from rich.table import Table

    from fairway.experiments.analysis import curves, knee_of, time_of, who_of
    from fairway.report.training.comparison import SECONDS, digits, time_unit

    rows = results.rows
    by_name = curves(rows, time_of(rows))
    unit = time_unit(max((each.mean for curve in by_name.values() for each in curve.values()), default=0.0))
    loads = sorted({row["rate"] for row in rows})
    table = Table(who_of(rows), *(f"at {load:g} ({unit})" for load in loads), "knee", box=None, pad_edge=False)
    for name, curve in by_name.items():
        cells = [
            f"{digits(curve[load].mean / SECONDS[unit])}"
            + (f" ± {digits(curve[load].half / SECONDS[unit])}" if curve[load].count > 1 else "")
            if load in curve
            else ""
            for load in loads
        ]
        knee = knee_of(curve)
        table.add_row(name, *cells, "none" if knee is None else digits(knee))
    Console(highlight=False).print(table)
