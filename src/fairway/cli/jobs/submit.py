"""`fairway submit`: hands jobs to a running Fairway, from files or as a command; all of them, or none.

What files say is judged here, before the first job is sent, so that errors name the file; whether the cluster can run a
job, the server says.
"""

from __future__ import annotations

import re
import time
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperOption

from fairway.cli.jobs.jobs_given import jobs_of, run_here, variables_of
from fairway.cli.jobs.logs import print_pieces
from fairway.cli.jobs.which import labels_of
from fairway.cli.output import STDOUT, write_json
from fairway.cli.remote import Address, JsonTo, Token, connected
from fairway.errors import FairwayError, InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from fairway.client import Client, DryRun, Job
    from fairway.jobs.description import JobDescription

_ABOUT = re.compile(r"(?:job(?:, document (\d+))?: )?")
_COMMAND = "fairway.command"
_JOB = "The job; goes before what the file says"
_HOW = "How to submit it"


_FIELDS = {
    "accelerators": "resources.accelerators",
    "cpus": "resources.cpus",
    "memory": "resources.memory",
    "env": "envs",
    "label": "labels",
}
"""Options that are called otherwise than the fields of a job that they set."""


def _field(*names: str, metavar: str) -> Any:
    """An option for a field of a job; the field says what it means, when the help is asked for."""
    return typer.Option(*names, metavar=metavar, show_default=False, rich_help_panel=_JOB)


class SubmitCommand(TyperCommand):
    """Keeps what stands after `--` apart: it is the command to run, whatever it looks like."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Let the fields of a job say what their options mean; they are imported for the help only."""
        from fairway.cli.jobs.jobs_given import meaning_of

        for option in self.params:
            if isinstance(option, TyperOption) and option.rich_help_panel == _JOB and not option.help:
                meaning = meaning_of(_FIELDS.get(option.name or "", option.name or ""))
                option.help = f"{meaning} Repeatable." if option.multiple else meaning
        super().format_help(ctx, formatter)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take the command off, and read the rest as usual."""
        if "--" in args:
            at = args.index("--")
            ctx.meta[_COMMAND] = args[at + 1 :]
            args = args[:at]
        return super().parse_args(ctx, args)


def submit(
    ctx: typer.Context,
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE.yaml", help="Jobs, one per document; - for standard input.", show_default=False),
    ] = None,
    name: Annotated[str | None, _field("--name", "-n", metavar="NAME")] = None,
    accelerators: Annotated[str | None, _field("--accelerators", "--gpus", metavar="TYPE[:COUNT]")] = None,
    cpus: Annotated[float | None, _field("--cpus", metavar="N")] = None,
    memory: Annotated[str | None, _field("--memory", metavar="SIZE")] = None,
    team: Annotated[str | None, _field("--team", metavar="TEAM")] = None,
    weight: Annotated[float | None, _field("--weight", metavar="W")] = None,
    priority_class: Annotated[str | None, _field("--priority-class", metavar="NAME")] = None,
    steps: Annotated[int | None, _field("--steps", metavar="N")] = None,
    job_type: Annotated[str | None, _field("--job-type", metavar="NAME")] = None,
    env: Annotated[list[str] | None, _field("--env", metavar="NAME=VALUE")] = None,
    array: Annotated[str | None, _field("--array", metavar="FIRST-LAST[:STEP][%MOST]")] = None,
    after: Annotated[list[str] | None, _field("--after", metavar="JOB")] = None,
    afterok: Annotated[list[str] | None, _field("--afterok", metavar="JOB")] = None,
    notify: Annotated[str | None, _field("--notify", metavar="URL")] = None,
    label: Annotated[list[str] | None, _field("--label", "-l", metavar="NAME=VALUE")] = None,
    workdir: Annotated[str | None, _field("--workdir", metavar="DIRECTORY")] = None,
    retries: Annotated[int | None, _field("--retries", metavar="N")] = None,
    deadline: Annotated[str | None, _field("--deadline", metavar="TIME")] = None,
    no_preempt: Annotated[
        bool, typer.Option("--no-preempt", help="It keeps its workers until it ends.", rich_help_panel=_JOB)
    ] = False,
    idempotency_key: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            help="Submitted again with the same key, it is the same job.",
            show_default=False,
            rich_help_panel=_HOW,
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check it and predict its start only.", rich_help_panel=_HOW)
    ] = False,
    follow: Annotated[
        bool,
        typer.Option("--follow", "-f", help="Print its output until it ends; fails if it does.", rich_help_panel=_HOW),
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print its id only.", rich_help_panel=_HOW)] = False,
    json_to: JsonTo = None,
    address: Address = None,
    token: Token = None,
) -> None:
    """Submit training jobs: one or more files, or a command after [bold]--[/bold].

    A file may hold several documents, between lines of ---. If one of them is wrong, none is submitted.
    A job runs in the directory in which it was submitted, unless it says otherwise.

    [bold]Examples[/bold]

    fairway submit resnet.yaml

    fairway submit --name lm --accelerators v100:2 --steps 5000 -- python train.py --epochs 3

    fairway submit resnet.yaml --weight 2 --dry-run

    fairway submit --follow -- 'make data && python train.py'

    fairway submit --name sweep --array 0-99%4 -- 'python train.py --seed $FAIRWAY_ARRAY_INDEX'
    """
    needs = {"accelerators": accelerators, "cpus": cpus, "memory": memory}
    options = {
        "name": name,
        "team": team,
        "weight": weight,
        "priority_class": priority_class,
        "steps": steps,
        "job_type": job_type,
        "workdir": workdir,
        "array": array,
        "notify": notify,
        "after": after or None,
        "afterok": afterok or None,
        "retries": retries,
        "deadline": deadline,
        "preemptible": False if no_preempt else None,
        "resources": {what: asked for what, asked in needs.items() if asked is not None} or None,
        "envs": variables_of(env or []) or None,
        "labels": labels_of(label) or None,
    }
    given = {field: value for field, value in options.items() if value is not None}
    jobs = jobs_of(ctx.meta.get(_COMMAND), files or [], given)
    if follow and (len(jobs) > 1 or jobs[0][1].many):
        raise InputError("several jobs given, but --follow is for one; submit them singly")
    if follow and (dry_run or json_to is not None):
        raise InputError("--follow given with --dry-run or --json; choose one of them")

    from fairway.client.place import on_this_machine

    with connected(address, token) as client:
        if on_this_machine(client.address):
            jobs = [(source, run_here(job)) for source, job in jobs]
        if dry_run:
            _print_dry_runs([_tried(client, source, job) for source, job in jobs], json_to)
            return
        with _said_of(*(source for source, _ in jobs)):
            made = _submitted(client, [job for _, job in jobs], idempotency_key)
        _print_jobs(made, json_to, quiet=quiet)
        if follow:
            _follow(client, made[0])


def _tried(client: Client, source: str, job: JobDescription) -> DryRun:
    with _said_of(source):
        return client.submit(job, dry_run=True)


def _submitted(client: Client, jobs: Sequence[JobDescription], key: str | None) -> list[Job]:
    if len(jobs) == 1 and not jobs[0].many:
        return [client.submit(jobs[0], idempotency_key=key)]
    return client.submit_all(jobs, idempotency_key=key)


@contextmanager
def _said_of(*sources: str) -> Iterator[None]:
    """Put the name of the file before what the server says of its content; of several, the server has the number."""
    try:
        yield
    except InputError as error:
        found = _ABOUT.match(str(error))
        refused = getattr(error, "status", None) == HTTPStatus.UNPROCESSABLE_ENTITY and sources[0]
        if not refused or found is None or (len(sources) > 1 and found[1] is None):
            raise
        source = sources[int(found[1] or 1) - 1]
        raise InputError(f"{source}: {str(error)[found.end() :]}") from None


def _print_jobs(jobs: Sequence[Job], json_to: str | None, *, quiet: bool) -> None:
    if json_to is not None:
        write_json(_one_or_all([job.document for job in jobs]), json_to)
    if json_to != STDOUT:
        for job in jobs:
            typer.echo(job.id if quiet else f"{job.id} {job.state}{f' ({job.name})' if job.name else ''}")


def _one_or_all(documents: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    return documents[0] if len(documents) == 1 else {"jobs": documents}


def _print_dry_runs(tried: Sequence[DryRun], json_to: str | None) -> None:
    if json_to is not None:
        write_json(_one_or_all([one.document for one in tried]), json_to)
    if json_to == STDOUT:
        return
    from fairway.cli import words

    now = time.time()
    for one in tried:
        emulated = " (emulated)" if one.emulated else ""
        typer.echo(f"{one.job.name or 'the job'}: can run on {one.job.accelerators or 'any accelerator'}{emulated}")
        typer.echo(f"  predicted start: {words.predicted(one.prediction, now)}")
        if one.prediction is not None and one.prediction.finish_at is not None:
            typer.echo(f"  predicted finish: in {words.span(one.prediction.finish_at - now)}")
        if one.prediction is not None and one.prediction.basis:
            typer.echo(f"  {one.prediction.basis}")
    typer.echo("nothing was submitted")


def _follow(client: Client, job: Job) -> None:
    """Print what the job prints; a job that does not succeed is a failure here too."""
    print_pieces(client.logs(job, follow=True))
    ended = client.wait(job)
    if ended.state != "succeeded":
        raise FairwayError(f"{job.id} {ended.state}{f': {ended.reason}' if ended.reason else ''}")
