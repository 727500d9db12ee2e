"""What all commands that talk to a running Fairway share: its address, the token of the user, and how to connect."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from fairway.client import Client

_WHERE = "Which Fairway"
_GRACE_SECONDS = 1.0
_LONGEST_START_SECONDS = 120.0

Address = Annotated[
    str | None,
    typer.Option(
        "--address",
        envvar="FAIRWAY_ADDRESS",
        metavar="URL",
        help="Where it runs; otherwise as [bold]fairway up[/bold] says, or http://127.0.0.1:8642.",
        show_default=False,
        rich_help_panel=_WHERE,
    ),
]
Token = Annotated[
    str | None,
    typer.Option(
        "--token",
        envvar="FAIRWAY_TOKEN",
        metavar="TOKEN|@FILE",
        help="The token of the user, or a file that holds it, which no list of processes shows; otherwise that of this "
        "machine's own admin.",
        show_default=False,
        rich_help_panel=_WHERE,
    ),
]
JsonTo = Annotated[
    str | None,
    typer.Option("--json", metavar="-|FILE", help="Print JSON (-), or write it to a file.", show_default=False),
]


def connected(address: str | None, token: str | None) -> Client:
    """A client, to be used in a `with`."""
    from fairway.client import Client

    if address is None:
        _await_start()
    return Client(address, token, waiting=_Waiting() if sys.stderr.isatty() else None)


def _await_start() -> None:
    """Give a Fairway that is just being started, as by `fairway up &` in the line before, the time that it needs."""
    from fairway.cli.server.presence import process_in, wait_until_it_answers
    from fairway.client.place import home_directory

    home = home_directory()
    if wait_until_it_answers(home, _GRACE_SECONDS, grace=_GRACE_SECONDS) or process_in(home) is None:
        return
    if sys.stderr.isatty():
        typer.echo("fairway: waiting for Fairway, which is starting", err=True)
    wait_until_it_answers(home, _LONGEST_START_SECONDS)


class _Waiting:
    """Says once why nothing happens, to the user before a terminal."""

    def __init__(self) -> None:
        self._said = False

    def __call__(self, why: str) -> None:
        if not self._said:
            self._said = True
            typer.echo(f"fairway: {why.partition(';')[0]}; trying again", err=True)
