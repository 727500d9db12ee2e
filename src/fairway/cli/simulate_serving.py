"""`fairway simulate serving`: runs requests for workflows under one or more schedulers and compares what comes of it.

Whatever can be refused is refused before the first run starts: what is wrong with the options, the schedulers, the
scenario, the trace, and the files that the results go to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from fairway.cli.output import STDOUT, write_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairway.report.serving_metrics import ServingSummary


def serving(
    scenario: Annotated[
        str,
        typer.Option(
            metavar="NAME|FILE.yaml",
            help="Workflows and workers: [bold]compass-edge[/bold], [bold]trace-models[/bold] (one workflow for each "
            "model of a trace), or a file.",
            rich_help_panel="What to run",
        ),
    ] = "compass-edge",
    scheduler: Annotated[
        list[str] | None,
        typer.Option(
            "--scheduler",
            "-s",
            metavar="NAME[:OPTION,...]",
            help="compass, jit, heft or hash, repeatable, with options such as compass:no-adjust. compass otherwise.",
            show_default=False,
            rich_help_panel="What to run",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="How many workers; the scenario's own otherwise.",
            show_default=False,
            rich_help_panel="What to run",
        ),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            metavar="R",
            help="Requests per second, all workflows together: 2 otherwise, or a trace's own.",
            show_default=False,
            rich_help_panel="What to run",
        ),
    ] = None,
    arrivals: Annotated[
        str,
        typer.Option(
            metavar="KIND",
            help="poisson, uniform, gamma:CV (bursts), clients (one for each workflow), or trace:FILE.",
            rich_help_panel="What to run",
        ),
    ] = "poisson",
    requests: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="How many requests: 1000 otherwise, or all of a trace.",
            show_default=False,
            rich_help_panel="What to run",
        ),
    ] = None,
    seed: Annotated[
        list[int] | None,
        typer.Option(
            metavar="N",
            help="The seed of all that is drawn, repeatable; 0 otherwise.",
            show_default=False,
            rich_help_panel="What to run",
        ),
    ] = None,
    slo_scale: Annotated[
        float,
        typer.Option(
            metavar="X",
            help="Multiplies the time within which requests should be answered: twice the lower bound of a workflow, "
            "or what the scenario says.",
            rich_help_panel="How to run it",
        ),
    ] = 1.0,
    staleness: Annotated[
        str | None,
        typer.Option(
            metavar="load=TIME,cache=TIME",
            help="How old what workers know of each other is; load=1ms,cache=1ms otherwise.",
            show_default=False,
            rich_help_panel="How to run it",
        ),
    ] = None,
    noise: Annotated[
        float,
        typer.Option(
            metavar="CV",
            help="Lognormal noise of run times: its coefficient of variation.",
            rich_help_panel="How to run it",
        ),
    ] = 0.0,
    eviction: Annotated[
        str | None,
        typer.Option(
            metavar="free|copies",
            help="Whether a model that has to go is copied back first; as in the scenario otherwise.",
            show_default=False,
            rich_help_panel="How to run it",
        ),
    ] = None,
    nic_queues: Annotated[
        bool,
        typer.Option("--nic-queues", help="Let a host send one message at a time.", rich_help_panel="How to run it"),
    ] = False,
    fail: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WORKER@TIME[-TIME]",
            help="Let a worker fail, and come back: w2@10s-25s. Repeatable.",
            show_default=False,
            rich_help_panel="How to run it",
        ),
    ] = None,
    detection: Annotated[
        str, typer.Option(metavar="TIME", help="When the others notice a failure.", rich_help_panel="How to run it")
    ] = "300ms",
    discard: Annotated[
        float,
        typer.Option(
            metavar="PART",
            help="The first part of the requests, which averages leave out.",
            rich_help_panel="How to run it",
        ),
    ] = 0.1,
    processes: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Runs at the same time; one per core otherwise.",
            show_default=False,
            rich_help_panel="How to run it",
        ),
    ] = None,
    json_to: Annotated[
        str | None,
        typer.Option(
            "--json",
            metavar="-|FILE",
            help="Print JSON instead of the table (-), or write it to a file.",
            show_default=False,
            rich_help_panel="Results",
        ),
    ] = None,
    report: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.html",
            help="Write one page with charts, which opens without a network.",
            show_default=False,
            rich_help_panel="Results",
        ),
    ] = None,
    quiet: Annotated[
        bool,
        typer.Option("--quiet", "-q", help="Print results and errors only.", rich_help_panel="Results"),
    ] = False,
) -> None:
    """Run requests for workflows under one or more schedulers, and compare.

    [bold]Examples[/bold]

    fairway simulate serving --rate 3 -s compass -s jit -s hash

    fairway simulate serving --workers 140 --rate 40 --arrivals clients --seed 42
    --seed 43 -s compass --report report.html

    fairway simulate serving --scenario scenario.yaml --arrivals gamma:4 --rate 20
    --staleness load=10ms,cache=100ms --fail w2@10s-25s --json -
    """
    from fairway.cli import simulate_serving_options as options
    from fairway.cli.simulate_training_options import check_outputs

    check_outputs(json_to, report)
    asked = options.Asked(
        scenario=scenario,
        schedulers=tuple(scheduler or ("compass",)),
        workers=workers,
        rate=rate,
        arrivals=arrivals,
        requests=requests,
        slo_scale=slo_scale,
        staleness=staleness,
        noise=noise,
        discard=discard,
        eviction=eviction,
        nic_queues=nic_queues,
        fail=tuple(fail or ()),
        detection=detection,
        seeds=tuple(seed or ()),
        processes=processes,
        keep_runs=report is not None,
    )
    plan = options.plan_of(asked)
    if not quiet:
        for note in plan.notes:
            typer.echo(note, err=True)

    from fairway.cli.simulate_progress import watching
    from fairway.report.serving_metrics import summarize_serving
    from fairway.sim.comparison import compare

    with watching(plan.labels, plan.requests, shown=not quiet, told=lambda now: f"requests, {now:.0f} s") as watcher:
        records = compare(plan.runs, processes=processes, watcher=watcher)
    summaries = [summarize_serving(record) for record in records]
    if not quiet:
        _warn(summaries)
    if json_to is not None:
        write_json({"runs": summaries}, json_to)
    if report is not None:
        from fairway.report.serving_page import write_serving_page

        write_serving_page(records, report, command=asked.command())
    if json_to != STDOUT:
        from rich.console import Console

        from fairway.report.serving_table import serving_table

        Console(highlight=False).print(serving_table(summaries))


def _warn(summaries: Sequence[ServingSummary]) -> None:
    """Say on standard error what a reader of the averages alone could miss."""
    for run in summaries:
        if run["refused"]:
            first = f"; the first: {run['refusals'][0]}" if run["refusals"] else ""
            typer.echo(f"fairway: warning: {run['scheduler']}: {run['refused']} requests were refused{first}", err=True)
