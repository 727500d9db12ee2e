"""`fairway simulate training`: runs training jobs under one or more policies and compares what comes of it.

Whatever can be refused is refused before the first run starts: what is wrong with the options, the policies, the
cluster, the profiles, the trace, and the files that the results go to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from fairway.cli import completion
from fairway.cli.output import STDOUT, write_json
from fairway.cli.simulate.options import JobsTo, JsonTo, Perfetto, Processes, Quiet, Report, Save

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairway.report.training.record import TrainingRecord

_NAMES_IN_A_WARNING = 5


def training(
    cluster: Annotated[
        str,
        typer.Option(
            metavar="TYPE=COUNT,...|FILE",
            help="The machines: [bold]v100=36,p100=36,k80=36[/bold], a YAML file, or Alibaba's node list (.csv).",
            show_default=False,
            rich_help_panel="What to run",
        ),
    ],
    policy: Annotated[
        list[str],
        typer.Option(
            "--policy",
            "-p",
            autocompletion=completion.policies,
            metavar="NAME[:OPTION,...]",
            help="The policy, repeatable; [bold]fairway policies[/bold] lists them. A class of your own is "
            "[bold]module:Class[:option,...][/bold].",
            show_default=False,
            rich_help_panel="What to run",
        ),
    ],
    trace: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The jobs of a trace.", show_default=False, rich_help_panel="What to run"),
    ] = None,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="NAME",
            help="The trace's format: gavel, philly, helios, openb, pollux, pai, swf, csv, or a reader of your own as "
            "module:Class. Found by content otherwise.",
            show_default=False,
            rich_help_panel="What to run",
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="MEANING=COLUMN,...",
            help="Which column of a CSV means what: [bold]arrival=submit_time,duration=run_time,gpus=num_gpus[/bold]; "
            "also start, end, steps, id, type, weight, slo, team, user, accelerators, status.",
            show_default=False,
            rich_help_panel="What to run",
        ),
    ] = None,
    speed_up: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            help="Let the jobs of a trace come so many times as fast.",
            show_default=False,
            rich_help_panel="What to run",
        ),
    ] = None,
    fraction: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            help="Keep this part of the jobs of a trace, drawn with the seed.",
            show_default=False,
            rich_help_panel="What to run",
        ),
    ] = None,
    replicate: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Let every job of a trace come so many times.",
            show_default=False,
            rich_help_panel="What to run",
        ),
    ] = None,
    generate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE,...",
            help="Generated jobs instead of a trace: [bold]jobs=500,rate=4.0,multi-gpu[/bold] (rate per hour).",
            show_default=False,
            rich_help_panel="What to run",
        ),
    ] = None,
    profiles: Annotated[
        str,
        typer.Option(metavar="FILE|builtin", help="How fast each job type runs where.", rich_help_panel="What to run"),
    ] = "builtin",
    teams: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=WEIGHT,...",
            help="Weights of the teams that own the jobs, as in [bold]red=2,blue=1:fifo[/bold]. "
            "Where the jobs have no teams, they are dealt to these in turn.",
            show_default=False,
            rich_help_panel="What to run",
        ),
    ] = None,
    seed: Annotated[
        list[int] | None,
        typer.Option(
            metavar="N",
            help="The seed of generated jobs and of all that is drawn, repeatable; 0 otherwise.",
            show_default=False,
            rich_help_panel="What to run",
        ),
    ] = None,
    round_: Annotated[
        str | None,
        typer.Option(
            "--round",
            metavar="SPAN",
            help="The length of a round, as in 6m or 90s; 6m otherwise.",
            show_default=False,
            rich_help_panel="How to run it",
        ),
    ] = None,
    round_seconds: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", help="The same in seconds.", show_default=False, rich_help_panel="How to run it"
        ),
    ] = None,
    restart_seconds: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            help="What it costs a job to start on workers that it did not just hold.",
            rich_help_panel="How to run it",
        ),
    ] = 0.0,
    profiling: Annotated[
        str | None,
        typer.Option(
            metavar="FRACTION[:REFERENCES]",
            help="Let the scheduler not know how fast jobs share: each new job type is measured beside this fraction "
            "of the reference job types (16 of them otherwise), and the rest is estimated.",
            show_default=False,
            rich_help_panel="How to run it",
        ),
    ] = None,
    estimator: Annotated[
        str | None,
        typer.Option(
            metavar="NAME[:OPTION,...]",
            help="How the rest is estimated under --profiling: [bold]matrix-completion[/bold], or module:Class.",
            show_default=False,
            rich_help_panel="How to run it",
        ),
    ] = None,
    hide_lengths: Annotated[
        bool,
        typer.Option(
            "--hide-lengths",
            help="Do not tell the scheduler how many steps a job takes.",
            rich_help_panel="How to run it",
        ),
    ] = False,
    packing: Annotated[
        str,
        typer.Option(
            metavar="RULE",
            help="Where jobs go that ask for parts of accelerators: [bold]fgd[/bold] (fragmentation gradient descent), "
            "[bold]best-fit[/bold], or [bold]whole[/bold], which gives each a whole one.",
            rich_help_panel="How to run it",
        ),
    ] = "fgd",
    compat: Annotated[
        str | None,
        typer.Option(
            metavar="gavel",
            help="Follow the mechanism of Gavel's own simulator, to compare with published numbers.",
            show_default=False,
            rich_help_panel="How to run it",
        ),
    ] = None,
    window: Annotated[
        str | None,
        typer.Option(
            metavar="A:B",
            help="Count only jobs A to B-1, in order of arrival from 0, and end when all of these have.",
            show_default=False,
            rich_help_panel="How to run it",
        ),
    ] = None,
    processes: Processes = None,
    json_to: JsonTo = None,
    report: Report = None,
    save: Save = None,
    perfetto: Perfetto = None,
    jobs_to: JobsTo = None,
    quiet: Quiet = False,
) -> None:
    """Run training jobs under one or more policies, and compare.

    [bold]Examples[/bold]

    fairway simulate training --trace jobs.tsv --cluster v100=8,k80=16 -p fifo

    fairway simulate training --trace ours.csv --columns arrival=submitted,duration=seconds
    --fraction 0.1 --speed-up 4 --cluster v100=8 -p fifo -p my_module:MyPolicy

    fairway simulate training --generate jobs=200,rate=4 --cluster cluster.yaml
    -p max-min-fairness:agnostic -p max-min-fairness --report report.html

    fairway simulate training --generate jobs=500,rate=4 --cluster v100=36 -p fifo --jobs jobs.csv

    fairway simulate training --generate rate=4 --window 400:500 --seed 0 --seed 1
    --cluster v100=36,p100=36,k80=36 -p makespan --json -
    """
    from fairway.cli.simulate import training_options as options

    options.check_outputs(json_to, report, save, perfetto, jobs=jobs_to)
    asked = options.TrainingOptionsGiven(
        trace=trace,
        format=options.format_of(format_, columns),
        generate=options.one_of("--generate", generate),
        speed_up=speed_up,
        fraction=fraction,
        replicate=replicate,
        profiles=profiles,
        cluster=cluster,
        policies=tuple(policy),
        seeds=tuple(seed or ()),
        round_seconds=options.round_of(round_, round_seconds),
        restart_seconds=restart_seconds,
        packing=packing,
        profiling=profiling,
        estimator=estimator,
        hide_lengths=hide_lengths,
        compat=compat,
        window=window,
        teams=teams,
        processes=processes,
        keep_leases=any(file is not None for file in (report, save, perfetto)),
    )
    plan = options.plan_of(asked)
    if not quiet:
        for note in plan.notes:
            typer.echo(note, err=True)

    from fairway.cli.first_use import tell_of_compiling
    from fairway.cli.simulate.progress import watching
    from fairway.sim.comparison import compare

    tell_of_compiling()
    with watching(plan.labels, plan.jobs, shown=not quiet) as watcher:
        records = compare(plan.runs, processes=processes, watcher=watcher)
    if not quiet:
        _warn(records)

    from fairway.report.training.metrics import summarize

    summaries = [summarize(record) for record in records]
    if json_to is not None:
        write_json({"runs": summaries}, json_to)
    if any(file is not None for file in (report, save, perfetto)):
        from fairway.cli.simulate.saving import save_runs
        from fairway.dashboard.of_training import saved_training

        runs = [saved_training(record) for record in records]
        save_runs(runs, report=report, saved=save, perfetto=perfetto, command=asked.command())
    if jobs_to is not None:
        from fairway.report.tables import stacked, write_table
        from fairway.report.training.metrics import seed_of

        rows = (({"policy": each.policy, "seed": seed_of(each)}, each.jobs.table()) for each in records)
        write_table(stacked(rows), jobs_to)
    if json_to != STDOUT:
        from rich.console import Console

        from fairway.report.training.table import comparison_table

        Console(highlight=False).print(comparison_table(summaries))


def _warn(records: Sequence[TrainingRecord]) -> None:
    """Say on standard error what a reader of the averages alone could miss."""
    from fairway.report.training.record import Outcome

    told: set[tuple[str, ...]] = set()
    for record in records:
        columns = record.jobs
        stuck = tuple(name for name, how in zip(columns.ids, columns.outcome, strict=True) if how == Outcome.UNRUNNABLE)
        if stuck and stuck not in told:
            told.add(stuck)
            named = ", ".join(repr(name) for name in stuck[:_NAMES_IN_A_WARNING])
            more = f" and {len(stuck) - _NAMES_IN_A_WARNING} more" if len(stuck) > _NAMES_IN_A_WARNING else ""
            jobs = "1 job" if len(stuck) == 1 else f"{len(stuck)} jobs"
            typer.echo(f"fairway: warning: {jobs} can never run on this cluster: {named}{more}", err=True)
