"""What the documentation says of options is what they are when they are left out."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from fairway import CONFIGURATORS, PLACERS, POLICIES

DOCS = Path(__file__).parents[1] / "docs"
PAGES = {"placement.md": PLACERS, "configuration.md": CONFIGURATORS, "policies.md": POLICIES}
PARTS = [(page, name) for page, parts in PAGES.items() for name in parts]


def _given(text: str) -> dict[str, str]:
    """All `option=value` of a text; of several, the first."""
    return {name.replace("-", "_"): value for name, value in reversed(re.findall(r"`([a-z-]+)=([a-z0-9.]+)`", text))}


def _documented(page: str, name: str) -> dict[str, str]:
    """The options in the row of a part, or in the paragraph on its options, or else anywhere on its page."""
    text = (DOCS / page).read_text()
    rows = [line for line in text.splitlines() if line.startswith(f"| `{name}` |")]
    paragraphs = [part for part in text.split("\n\n") if part.startswith(f"Options of `{name}`")]
    found = [given for part in (*rows, *paragraphs) if (given := _given(part))]
    return found[0] if found else _given(text) if page == "policies.md" else {}


@pytest.mark.parametrize(("page", "name"), PARTS)
def test_every_option_with_a_value_is_documented_with_what_it_is_by_default(page: str, name: str) -> None:
    part: Any = PAGES[page][name]
    given = _documented(page, name)
    for option in fields(part):
        if not isinstance(option.default, bool | None):
            assert option.name in given, f"{page} does not say what {option.name} of {name} is"
            assert type(option.default)(given[option.name]) == option.default
