"""The fields of a pydantic model as a table of the documentation: a field is described once, where it is declared.

A page has the table between two comments, of which the first names the model:

    <!-- fields of fairway.jobs.description:JobDescription -->
    <!-- end of fields -->

`python -m fairway.report.field_table docs/live.md` writes the tables of a page anew; a test compares them.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from fairway.documents import names_of

_TABLE = re.compile(r"(<!-- fields of ([\w.]+):(\w+) -->\n).*?(<!-- end of fields -->)", re.DOTALL)
_HEAD = ("field", "meaning", "for example", "default")


def field_table(model: type[BaseModel]) -> str:
    """The table in Markdown: a row for each field, those of an object inside by their path."""
    rows = [_HEAD, ("---",) * len(_HEAD), *_rows(model)]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |\n" for row in rows)


def with_tables(page: str) -> str:
    """A page with the tables that belong between its comments."""

    def written(found: re.Match[str]) -> str:
        model = getattr(import_module(found[2]), found[3])
        return f"{found[1]}\n{field_table(model)}\n{found[4]}"

    return _TABLE.sub(written, page)


def _rows(model: type[BaseModel], before: str = "") -> Iterator[tuple[str, ...]]:
    names = names_of(model)
    for field, facts in model.model_fields.items():
        if isinstance(facts.annotation, type) and issubclass(facts.annotation, BaseModel):
            yield from _rows(facts.annotation, f"{before}{field}.")
            continue
        others = [f"`{name}`" for name, means in names.items() if means == field and name != field]
        name = f"`{before}{field}`" + (f" (or {', '.join(others)})" if others else "")
        yield name, (facts.description or "").removesuffix("."), ", ".join(examples_of(facts)), _default(facts)


def examples_of(facts: FieldInfo) -> list[str]:
    """The examples of a field, as one would write them in YAML."""
    return [f"`{_written(example)}`" for example in facts.examples or ()]


def _default(facts: FieldInfo) -> str:
    default = facts.default
    return f"`{_written(default)}`" if isinstance(default, str | int | float) else ""


def _written(value: Any) -> str:
    match value:
        case str():
            return value
        case dict():
            return "{" + ", ".join(f"{name}: {_written(one)}" for name, one in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(_written, value)) + "]"
        case float():
            return f"{value:g}"
    return json.dumps(value)


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        path.write_text(with_tables(path.read_text(encoding="utf-8")), encoding="utf-8")
