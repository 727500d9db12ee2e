"""`fairway policies`: which policies there are, what each is after and which options it takes."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from fairway.cli.output import write_json


def policies(
    json_to: Annotated[
        str | None, typer.Option("--json", metavar="-|FILE", help="Print as JSON (-), or write it to a file.")
    ] = None,
) -> None:
    """List the policies, with what each is after and the options it takes."""
    from fairway.allocate.policies import POLICIES

    listed = [{"name": name, "about": _about(policy), "options": _options(policy)} for name, policy in POLICIES.items()]
    if json_to is not None:
        write_json({"policies": listed}, json_to)
    else:
        _print_table(listed)


def _about(policy: Callable[..., Any]) -> str:
    """The first paragraph of its documentation, up to the end of the first sentence."""
    text = " ".join((inspect.getdoc(policy) or "").split("\n\n")[0].split())
    return text.split(". ")[0].rstrip(".")


def _options(policy: Any) -> list[str]:
    """Its parameters as they are written after the name: a word for a flag, NAME=VALUE for the rest."""
    names = [(field.name.replace("_", "-"), field.default is False) for field in dataclasses.fields(policy)]
    return [name if is_flag else f"{name}=VALUE" for name, is_flag in names]


def _print_table(listed: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("policy", "what it does", "options", box=None, pad_edge=False, padding=(0, 2, 1, 0))
    table.columns[0].no_wrap = True
    for policy in listed:
        table.add_row(policy["name"], Text(policy["about"]), Text("\n".join(policy["options"])))
    Console().print(table)
