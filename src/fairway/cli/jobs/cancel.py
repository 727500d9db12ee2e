"""`fairway cancel`: ends jobs."""

from __future__ import annotations

from typing import Annotated

import typer

from fairway.cli.output import STDOUT, write_json
from fairway.cli.remote import Address, JsonTo, Token, connected
from fairway.errors import InputError


def cancel(
    jobs: Annotated[list[str], typer.Argument(metavar="JOB", help="The ids of the jobs.", show_default=False)],
    json_to: JsonTo = None,
    address: Address = None,
    token: Token = None,
) -> None:
    """Cancel jobs. One that runs is asked to stop, and killed if it does not.

    [bold]Examples[/bold]

    fairway cancel job-7

    fairway cancel job-7 job-8 job-9
    """
    cancelled: list[dict[str, str]] = []
    refused: list[InputError] = []
    with connected(address, token) as client:
        for job in jobs:
            try:
                cancelled.append({"id": job, "state": client.cancel(job)})
            except InputError as error:  # the others are cancelled all the same
                refused.append(error)
    if json_to is not None:
        write_json({"jobs": cancelled}, json_to)
    if json_to != STDOUT:
        for one in cancelled:
            asked = "cancelled" if one["state"] == "cancelled" else f"asked to stop ({one['state']})"
            typer.echo(f"{one['id']} {asked}")
    for one_of_several in refused[:-1]:
        typer.echo(f"fairway: {one_of_several}", err=True)
    if refused:
        raise refused[-1]
