"""`fairway logs`: what a job has printed, and what it prints."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from fairway.cli.jobs.which import Labels, OneJob, Team, the_job
from fairway.cli.remote import Address, Token, connected
from fairway.cli.terminal_text import harmless

if TYPE_CHECKING:
    from collections.abc import Iterable


def logs(
    job: OneJob = None,
    label: Labels = None,
    team: Team = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the job has ended.")] = False,
    rank: Annotated[int, typer.Option(min=0, metavar="N", help="Which process of the job's gang.")] = 0,
    tail: Annotated[
        int | None, typer.Option("--tail", "-n", min=0, metavar="N", help="Its last lines only.", show_default=False)
    ] = None,
    address: Address = None,
    token: Token = None,
) -> None:
    """Print the output of a job, over all its attempts.

    On a terminal, control characters other than colours are shown instead of sent.

    [bold]Examples[/bold]

    fairway logs job-7

    fairway logs resnet --follow --tail 20

    fairway logs job-7 --rank 1
    """
    with connected(address, token) as client:
        print_pieces(client.logs(the_job(client, job, label, team), rank=rank, tail=tail, follow=follow))


def print_pieces(pieces: Iterable[str]) -> None:
    """Print text as it comes; on a terminal, nothing in it but colours does anything."""
    for piece in harmless(pieces) if sys.stdout.isatty() else pieces:
        sys.stdout.write(piece)
        sys.stdout.flush()
