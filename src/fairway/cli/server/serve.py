"""`fairway serve`: runs the workflows of an application as a service on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairway.cli import completion
from fairway.cli.server.options import AllowHost, AllowOrigin, Certificate, Host, Key, PlainText, Port

_WORKERS = "Workers"
_SERVICE = "The service"


def serve(
    target: Annotated[
        str,
        typer.Argument(metavar="MODULE:WORKFLOW|FILE.yaml", help="What to serve.", show_default=False),
    ],
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            "-w",
            min=1,
            metavar="N",
            help="Worker processes, each an emulated accelerator; without it, one for each GPU, or 2 if there is none "
            "(with [bold]--threads auto[/bold], as many as cores allow).",
            show_default=False,
            rich_help_panel=_WORKERS,
        ),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Each worker's budget for models, as in [bold]256MB[/bold]; no limit otherwise.",
            show_default=False,
            rich_help_panel=_WORKERS,
        ),
    ] = None,
    threads: Annotated[
        str,
        typer.Option(
            metavar="N|auto",
            help="Threads that a stage may use; [bold]auto[/bold] takes what the profile and the SLOs call for.",
            rich_help_panel=_WORKERS,
        ),
    ] = "1",
    scheduler: Annotated[
        str,
        typer.Option(
            "--scheduler",
            "-s",
            autocompletion=completion.schedulers,
            metavar="NAME[:OPTION,...]",
            help="Who runs what, as in the simulator: compass, jit, heft or hash place tasks on workers; esg, infless, "
            "fast-gshare, orion, aquatope, nexus or clockwork choose batches too, for which workflows need an SLO; "
            "a class of your own is module:Class.",
            rich_help_panel=_WORKERS,
        ),
    ] = "compass",
    profile: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.yaml",
            help="How long stages and loads take, as [bold]fairway profile[/bold] has measured it; measured quickly "
            "otherwise, if the workflows have samples.",
            show_default=False,
            rich_help_panel=_WORKERS,
        ),
    ] = None,
    no_profile: Annotated[
        bool,
        typer.Option(
            "--no-profile",
            help="Measure nothing before serving; times are guesses until requests were seen.",
            rich_help_panel=_WORKERS,
        ),
    ] = False,
    slo: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="How soon requests should be answered, as in [bold]2s[/bold]: for workflows that have no SLO.",
            show_default=False,
            rich_help_panel=_WORKERS,
        ),
    ] = None,
    pin: Annotated[
        list[str] | None,
        typer.Option(
            "--pin",
            metavar="MODEL",
            help="Load this model at once and keep it; can be given more than once.",
            show_default=False,
            rich_help_panel=_WORKERS,
        ),
    ] = None,
    slices: Annotated[
        list[str] | None,
        typer.Option(
            "--slice",
            metavar="MODEL=PART[:MEMORY]",
            help="Let each copy of this model have a part of a worker, as in [bold]detector=0.25[/bold] or "
            "[bold]detector=0.25:200MB[/bold], in a process that is held to it; can be given more than once.",
            show_default=False,
            rich_help_panel=_WORKERS,
        ),
    ] = None,
    most_open: Annotated[
        int,
        typer.Option(min=1, metavar="N", help="Requests that a worker takes at a time.", rich_help_panel=_WORKERS),
    ] = 1000,
    stage_limit: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="A stage that runs longer is stuck: its worker is replaced, its request refused; several times what "
            "was measured otherwise.",
            show_default=False,
            rich_help_panel=_WORKERS,
        ),
    ] = None,
    load_limit: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="A model that loads longer is stuck: its worker is replaced; several times what was measured "
            "otherwise.",
            show_default=False,
            rich_help_panel=_WORKERS,
        ),
    ] = None,
    log_limit: Annotated[
        str,
        typer.Option(
            metavar="SIZE",
            help="How much is kept of what each worker prints; the oldest part is dropped.",
            rich_help_panel=_WORKERS,
        ),
    ] = "256MB",
    backend: Annotated[
        str,
        typer.Option(
            metavar="local|ray",
            help="Where workers run: on this machine, or on the nodes of a Ray cluster, one for each accelerator.",
            rich_help_panel=_WORKERS,
        ),
    ] = "local",
    address: Annotated[
        str | None,
        typer.Option(
            metavar="auto|HOST:PORT",
            help="The head of the Ray cluster; [bold]auto[/bold] is that of this machine.",
            show_default=False,
            rich_help_panel=_WORKERS,
        ),
    ] = None,
    directory: Annotated[
        Path | None,
        typer.Option(
            "--directory",
            "-d",
            metavar="DIRECTORY",
            help="For sockets, logs and the token; a temporary one otherwise.",
            show_default=False,
            rich_help_panel=_SERVICE,
        ),
    ] = None,
    host: Host = "127.0.0.1",
    port: Port = 8643,
    most_body: Annotated[
        str, typer.Option(metavar="SIZE", help="The largest body that is taken.", rich_help_panel=_SERVICE)
    ] = "64MB",
    certificate: Certificate = None,
    key: Key = None,
    plain_text: PlainText = False,
    allow_host: AllowHost = None,
    allow_origin: AllowOrigin = None,
    no_token: Annotated[
        bool, typer.Option("--no-token", help="Answer whoever reaches it.", rich_help_panel=_SERVICE)
    ] = False,
    traces: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Send OpenTelemetry spans to a collector, as in [bold]http://127.0.0.1:4318[/bold].",
            envvar="OTEL_EXPORTER_OTLP_ENDPOINT",
            show_default=False,
            rich_help_panel=_SERVICE,
        ),
    ] = None,
) -> None:
    """Serve workflows on this machine: worker processes, each with its own memory for models, and HTTP.

    There is no scheduler in the middle: whichever worker receives a request plans it for all of them. Only those that
    plan in one place have one, the planner. A process that dies is started again, and what it had runs elsewhere.
    With [bold]--backend ray[/bold] workers run on the nodes of a Ray cluster, each of which answers over HTTP.
    Ctrl-C stops everything.

    [bold]Examples[/bold]

    fairway serve documents:read_document --workers 2 --memory 64MB

    fairway serve documents:read_document --backend ray --address auto

    fairway profile documents:read_document --output profile.yaml
    fairway serve documents:read_document --profile profile.yaml --scheduler esg

    curl -H "Authorization: Bearer $(cat DIRECTORY/token)" --data-binary @page.png http://127.0.0.1:8643/workflows/read-document
    """
    from fairway.cli.server.serve_run import ServeOptionsGiven, run

    run(
        ServeOptionsGiven(
            target=target,
            backend=backend,
            address=address,
            workers=workers,
            memory=memory,
            threads=threads,
            scheduler=scheduler,
            profile=profile,
            measures=not no_profile,
            slo=slo,
            most_open=most_open,
            directory=directory,
            host=host,
            port=port,
            most_body=most_body,
            certificate=certificate,
            key=key,
            plain_text=plain_text,
            no_token=no_token,
            pinned=tuple(dict.fromkeys(pin or ())),
            slices=tuple(slices or ()),
            traces=traces,
            stage_limit=stage_limit,
            load_limit=load_limit,
            log_limit=log_limit,
            allow_hosts=tuple(allow_host or ()),
            allow_origins=tuple(allow_origin or ()),
        )
    )
