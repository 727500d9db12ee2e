"""`fairway cancel`: ends jobs."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated

import typer

from fairway.cli.jobs.which import Labels, Team, labels_of, refuse_both
from fairway.cli.output import STDOUT, write_json
from fairway.cli.remote import Address, JsonTo, Token, connected
from fairway.errors import InputError

if TYPE_CHECKING:
    from fairway.client import Client


def cancel(
    jobs: Annotated[
        list[str] | None,
        typer.Argument(metavar="[JOB]...", help="Their ids, or names: all jobs so called.", show_default=False),
    ] = None,
    label: Labels = None,
    team: Team = None,
    json_to: JsonTo = None,
    address: Address = None,
    token: Token = None,
) -> None:
    """Cancel jobs. One that runs is asked to stop, and killed if it does not.

    A name, a label or a team means all of its jobs that wait or run; an array has one name for all of its jobs.

    [bold]Examples[/bold]

    fairway cancel job-7

    fairway cancel job-7 job-8 sweep

    fairway cancel --label sweep=lr --team vision
    """
    refuse_both(jobs, label, team)
    cancelled: list[dict[str, str]] = []
    refused: list[InputError] = []
    with connected(address, token) as client:
        if not jobs:
            found = client.cancel_all(labels=labels_of(label), team=team)
            if not found:
                raise InputError("no such job waits or runs; 'fairway ls' lists those that do")
            cancelled += _listed(found)
        for job in jobs or ():
            try:
                cancelled += _cancelled(client, job)
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


def _cancelled(client: Client, job: str) -> list[dict[str, str]]:
    """The job of this id or, if there is none, all that are so called."""
    try:
        return _listed({job: client.cancel(job)})
    except InputError as error:
        if getattr(error, "status", None) != HTTPStatus.NOT_FOUND:
            raise
    found = client.cancel_all(name=job)
    if not found:
        raise InputError(f"no job '{job}' that waits or runs, by id or by name; 'fairway ls' lists them")
    return _listed(found)


def _listed(states: dict[str, str]) -> list[dict[str, str]]:
    return [{"id": job, "state": state} for job, state in states.items()]
