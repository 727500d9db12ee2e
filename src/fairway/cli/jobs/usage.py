"""`fairway usage`: who has used how much, by team and user."""

from __future__ import annotations

import json
import time
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairway.cli.given import span_given
from fairway.cli.jobs.which import Team
from fairway.cli.output import STDOUT, write_json
from fairway.cli.remote import Address, JsonTo, Token, connected
from fairway.errors import InputError

if TYPE_CHECKING:
    from fairway.client import Usage

_BY = ("team", "user")


class Form(StrEnum):
    """How it is printed."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


def usage(
    by: Annotated[str, typer.Option(metavar="team,user", help="One row for each team, user, or both.")] = "team",
    since: Annotated[str, typer.Option(metavar="SPAN", help="How far to look back.")] = "7d",
    team: Team = None,
    format_: Annotated[Form, typer.Option("--format", help="A table for people, or for other tools.")] = Form.TABLE,
    json_to: JsonTo = None,
    address: Address = None,
    token: Token = None,
) -> None:
    """Add up what jobs have used: accelerator hours by type, cost where prices are known, and how many jobs.

    From all leases, those that are held included. A member sees its own team.

    [bold]Examples[/bold]

    fairway usage

    fairway usage --by team,user --since 30d --format csv > usage.csv
    """
    keys = [key.strip() for key in by.split(",")]
    for key in keys:
        if key not in _BY:
            raise InputError(f"--by: '{key}' given, expected team, user or team,user")
    if format_ is not Form.TABLE and json_to is not None:
        raise InputError("--format and --json both given; choose one of them")
    seconds = span_given("--since", since)
    with connected(address, token) as client:
        now = time.time()
        found = client.usage(by=list(dict.fromkeys(keys)), since=max(now - seconds, 0.0), team=team)
    if json_to is not None:
        write_json(found.document, json_to)
    if json_to == STDOUT:
        return
    if format_ is Form.JSON:
        typer.echo(json.dumps(found.document))
    elif format_ is Form.CSV:
        from fairway.report.tables import csv_text

        typer.echo(csv_text(_columns(found)), nl=False)
    else:
        _print_table(found)


def _types(found: Usage) -> list[str]:
    return sorted({name for row in found.rows for name in row["accelerator_seconds"]})


def _columns(found: Usage) -> dict[str, list[Any]]:
    columns = {key: [row[key] for row in found.rows] for key in [*found.by, "jobs"]}
    for name in _types(found):
        columns[f"{name}_seconds"] = [row["accelerator_seconds"].get(name, 0.0) for row in found.rows]
    return {**columns, "cost_dollars": [row["cost_dollars"] for row in found.rows]}


def _print_table(found: Usage) -> None:
    from rich.table import Table

    from fairway.cli import words

    if not found.rows:
        typer.echo("nothing was used in that time")
        return
    types = _types(found)
    headings = [*found.by, "jobs", *(f"{name} hours" for name in types), "cost"]
    table = Table(*headings, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for row in found.rows:
        hours = [f"{row['accelerator_seconds'].get(name, 0.0) / 3600:.2f}" for name in types]
        cost = words.NOTHING if row["cost_dollars"] is None else f"${row['cost_dollars']:.2f}"
        who = [words.text(row[key] or words.NOTHING) for key in found.by]
        table.add_row(*who, str(row["jobs"]), *hours, cost)
    words.console().print(table)
    if found.emulated:
        typer.echo("the accelerators are emulated")
