"""`fairway simulate serving`: runs requests for workflows under one or more schedulers and compares what comes of it.

Whatever can be refused is refused before the first run starts: what is wrong with the options, the schedulers, the
scenario, the trace, and the files that the results go to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from fairway.cli import completion
from fairway.cli.output import STDOUT, write_json
from fairway.cli.simulate.options import JsonTo, Perfetto, Processes, Quiet, Report, RequestsTo, Save

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairway.report.serving.metrics import ServingSummary


def serving(
    scenario: Annotated[
        str,
        typer.Option(
            autocompletion=completion.scenarios,
            metavar="NAME|FILE.yaml",
            help="Workflows and workers: [bold]compass-edge[/bold], [bold]esg-apps[/bold] (pipelines on shares of "
            "workers, with bills), [bold]trace-models[/bold] (one workflow for each model of a trace), pipelines of "
            "Loki, IPA and VortexScheduler ([bold]loki-traffic[/bold], loki-social, loki-both-tight, ipa-video, "
            "ipa-audio-qa, ipa-sum-qa, ipa-nlp, vortex-textvision, vortex-tts, vortex-tenants, vortex-mix), or a file.",
            rich_help_panel="What to run",
        ),
    ] = "compass-edge",
    scheduler: Annotated[
        list[str] | None,
        typer.Option(
            "--scheduler",
            "-s",
            autocompletion=completion.schedulers,
            metavar="NAME[+NAME]",
            help="Repeatable, with options, as in compass:no-adjust: a placer of tasks (compass, jit, heft, hash); a "
            "configurator, which chooses batches and shares of workers (esg, front, infless, fast-gshare, orion, "
            "aquatope, nexus, clockwork, shepherd, inferline); or one with any placer of batches, as in front+compass "
            "(near-data, best-fit, tightest, too). "
            "A part of your own is module:Class. compass otherwise, esg for esg-apps.",
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
        str | None,
        typer.Option(
            metavar="KIND",
            help="poisson (otherwise), uniform, gamma:CV (bursts), clients (one for each workflow), or trace:FILE.",
            show_default=False,
            rich_help_panel="What to run",
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="MEANING=COLUMN,...",
            help="Which column of a trace means what: [bold]arrival=TIMESTAMP,workflow=func[/bold]; also seconds, end, "
            "and count, the requests in a window. only=COLUMN:VALUE keeps some of the rows, every=60s is the length "
            "of windows, even spreads their requests evenly instead of at random.",
            show_default=False,
            rich_help_panel="What to run",
        ),
    ] = None,
    requests: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="How many requests: 1000 otherwise, or all of a trace.",
            show_default=False,
            rich_help_panel="What to run",
        ),
    ] = None,
    find_rate: Annotated[
        str | None,
        typer.Option(
            metavar="PART",
            help="Search, to 5 %, for the highest rate at which so many requests are in time: [bold]99%[/bold]. With "
            "several seeds, for each. With --report, a page of what is in time at which rate.",
            show_default=False,
            rich_help_panel="What to run",
        ),
    ] = None,
    seed: Annotated[
        list[int] | None,
        typer.Option(
            metavar="N",
            help="The seed of all that is drawn, repeatable; 0 otherwise, 1 for esg-apps.",
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
        float | None,
        typer.Option(
            metavar="CV",
            help="Lognormal noise of run times: its coefficient of variation, 0 otherwise; for esg-apps the standard "
            "deviation of the logarithm, 0.08 otherwise.",
            show_default=False,
            rich_help_panel="How to run it",
        ),
    ] = None,
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
        str | None,
        typer.Option(
            metavar="TIME",
            help="When the others notice a failure; 300ms otherwise.",
            show_default=False,
            rich_help_panel="How to run it",
        ),
    ] = None,
    no_recovery: Annotated[
        bool,
        typer.Option(
            "--no-recovery",
            help="Do without the messages by which workers could take over from a lost one: a faster simulation, with "
            "the same decisions.",
            rich_help_panel="How to run it",
        ),
    ] = False,
    no_time_watching: Annotated[
        bool,
        typer.Option(
            "--no-time-watching",
            help="Do not compare how long tasks take with what was expected, as live workers do to notice slow ones.",
            rich_help_panel="How to run it",
        ),
    ] = False,
    discard: Annotated[
        float | None,
        typer.Option(
            metavar="PART",
            help="The first part of the requests, which averages leave out; 0.1 otherwise.",
            show_default=False,
            rich_help_panel="How to run it",
        ),
    ] = None,
    load: Annotated[
        str | None,
        typer.Option(
            metavar="light|normal|heavy|surge",
            help="How fast requests come; normal otherwise.",
            show_default=False,
            rich_help_panel="For esg-apps",
        ),
    ] = None,
    slo: Annotated[
        str | None,
        typer.Option(
            metavar="strict|moderate|relaxed",
            help="0.8, 1 or 1.2 times the time on one CPU and one slice; moderate otherwise.",
            show_default=False,
            rich_help_panel="For esg-apps",
        ),
    ] = None,
    apps: Annotated[
        str | None,
        typer.Option(
            metavar="chains|dag",
            help="Four chains, or these and two graphs; chains otherwise.",
            show_default=False,
            rich_help_panel="For esg-apps",
        ),
    ] = None,
    warmup: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Requests that arrive before do not count; 60s otherwise.",
            show_default=False,
            rich_help_panel="For esg-apps",
        ),
    ] = None,
    duration: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="For how long requests arrive that count; 300s otherwise.",
            show_default=False,
            rich_help_panel="For esg-apps",
        ),
    ] = None,
    overhead: Annotated[
        str | None,
        typer.Option(
            metavar="TIME|measured",
            help="How long each task waits for its decision: 1ms otherwise; measured: what a configurator really took.",
            show_default=False,
            rich_help_panel="For esg-apps",
        ),
    ] = None,
    containers: Annotated[
        str | None,
        typer.Option(
            metavar="all|N[,held][,no-prewarm]",
            help="How many idle containers of each function each worker starts with; all otherwise: nothing is cold.",
            show_default=False,
            rich_help_panel="For esg-apps",
        ),
    ] = None,
    container_limit: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="For how many containers a worker has memory; any number otherwise.",
            show_default=False,
            rich_help_panel="For esg-apps",
        ),
    ] = None,
    slices: Annotated[
        str | None,
        typer.Option(
            metavar="any|mig|mps:PART",
            help="What GPUs can be cut into: any number of slices otherwise; mig: instances that NVIDIA's tables "
            "allow; mps: any, but tasks slow each other down, by this part where others have all of the rest.",
            show_default=False,
            rich_help_panel="For esg-apps",
        ),
    ] = None,
    processes: Processes = None,
    json_to: JsonTo = None,
    report: Report = None,
    save: Save = None,
    perfetto: Perfetto = None,
    requests_to: RequestsTo = None,
    quiet: Quiet = False,
) -> None:
    """Run requests for workflows under one or more schedulers, and compare.

    [bold]Examples[/bold]

    fairway simulate serving --rate 3 -s compass -s jit -s hash

    fairway simulate serving --workers 140 --rate 40 --arrivals clients --seed 42
    --seed 43 -s compass --report report.html

    fairway simulate serving --scenario scenario.yaml --arrivals gamma:4 --rate 20
    --staleness load=10ms,cache=100ms --fail w2@10s-25s --json -

    fairway simulate serving --scenario loki-traffic --arrivals trace:twitter.csv
    --columns arrival=second,count=requests_per_second,only=window:bursty --rate 80

    fairway simulate serving --scenario loki-traffic --find-rate 99% -s front -s esg
    --seed 1 --seed 2 --requests 1500 --report rates.html

    fairway simulate serving --scenario esg-apps --load normal --slo strict
    -s esg:margin=0.1 -s front+compass -s compass --seed 1 --seed 2 --report report.html
    """
    from fairway.cli.simulate.serving_experiment import ServingExperiment
    from fairway.cli.simulate.serving_plan import plan_of
    from fairway.cli.simulate.training_options import check_outputs

    check_outputs(json_to, report, save, perfetto, requests_to=requests_to)
    experiment = ServingExperiment(
        scenario=scenario,
        schedulers=tuple(scheduler or ()),
        seeds=tuple(seed or ()),
        workers=workers,
        rate=rate,
        arrivals=arrivals,
        columns=columns,
        requests=requests,
        find_rate=find_rate,
        load=load,
        slo=slo,
        apps=apps,
        warmup=warmup,
        duration=duration,
        slo_scale=slo_scale,
        staleness=staleness,
        noise=noise,
        discard=discard,
        overhead=overhead,
        containers=containers,
        slices=slices,
        container_limit=container_limit,
        eviction=eviction,
        nic_queues=nic_queues,
        fail=tuple(fail or ()),
        detection=detection,
        no_recovery=no_recovery,
        no_time_watching=no_time_watching,
        processes=processes,
        keep_runs=any(file is not None for file in (report, save, perfetto)) and find_rate is None,
    )
    if find_rate is not None:
        from fairway.cli.simulate.find_rate import check_search, find_rates, part_of

        part_of(find_rate)
        check_search(experiment, requests_to=requests_to)
    plan = plan_of(experiment)
    if not quiet:
        for note in plan.notes:
            typer.echo(note, err=True)

    from fairway.cli.first_use import tell_of_compiling
    from fairway.cli.simulate.progress import watching
    from fairway.report.serving.metrics import summarize_serving
    from fairway.sim.comparison import compare

    tell_of_compiling()
    if find_rate is not None:
        find_rates(plan, processes=processes, quiet=quiet, json_to=json_to, report=report)
        return
    with watching(plan.labels, plan.requests, shown=not quiet, told=lambda now: f"requests, {now:.0f} s") as watcher:
        records = compare(plan.runs, processes=processes, watcher=watcher)
    summaries = [summarize_serving(record) for record in records]
    if not quiet:
        _warn(summaries)
    if json_to is not None:
        write_json({"runs": summaries}, json_to)
    if any(file is not None for file in (report, save, perfetto)):
        from fairway.cli.simulate.saving import save_runs
        from fairway.dashboard.of_serving import saved_serving

        runs = [saved_serving(record) for record in records]
        save_runs(runs, report=report, saved=save, perfetto=perfetto, command=plan.experiment.command())
    if requests_to is not None:
        from fairway.report.serving.metrics import seed_of
        from fairway.report.tables import stacked, write_table

        rows = (({"scheduler": each.scheduler, "seed": seed_of(each)}, each.requests.table()) for each in records)
        write_table(stacked(rows), requests_to)
    if json_to != STDOUT:
        from rich.console import Console

        from fairway.report.serving.table import serving_table

        Console(highlight=False).print(serving_table(summaries))


def _warn(summaries: Sequence[ServingSummary]) -> None:
    """Say on standard error what a reader of the averages alone could miss."""
    for run in summaries:
        if run["refused"]:
            first = f"; the first: {run['refusals'][0]}" if run["refusals"] else ""
            typer.echo(f"fairway: warning: {run['scheduler']}: {run['refused']} requests were refused{first}", err=True)
