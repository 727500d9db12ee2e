"""`fairway ls`: the jobs that wait or run, or all of them."""

from __future__ import annotations

import time
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from fairway.cli.output import STDOUT, write_json
from fairway.cli.remote import Address, JsonTo, Token, connected
from fairway.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from fairway.client import Client, Job

_ON_A_SCREEN = 100


class Form(StrEnum):
    """How jobs are listed."""

    TABLE = "table"
    CSV = "csv"


def ls(
    state: Annotated[
        list[str] | None,
        typer.Option(
            "--state",
            "-s",
            metavar="STATE",
            help="Only jobs in this state, repeatable: queued, running, preempting, succeeded, failed or cancelled.",
            show_default=False,
        ),
    ] = None,
    team: Annotated[
        str | None, typer.Option(metavar="TEAM", help="Only jobs of this team.", show_default=False)
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="At most so many, the newest first; 100 on a screen, else all.", show_default=False
        ),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", "-a", help="Also jobs that have ended.")] = False,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Show it again every second, until Ctrl-C.")] = False,
    format_: Annotated[
        Form, typer.Option("--format", help="A table for people, or for other tools with what each job has used.")
    ] = Form.TABLE,
    json_to: JsonTo = None,
    address: Address = None,
    token: Token = None,
) -> None:
    """List the jobs that wait or run, or others by the options.

    The time is how long a job waits or, once it was started, runs; of a job that has ended, how long it took.

    [bold]Examples[/bold]

    fairway ls

    fairway ls --all --team vision --limit 20

    fairway ls --all --format csv > jobs.csv

    fairway ls --state failed --json - | jq .jobs
    """
    if watch and json_to is not None:
        raise InputError("--watch and --json both given; choose one of them")
    if format_ is Form.CSV and (watch or json_to is not None):
        raise InputError("--format csv: given with --watch or --json; choose one of them")
    with connected(address, token) as client:
        if watch:
            from fairway.cli.screens.screen import show_again

            show_again(lambda: _shown(*_fetched(client, state, team, limit or _ON_A_SCREEN, all_)), seconds=1.0)
            return
        if format_ is Form.CSV:
            _print_rows(client, state, team, limit, all_)
            return
        jobs, more = _fetched(client, state, team, limit or _ON_A_SCREEN, all_)
    if json_to is not None:
        write_json({"jobs": [job.document for job in jobs]}, json_to)
    if json_to != STDOUT:
        from fairway.cli.words import console

        console().print(_shown(jobs, more))


def _fetched(
    client: Client, states: list[str] | None, team: str | None, limit: int, everything: bool
) -> tuple[list[Job], bool]:
    """The jobs, and whether there are more."""
    jobs = list(client.jobs(state=_wanted(states, everything), team=team, limit=limit + 1))
    return jobs[:limit], len(jobs) > limit


def _wanted(states: list[str] | None, everything: bool) -> Sequence[str] | None:
    from fairway.client.records import ACTIVE

    return states or (None if everything else ACTIVE)


def _print_rows(
    client: Client, states: list[str] | None, team: str | None, limit: int | None, everything: bool
) -> None:
    """One row per job, the oldest first, with what its leases add up to; they are asked for job by job."""
    from fairway.client.job_rows import job_rows
    from fairway.report.tables import csv_text

    listed = client.jobs(state=_wanted(states, everything), team=team, limit=limit)
    jobs = [client.job(job.id) for job in listed]
    typer.echo(csv_text(job_rows(jobs[::-1], time.time())), nl=False)


def _shown(jobs: list[Job], more: bool) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    from fairway.cli.jobs.job_table import job_table

    if not jobs:
        return Text("no such jobs; 'fairway ls --all' lists the jobs that have ended as well")
    table = job_table(jobs, time.time())
    return Group(table, Text("… and more: see --limit", style="dim")) if more else table
