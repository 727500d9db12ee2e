"""A job as the body of a submission, from any of the forms in which people have one.

It is read here by the same model as at the server, so that a mistake is found before anything is sent, with the name of
the file; and it is sent in the one form in which the server keeps it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from fairway.errors import InputError

if TYPE_CHECKING:
    from fairway.jobs.description import JobDescription

JobLike: TypeAlias = "Mapping[str, Any] | JobDescription | str | os.PathLike[str]"
"""A job: its fields, its description, YAML or JSON as text, or the path of a file with either."""


def job_body(job: JobLike) -> bytes:
    """A job as the JSON of its document; refuses a description of several."""
    description = described(job)
    if description.many:
        raise InputError("job: an array or matrix given, which is several jobs; submit it by submit_all")
    return json.dumps(description.document()).encode()


def jobs_body(jobs: JobLike | Sequence[JobLike]) -> bytes:
    """Jobs as a list in JSON; text and files may have several."""
    several = [jobs] if isinstance(jobs, str | Mapping) or not isinstance(jobs, Sequence) else jobs
    documents = [one.document() for job in several for one in described_all(job)]
    if not documents:
        raise InputError("no jobs given, expected at least one")
    return json.dumps(documents).encode()


def described_all(job: JobLike) -> list[JobDescription]:
    """The descriptions of all the jobs that a text or a file has, or of the one job that anything else is."""
    from fairway.jobs.description import parse_jobs  # noqa: PLC0415

    if isinstance(job, os.PathLike):
        return parse_jobs(_content(Path(job)), str(job))
    if isinstance(job, str):
        _refuse_path(job)
        return parse_jobs(job, "job")
    return [described(job)]


def described(job: JobLike) -> JobDescription:
    """The description of a job; refuses what is none."""
    # A client that submits nothing need not wait for pydantic and YAML.
    from fairway.jobs.description import JobDescription, job_of, parse_job  # noqa: PLC0415

    match job:
        case JobDescription():
            return job
        case str():
            _refuse_path(job)
            return parse_job(job, "job")
        case os.PathLike():
            return parse_job(_content(Path(job)), str(job))
        case Mapping():
            return job_of(job, "job")
    raise InputError(f"job: {type(job).__name__} given, expected a mapping, YAML as text, or a path")


def _refuse_path(text: str) -> None:
    if "\n" not in text and text.strip().lower().endswith((".yaml", ".yml", ".json")):
        raise InputError(f"job: '{text}' given, which is no YAML; give Path('{text}') to submit a file")


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}; name a file with a job") from None
