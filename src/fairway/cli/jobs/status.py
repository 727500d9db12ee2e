"""`fairway status`: the cluster in a few lines, or the whole story of one job."""

from __future__ import annotations

from typing import Annotated

import typer

from fairway.cli.jobs.which import the_job
from fairway.cli.output import STDOUT, write_json
from fairway.cli.remote import Address, JsonTo, Token, connected


def status(
    job: Annotated[
        str | None,
        typer.Argument(metavar="[JOB]", help="A job's id or name; else the cluster.", show_default=False),
    ] = None,
    json_to: JsonTo = None,
    address: Address = None,
    token: Token = None,
) -> None:
    """Show how the cluster stands, or all that happened to one job.

    [bold]Examples[/bold]

    fairway status

    fairway status job-7

    fairway status job-7 --json - | jq .attempts
    """
    with connected(address, token) as client:
        found = client.status() if job is None else client.job(the_job(client, job, None, None))
    if json_to is not None:
        write_json(found.document, json_to)
    if json_to != STDOUT:
        from fairway.cli.jobs.story import cluster_story, job_story
        from fairway.cli.words import console
        from fairway.client import Job

        console().print(job_story(found) if isinstance(found, Job) else cluster_story(found))
