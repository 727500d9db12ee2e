"""The jobs that `fairway submit` was given, as the fields of a description: from files, or a command and options."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fairway.cli.given import read_given
from fairway.errors import InputError

Fields = dict[str, Any]


def jobs_of(
    command: Sequence[str] | None,
    files: Sequence[str],
    options: Mapping[str, Any],
) -> list[tuple[str, Fields]]:
    """The jobs, each with what to call its source in errors; `options` go before what files say."""
    if command is not None and files:
        raise InputError(f"{files[0]} and a command after -- both given; submit them singly")
    if command is not None:
        if not command:
            raise InputError("no command after --; expected one, as in 'fairway submit -- python train.py'")
        # One word with blanks in it is meant for a shell, as in -- 'make data && python train.py'.
        run = command[0] if len(command) == 1 and " " in command[0] else list(command)
        return [("", _with({"run": run}, options))]
    if not files:
        raise InputError("nothing to submit; name a file, or give a command after --")
    if options.get("name") is not None and len(files) > 1:
        raise InputError(f"--name given for {len(files)} files; names are for one job each")
    return [(file, _read(file, options)) for file in files]


def _read(file: str, options: Mapping[str, Any]) -> Fields:
    from fairway.live.job_spec import job_document, parse_job_spec

    text, source = read_given(file)
    parse_job_spec(text, source)  # names the line or the field, if there is one to blame
    fields: Fields = job_document(text, source)
    if options:
        fields = _with(fields, options)
        parse_job_spec(json.dumps(fields), f"{source} with the options given")
    return fields


def _with(fields: Fields, options: Mapping[str, Any]) -> Fields:
    """The fields of a job with options in their place."""
    same = {"weight": "priority", "deadline": "slo", "job_type": "profile"}  # two names for one thing
    taken = {same[name] for name in options if name in same}
    merged = {name: value for name, value in fields.items() if name not in taken}
    for name, value in options.items():
        if name == "accelerators":
            merged["resources"] = {**(merged.get("resources") or {}), "accelerators": value}
        elif name == "envs":
            merged["envs"] = {**(merged.get("envs") or {}), **value}
        else:
            merged[name] = value
    return merged


def variables_of(given: Sequence[str]) -> dict[str, str]:
    """The variables of `NAME=VALUE`."""
    variables: dict[str, str] = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or not name:
            raise InputError(f"--env: '{one}' given, expected NAME=VALUE, as in DATA=/data")
        variables[name] = value
    return variables


def run_here(fields: Fields) -> Fields:
    """The same job, in the directory that somebody here would expect: relative paths begin where the command runs."""
    here = {**fields, "workdir": _absolute(fields.get("workdir") or ".")}
    checkpoint = fields.get("checkpoint")
    if isinstance(checkpoint, dict) and isinstance(checkpoint.get("directory"), str):
        here["checkpoint"] = {**checkpoint, "directory": _absolute(checkpoint["directory"])}
    return here


def _absolute(path: str) -> str:
    return str(Path(path).expanduser().absolute())
