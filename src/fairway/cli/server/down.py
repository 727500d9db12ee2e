"""`fairway down`: stops the Fairway of this machine, wherever it was started."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Annotated

import typer

from fairway.errors import FairwayError, InputError

_LONGEST_SECONDS = 300.0


def down(
    directory: Annotated[
        Path | None,
        typer.Option(
            "--directory",
            "-d",
            envvar="FAIRWAY_HOME",
            metavar="DIRECTORY",
            help="That of [bold]fairway up[/bold]; ~/.fairway otherwise.",
            show_default=False,
        ),
    ] = None,
    keep_jobs: Annotated[
        bool, typer.Option("--keep-jobs", help="Leave jobs running; the next start adopts them.")
    ] = False,
) -> None:
    """Stop Fairway on this machine: jobs save a checkpoint, and go on at the next start.

    [bold]Examples[/bold]

    fairway down

    fairway down --keep-jobs
    """
    from fairway.cli.server.presence import process_in
    from fairway.client.place import home_directory

    where = (directory or home_directory()).expanduser()
    process = process_in(where)
    if process is None:
        raise InputError(
            f"{where}: no Fairway runs there; 'fairway up' starts one, --directory names another directory"
        )
    os.kill(process, signal.SIGTERM if keep_jobs else signal.SIGINT)
    until = time.monotonic() + _LONGEST_SECONDS
    while process_in(where) == process:
        if time.monotonic() >= until:
            raise FairwayError(f"process {process} has not ended within {_LONGEST_SECONDS:g} s; see its messages")
        time.sleep(0.05)
    typer.echo("stopped; jobs run on" if keep_jobs else "stopped")
