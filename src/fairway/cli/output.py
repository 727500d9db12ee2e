"""Prints and writes results: JSON that any parser takes, files that are whole or not there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import typer

from fairway.report.plain_json import plain
from fairway.report.whole_file import write_whole

STDOUT = "-"
"""What stands for standard output, or input, where a file can be named."""


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
    write_whole(target, json_text(document))
