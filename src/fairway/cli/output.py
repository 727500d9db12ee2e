"""Prints and writes results: JSON that any parser takes, files that are whole or not there."""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import typer

from fairway.errors import InputError

STDOUT = "-"
"""What stands for standard output, or input, where a file can be named."""


def plain(value: Any) -> Any:
    """The same value in terms of JSON: arrays as lists, null for what is not a finite number, text for the rest."""
    if hasattr(value, "tolist"):  # numpy's arrays and scalars
        value = value.tolist()
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else None
        case Mapping():
            return {str(key): plain(member) for key, member in value.items()}
        case Iterable():
            return [plain(member) for member in value]
    return str(value)


def json_text(document: Mapping[str, Any]) -> str:
    """The document as JSON for people too: a line for each field, and for each member of a list or object in it."""
    lines = []
    for name, value in plain(document).items():
        if isinstance(value, dict) and value:
            members = [f"{json.dumps(key)}: {_compact(member)}" for key, member in value.items()]
            text = "{\n    " + ",\n    ".join(members) + "\n  }"
        elif isinstance(value, list) and value:
            text = "[\n    " + ",\n    ".join(map(_compact, value)) + "\n  ]"
        else:
            text = _compact(value)
        lines.append(f"  {json.dumps(name)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _compact(value: Any) -> str:
    return json.dumps(value, allow_nan=False)


def write_json(document: Mapping[str, Any], target: str) -> None:
    """Print the document, or write it to a file that appears whole or not at all."""
    if target == STDOUT:
        typer.echo(json_text(document), nl=False)
        return
    try:
        _write_whole(Path(os.path.realpath(target)), json_text(document))
    except OSError as error:
        raise InputError(f"{target}: cannot be written: {error.strerror or error}; name a file that can") from None


def _write_whole(path: Path, text: str) -> None:
    if path.exists() and not path.is_file():  # a device or a pipe cannot be replaced, and must not be
        path.write_text(text, encoding="utf-8")
        return
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            shutil.copymode(path, part)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
