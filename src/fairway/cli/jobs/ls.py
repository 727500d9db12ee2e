"""`fairway ls`: the jobs that wait or run, or all of them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from fairway.cli.jobs.which import Labels, Team, labels_of
from fairway.cli.output import STDOUT, write_json
from fairway.cli.remote import Address, JsonTo, Token, connected
from fairway.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only jobs, or arrays, so called.", show_default=False)
    ] = None,
    label: Labels = None,
    team: Team = None,
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
    chosen = _Chosen(state, team, name, labels_of(label), everything=all_)
    with connected(address, token) as client:
        if watch:
            from fairway.cli.screens.screen import show_again

            show_again(lambda: _shown(*_fetched(client, chosen, limit or _ON_A_SCREEN)), seconds=1.0)
            return
        if format_ is Form.CSV:
            _print_rows(client, chosen, limit)
            return
        jobs, more = _fetched(client, chosen, limit or _ON_A_SCREEN)
    if json_to is not None:
        write_json({"jobs": [job.document for job in jobs]}, json_to)
    if json_to != STDOUT:
        from fairway.cli.words import console

        console().print(_shown(jobs, more))


@dataclass(frozen=True, slots=True)
class _Chosen:
    """Which jobs are to be listed."""

    states: list[str] | None
    team: str | None
    name: str | None
    labels: dict[str, str]
    everything: bool

    def of(self, client: Client, limit: int | None) -> Iterator[Job]:
        """So many of them."""
        from fairway.client.records import ACTIVE

        states = self.states or (None if self.everything else ACTIVE)
        return client.jobs(state=states, team=self.team, name=self.name, labels=self.labels, limit=limit)


def _fetched(client: Client, chosen: _Chosen, limit: int) -> tuple[list[Job], bool]:
    """The jobs, and whether there are more."""
    jobs = list(chosen.of(client, limit + 1))
    return jobs[:limit], len(jobs) > limit


def _print_rows(client: Client, chosen: _Chosen, limit: int | None) -> None:
    """One row per job, the oldest first, with what its leases add up to; they are asked for job by job."""
    from fairway.client.job_rows import job_rows
    from fairway.report.tables import csv_text

    jobs = [client.job(job.id) for job in chosen.of(client, limit)]
    typer.echo(csv_text(job_rows(jobs[::-1], time.time())), nl=False)


def _shown(jobs: list[Job], more: bool) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    from fairway.cli.jobs.job_table import job_table

    if not jobs:
        return Text("no such jobs; 'fairway ls --all' lists the jobs that have ended as well")
    table = job_table(jobs, time.time())
    return Group(table, Text("… and more: see --limit", style="dim")) if more else table
