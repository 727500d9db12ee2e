"""The jobs that `fairway submit` is given, as descriptions: from files, or from a command and options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairway.cli.given import read_given
from fairway.errors import InputError

if TYPE_CHECKING:
    from fairway.jobs.description import JobDescription


def jobs_of(
    command: Sequence[str] | None, files: Sequence[str], options: Mapping[str, Any]
) -> list[tuple[str, JobDescription]]:
    """The jobs, each with the name of its file; `options` are fields of a document, and go before what files say."""
    if command is not None and files:
        raise InputError(f"{files[0]} and a command after -- both given; submit them singly")
    if command is not None:
        if not command:
            raise InputError("no command after --; expected one, as in 'fairway submit -- python train.py'")
        from fairway.jobs.description import job_of

        # One word with blanks in it is meant for a shell, as in -- 'make data && python train.py'.
        run = command[0] if len(command) == 1 and " " in command[0] else list(command)
        return [("", job_of({"run": run, **options}, "job"))]
    if not files:
        raise InputError("nothing to submit; name a file, or give a command after --")
    jobs = [(source, job) for file in files for source, job in _read(file, options)]
    if options.get("name") is not None and len(jobs) > 1:
        raise InputError(f"--name given for {len(jobs)} jobs; names are for one each")
    return jobs


def _read(file: str, options: Mapping[str, Any]) -> list[tuple[str, JobDescription]]:
    from fairway.jobs.description import parse_jobs

    text, source = read_given(file, "a job file")
    jobs = parse_jobs(text, source)
    if len(jobs) == 1:
        return [(file, _with_options(jobs[0], source, options))]
    sources = [f"{source}, document {number}" for number in range(1, len(jobs) + 1)]
    return [(one, _with_options(job, one, options)) for one, job in zip(sources, jobs, strict=True)]


def _with_options(job: JobDescription, source: str, options: Mapping[str, Any]) -> JobDescription:
    from fairway.jobs.description import job_of

    if not options:
        return job
    fields = job.document()
    for name, value in options.items():  # of an object, such as resources or envs, the members that are given
        fields[name] = {**fields.get(name, {}), **value} if isinstance(value, dict) else value
    return job_of(fields, f"{source} with the options given")


def variables_of(given: Sequence[str]) -> dict[str, str]:
    """The variables of `NAME=VALUE`."""
    variables: dict[str, str] = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or not name:
            raise InputError(f"--env: '{one}' given, expected NAME=VALUE, as in DATA=/data")
        variables[name] = value
    return variables


def run_here(job: JobDescription) -> JobDescription:
    """The same job with whole paths: relative ones begin where the command runs, as its user expects."""
    here: dict[str, Any] = {"workdir": _absolute(job.workdir or ".")}
    if job.checkpoint.directory is not None and not job.checkpoint.at_url:
        here["checkpoint"] = job.checkpoint.model_copy(update={"directory": _absolute(job.checkpoint.directory)})
    return job.model_copy(update=here)


def _absolute(path: str) -> str:
    return str(Path(path).expanduser().absolute())


def meaning_of(field: str) -> str:
    """What a field of a job means, by its path in a description, as a line of help in Rich's markup."""
    from rich.markup import escape

    from fairway.jobs.description import JobDescription

    fields = JobDescription.model_fields
    *around, last = field.split(".")
    for name in around:
        fields = fields[name].annotation.model_fields  # type: ignore[union-attr]
    facts = fields[last]
    examples = [str(example) for example in facts.examples or () if isinstance(example, str | int)]
    line = f"{facts.description} As in {', '.join(examples)}." if examples else f"{facts.description}"
    return escape(line.replace("`", ""))
