"""`fairway up`: starts the whole system on this machine, and runs until it is told to stop."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from fairway.cli import completion
from fairway.cli.server.options import AllowHost, AllowOrigin, Certificate, Host, Key, PlainText, Port
from fairway.errors import InputError

_MACHINE = "The machine"
_SCHEDULING = "Scheduling"
_SERVICE = "The service"
_LONGEST_START_SECONDS = 300.0
_GRACE_SECONDS = 5.0


def up(
    emulate: Annotated[
        str | None,
        typer.Option(
            metavar="TYPE=COUNT,...",
            help="Emulated accelerators instead of this machine's GPUs: [bold]v100=2,p100=1,k80=1[/bold].",
            show_default=False,
            rich_help_panel=_MACHINE,
        ),
    ] = None,
    time_scale: Annotated[
        float,
        typer.Option(metavar="X", help="Let time run so many times as fast; emulated only.", rich_help_panel=_MACHINE),
    ] = 1.0,
    directory: Annotated[
        Path | None,
        typer.Option(
            "--directory",
            "-d",
            envvar="FAIRWAY_HOME",
            metavar="DIRECTORY",
            help="Where it keeps its files; ~/.fairway otherwise.",
            show_default=False,
            rich_help_panel=_MACHINE,
        ),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|postgresql://…",
            help="Where it keeps its state; fairway.db in the directory otherwise.",
            show_default=False,
            rich_help_panel=_MACHINE,
        ),
    ] = None,
    run_as: Annotated[
        list[str] | None,
        typer.Option(
            "--run-as",
            metavar="USER|TEAM=USER",
            help="The user of all jobs, or of those of a team; may be given several times. Needs root. Without it, "
            "jobs can read the admin's token and each other's files.",
            show_default=False,
            rich_help_panel=_MACHINE,
        ),
    ] = None,
    backend: Annotated[
        str,
        typer.Option(
            metavar="NAME[:OPTION,...]",
            help="What runs the jobs: local, this machine; ray, the nodes of a Ray cluster; or a backend of your own "
            "as module:Class.",
            rich_help_panel=_MACHINE,
        ),
    ] = "local",
    cpus: Annotated[
        float | None,
        typer.Option(
            metavar="N",
            help="How many CPUs jobs that ask for some have in all; those of this machine otherwise.",
            show_default=False,
            rich_help_panel=_MACHINE,
        ),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="How much memory jobs that ask for some have in all; that of this machine otherwise.",
            show_default=False,
            rich_help_panel=_MACHINE,
        ),
    ] = None,
    packing: Annotated[
        str,
        typer.Option(
            metavar="RULE",
            help="Where jobs go that ask for parts of accelerators: [bold]fgd[/bold] (fragmentation gradient descent), "
            "[bold]best-fit[/bold], or [bold]whole[/bold], which gives each a whole one.",
            rich_help_panel=_MACHINE,
        ),
    ] = "fgd",
    device_memory: Annotated[
        str | None,
        typer.Option(
            metavar="TYPE=SIZE,...",
            help="Memory of accelerators that report none, as those that use the machine's: [bold]gb10=120GB[/bold].",
            show_default=False,
            rich_help_panel=_MACHINE,
        ),
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(
            metavar="auto|HOST:PORT|ray://HOST:PORT",
            help="Where the Ray cluster is, with [bold]--backend ray[/bold]; auto, that of this machine, otherwise.",
            show_default=False,
            rich_help_panel=_MACHINE,
        ),
    ] = None,
    log_limit: Annotated[
        str,
        typer.Option(
            metavar="SIZE",
            help="How much is kept of what each process of a job prints; the oldest part is dropped.",
            rich_help_panel=_MACHINE,
        ),
    ] = "256MB",
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            "-p",
            autocompletion=completion.policies,
            metavar="NAME[:OPTION,...]",
            help="Who gets what; max-min-fairness, or hierarchical where there are teams. "
            "[bold]fairway policies[/bold] lists them; a class of your own is [bold]module:Class[/bold].",
            show_default=False,
            rich_help_panel=_SCHEDULING,
        ),
    ] = None,
    round_: Annotated[
        str,
        typer.Option("--round", metavar="SPAN", help="The length of a round.", rich_help_panel=_SCHEDULING),
    ] = "60s",
    teams: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=WEIGHT,...|FILE",
            help="Weights of the teams: [bold]vision=2,speech=1[/bold], or a YAML file.",
            show_default=False,
            rich_help_panel=_SCHEDULING,
        ),
    ] = None,
    prices: Annotated[
        str | None,
        typer.Option(
            metavar="TYPE=DOLLARS,...",
            help="What an accelerator costs in an hour, for policies that mind: [bold]v100=0.74,k80=0.135[/bold]; "
            "those of the catalog otherwise.",
            show_default=False,
            rich_help_panel=_SCHEDULING,
        ),
    ] = None,
    profiles: Annotated[
        str,
        typer.Option(metavar="FILE|builtin", help="How fast each job type runs where.", rich_help_panel=_SCHEDULING),
    ] = "builtin",
    host: Host = "127.0.0.1",
    port: Port = 8642,
    certificate: Certificate = None,
    key: Key = None,
    plain_text: PlainText = False,
    allow_host: AllowHost = None,
    allow_origin: AllowOrigin = None,
    notify: Annotated[
        str | None,
        typer.Option(
            "--notify",
            metavar="URL",
            help="Tell this address of the end of every job, by a POST of JSON.",
            show_default=False,
            rich_help_panel=_SERVICE,
        ),
    ] = None,
    allow_notify: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-notify",
            metavar="HOST[:PORT]",
            help="A host at which jobs may have addresses told of their own end; may be given several times.",
            show_default=False,
            rich_help_panel=_SERVICE,
        ),
    ] = None,
    detach: Annotated[
        bool,
        typer.Option(
            "--detach", help="Start it in the background, and return once it answers.", rich_help_panel=_SERVICE
        ),
    ] = False,
    print_systemd_unit: Annotated[
        bool,
        typer.Option(
            "--print-systemd-unit",
            help="Start nothing; print a unit for systemd that starts it with these options.",
            rich_help_panel=_SERVICE,
        ),
    ] = False,
    wait: Annotated[
        bool,
        typer.Option(
            "--wait", help="Start nothing; wait until the one that is starting answers.", rich_help_panel=_SERVICE
        ),
    ] = False,
) -> None:
    """Start Fairway on this machine: controller, workers, REST API and metrics.

    Ctrl-C stops it: jobs save a checkpoint, and go on at the next start.
    SIGTERM stops it and leaves the jobs running; the next start adopts them.

    [bold]Examples[/bold]

    fairway up

    fairway up --emulate v100=2,p100=1,k80=1 --round 10s

    fairway up --emulate v100=2 --detach; fairway submit -- python train.py; fairway down

    fairway up --emulate v100=2 --policy my_module:MyPolicy:option=2

    fairway up --backend ray --address auto

    fairway up --store postgresql://fairway@db.example/fairway --teams vision=2,speech=1
    """
    from fairway.cli.server.presence import announce, withdraw
    from fairway.client.place import home_directory

    where = (directory or home_directory()).expanduser().absolute()
    given: dict[str, Any] = {
        "directory": directory,
        "store": store,
        "emulate": emulate,
        "time_scale": time_scale,
        "run_as": tuple(run_as or ()),
        "backend": backend,
        "address": address,
        "log_limit": log_limit,
        "cpus": cpus,
        "memory": memory,
        "device_memory": device_memory,
        "packing": packing,
        "policy": policy,
        "round": round_,
        "teams": teams,
        "prices": prices,
        "profiles": profiles,
        "host": host,
        "port": port,
        "certificate": certificate,
        "key": key,
        "plain_text": plain_text,
        "allow_hosts": tuple(allow_host or ()),
        "allow_origins": tuple(allow_origin or ()),
        "notify": notify,
        "allow_notify": tuple(allow_notify or ()),
    }
    if print_systemd_unit:
        _print_unit(where, given)
        return
    if detach:  # which waits, too
        from fairway.cli.server.up_detached import start_detached

        start_detached(where)
        return
    if wait:
        _wait(where)
        return
    announce(where)
    try:
        _run(**given)
    finally:
        withdraw(where)


def _run(**options: Any) -> None:
    from fairway.cli.server.up_run import UpOptions, run

    run(UpOptions(**options))


def _print_unit(where: Path, given: dict[str, Any]) -> None:
    from fairway.cli.server.systemd_unit import unit_text
    from fairway.cli.server.up_run import UpOptions

    UpOptions(**given).settings()  # what is wrong is said now, and not in the log of a service
    typer.echo(unit_text(sys.argv[1:], where), nl=False)


def _wait(where: Path) -> None:
    from fairway.cli.server.presence import ADDRESS_FILE, wait_until_it_answers

    if not wait_until_it_answers(where, _LONGEST_START_SECONDS, grace=_GRACE_SECONDS):
        raise InputError(f"{where}: no Fairway is starting there; start one by 'fairway up', or name its --directory")
    typer.echo(f"Fairway answers at {(where / ADDRESS_FILE).read_text(encoding='utf-8').strip()}")
