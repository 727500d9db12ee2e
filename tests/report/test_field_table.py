"""Tables of fields: the documentation says what the code does."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pytest
from pydantic import AliasChoices, BaseModel, Field

from fairway.report.field_table import field_table, with_tables

DOCS = Path(__file__).parents[2] / "docs"


class Inner(BaseModel):
    size: int | None = Field(default=None, description="How large it is.", examples=[2, {"a": [1, "b"]}])


class Outer(BaseModel):
    name: str = Field(description="Its name, or `a|b`.")
    inner: Annotated[Inner, "noted"] = Inner()
    weight: float = Field(default=1.0, validation_alias=AliasChoices("weight", "priority"), description="Its weight.")
    ready: bool = Field(default=True, description="Whether it is ready.")


def test_a_row_says_the_names_the_meaning_examples_and_the_default() -> None:
    assert field_table(Outer).splitlines() == [
        "| field | meaning | for example | default |",
        "| --- | --- | --- | --- |",
        "| `name` | Its name, or `a\\|b` |  |  |",
        "| `inner.size` | How large it is | `2`, `{a: [1, b]}` |  |",
        "| `weight` (or `priority`) | Its weight |  | `1` |",
        "| `ready` | Whether it is ready |  | `true` |",
    ]


@pytest.mark.parametrize(("page", "tables"), [("live.md", 1), ("serve.md", 1)])
def test_the_tables_of_the_documentation_are_current(page: str, tables: int) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    assert text.count("<!-- fields of ") == tables
    assert with_tables(text) == text, "run 'make tables'"


def test_a_table_that_is_out_of_date_is_written_anew() -> None:
    text = (DOCS / "live.md").read_text(encoding="utf-8")
    assert with_tables(text.replace("| `retries` |", "| `tries` |")) == text
