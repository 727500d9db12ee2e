"""Which jobs a command means: by id, by name, by labels or by team.

An id always means the job that has it. A name may be that of several jobs or of an array: `cancel` takes all of them
that wait or run, as Slurm's `scancel --name` does; commands about one job take the newest and say so, as kubectl does.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated

import typer

from fairway.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairway.client import Client

_WHICH = "Which job"

OneJob = Annotated[
    str | None,
    typer.Argument(metavar="[JOB]", help="Its id, or its name: the newest so called.", show_default=False),
]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        "--label",
        "-l",
        metavar="NAME=VALUE",
        help="Jobs with this label; with all of them, if given several times.",
        show_default=False,
        rich_help_panel=_WHICH,
    ),
]
Team = Annotated[
    str | None,
    typer.Option("--team", metavar="TEAM", help="Jobs of this team.", show_default=False, rich_help_panel=_WHICH),
]


def labels_of(given: Sequence[str] | None) -> dict[str, str]:
    """The labels of `NAME=VALUE`."""
    labels: dict[str, str] = {}
    for one in given or ():
        name, equals, value = one.partition("=")
        if not (name and equals and value):
            raise InputError(f"--label: '{one}' given, expected NAME=VALUE, as in sweep=lr")
        if labels.setdefault(name, value) != value:
            raise InputError(f"--label: two values given for '{name}', but a job has one; keep one of them")
    return labels


def refuse_both(jobs: Sequence[str] | str | None, labels: Sequence[str] | None, team: str | None) -> None:
    """Refuse a job together with other ways to say which jobs are meant, and none of them."""
    otherwise = bool(labels) or team is not None
    if jobs and otherwise:
        raise InputError("a job and --label or --team both given; choose one of them")
    if not jobs and not otherwise:
        raise InputError("no job given; name one by its id or name, or give --label or --team")


def the_job(client: Client, job: str | None, labels: Sequence[str] | None, team: str | None) -> str:
    """The id of the one job that is meant: the newest, if there are several."""
    refuse_both(job, labels, team)
    if job is not None:
        try:
            return client.job(job).id
        except InputError as error:
            if getattr(error, "status", None) != HTTPStatus.NOT_FOUND:
                raise
    found = list(client.jobs(name=job, labels=labels_of(labels), team=team, limit=2))
    if not found:
        what = "no such job" if job is None else f"no job '{job}', by id or by name"
        raise InputError(f"{what}; 'fairway ls --all' lists them")
    if len(found) > 1:
        what = "jobs match" if job is None else f"jobs are called '{job}'"
        typer.echo(f"fairway: several {what}; this is the newest, {found[0].id}", err=True)
    return found[0].id
