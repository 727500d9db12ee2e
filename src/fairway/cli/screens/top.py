"""`fairway top`: the whole cluster on one screen, again and again."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairway.cli.remote import Address, Token, connected

if TYPE_CHECKING:
    from rich.console import RenderableType

    from fairway.client import Client


def top(
    once: Annotated[bool, typer.Option("--once", help="Print it once and stop.")] = False,
    interval: Annotated[
        float, typer.Option("--interval", "-i", min=0.1, metavar="SECONDS", help="How often to look.")
    ] = 1.0,
    served: Annotated[
        Path | None,
        typer.Option(
            metavar="DIRECTORY",
            help="Watch what [bold]fairway serve[/bold] serves from this directory, instead of training.",
            show_default=False,
        ),
    ] = None,
    address: Address = None,
    token: Token = None,
) -> None:
    """Watch the cluster: workers and what runs on them, the queue, the teams' shares, the round. Ctrl-C ends it.

    With --served: the workflows that are served, their latencies, and the workers with the models that they hold.

    [bold]Examples[/bold]

    fairway top

    fairway top --once

    fairway top --served /tmp/fairway-serve-k3v9x2aq
    """
    if served is not None:
        _watch_served(served, once=once, interval=interval)
        return
    from fairway.cli.screens.screen import show_again
    from fairway.cli.words import console

    with connected(address, token) as client:
        screen = console()
        height = screen.height if screen.is_terminal and not once else None
        if once:
            screen.print(_frame(client, None))
        else:
            show_again(lambda: _frame(client, height), seconds=interval, whole_screen=screen.is_terminal)


def _watch_served(directory: Path, *, once: bool, interval: float) -> None:
    from fairway.cli.screens.screen import show_again
    from fairway.cli.screens.served_frame import ServedFrames
    from fairway.cli.words import console

    frames, screen = ServedFrames(directory), console()
    if once:
        screen.print(frames.next())
    else:
        show_again(frames.next, seconds=interval, whole_screen=screen.is_terminal)


def _frame(client: Client, height: int | None) -> RenderableType:
    from fairway.cli.screens.top_frame import MOST_JOBS, frame
    from fairway.client.records import ACTIVE

    jobs = list(client.jobs(state=ACTIVE, order="oldest", limit=MOST_JOBS))
    return frame(client.status(), client.workers(), jobs, time.time(), height)
