"""A job as the body of a submission, from any of the forms in which people have one."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

from fairway.errors import InputError

JSON = "application/json"
YAML = "application/yaml"


@runtime_checkable
class Documented(Protocol):
    """Anything that can say itself as the fields of a job, as `fairway.live.job_spec.JobSpec` does."""

    def document(self) -> Mapping[str, Any]:
        """The fields, as in YAML."""


JobLike: TypeAlias = Mapping[str, Any] | Documented | str | os.PathLike[str]
"""A job: its fields, an object that can tell them, YAML or JSON as text, or the path of a file with either."""


def job_body(job: JobLike) -> tuple[bytes, str]:
    """The bytes of a job, and their media type."""
    match job:
        case str():
            if "\n" not in job and job.strip().lower().endswith((".yaml", ".yml", ".json")):
                raise InputError(f"job: '{job}' given, which is no YAML; give Path('{job}') to submit a file")
            return job.encode("utf-8", "replace"), YAML
        case os.PathLike():
            return _content(Path(job)), YAML
        case Mapping():
            return _as_json(job), JSON
        case Documented():
            return _as_json(job.document()), JSON
    raise InputError(f"job: {type(job).__name__} given, expected a mapping, YAML as text, or a path")


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}; name a file with a job") from None


def _as_json(fields: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(dict(fields), allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise InputError(f"job: cannot be written as JSON: {error}; use text, numbers, lists and mappings") from None
