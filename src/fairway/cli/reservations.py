"""`fairway reserve` and `fairway reservations`: workers that are a team's alone for some time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from fairway.cli.output import STDOUT, write_json
from fairway.cli.remote import Address, JsonTo, Token, connected

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairway.client import Reservation


def reserve(
    accelerators: Annotated[
        str, typer.Option("--accelerators", metavar="TYPE=COUNT,...", help="What to reserve.", show_default=False)
    ],
    team: Annotated[str, typer.Option("--team", metavar="TEAM", help="Whose they are then.", show_default=False)],
    span: Annotated[str, typer.Option("--for", metavar="SPAN", help="For how long.", show_default=False)],
    begins: Annotated[
        str,
        typer.Option("--from", metavar="TIME", help="From when on, in local time unless it has a zone, or 'now'."),
    ] = "now",
    json_to: JsonTo = None,
    address: Address = None,
    token: Token = None,
) -> None:
    """Let workers be a team's alone for some time; jobs of others save and move before it begins.

    [bold]Examples[/bold]

    fairway reserve --accelerators v100=2 --for 2h --team vision

    fairway reserve --accelerators v100=2,k80=1 --from 2026-12-01T08:00 --for 2h --team vision
    """
    from fairway.cluster import Cluster
    from fairway.errors import InputError

    try:
        wanted = Cluster.parse(accelerators).workers
    except InputError as error:
        raise InputError(f"--accelerators: {str(error).removeprefix('cluster: ')}") from None
    with connected(address, token) as client:
        made = client.reserve(team, wanted, begins=_with_zone(begins), span=span)
    _print([made], json_to)


def reservations(
    cancel: Annotated[
        str | None, typer.Option("--cancel", metavar="ID", help="Cancel this one.", show_default=False)
    ] = None,
    json_to: JsonTo = None,
    address: Address = None,
    token: Token = None,
) -> None:
    """List the reservations that are not over, or cancel one.

    [bold]Examples[/bold]

    fairway reservations

    fairway reservations --cancel reservation-1
    """
    with connected(address, token) as client:
        found = client.reservations() if cancel is None else [client.cancel_reservation(cancel)]
    if cancel is not None and json_to is None:
        typer.echo(f"{found[0].id} is cancelled")
        return
    _print(found, json_to)


def _with_zone(text: str) -> str:
    """A time as it was given, with the zone of this machine if it has none."""
    from datetime import datetime

    from fairway.errors import InputError

    if text == "now":
        return text
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"--from: '{text}' given, expected a time such as '2026-12-01T08:00', or 'now'") from None
    try:
        return time.astimezone().isoformat()
    except (OverflowError, ValueError):
        raise InputError(f"--from: '{text}' given, expected a time of the years 1 to 9999") from None


def _print(found: Sequence[Reservation], json_to: str | None) -> None:
    if json_to is not None:
        write_json({"reservations": [one.document for one in found]}, json_to)
    if json_to != STDOUT:
        print_reservations(found)


def print_reservations(found: Sequence[Reservation]) -> None:
    """As a table."""
    from datetime import datetime

    from rich.table import Table

    from fairway.cli import words

    table = Table("reservation", "team", "workers", "from", "until", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for one in found:
        times = [
            datetime.fromtimestamp(at).astimezone().isoformat(" ", "minutes") for at in (one.begins_at, one.ends_at)
        ]
        workers = ", ".join(f"{count} {name}" for name, count in one.workers.items())
        table.add_row(words.text(one.id, "bold"), words.text(one.team), words.text(workers), *map(words.text, times))
    words.console().print(table)
