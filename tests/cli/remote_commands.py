"""Commands against a server that answers what a test wants: how they are run, and what they print or refuse."""

from __future__ import annotations

import json
from typing import Any

from typer.testing import CliRunner, Result

from fairway.cli.main import app


def run(*arguments: str, text: str | None = None) -> Result:
    return CliRunner().invoke(app, arguments, input=text)


def printed(*arguments: str, text: str | None = None) -> str:
    result = run(*arguments, text=text)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def document(command: str, *arguments: str) -> Any:
    return json.loads(printed(command, "--json", "-", *arguments))


def refused(*arguments: str, status: int = 2, text: str | None = None) -> str:
    result = run(*arguments, text=text)
    assert result.exit_code == status, result.output
    assert result.stderr.startswith("fairway: ")
    assert result.stderr.count("\n") == 1
    return result.stderr.removeprefix("fairway: ").rstrip("\n")
