"""The frame of every page of a report: one HTML file that loads nothing.

Python prepares the plain values of a `Page`, the templates beside this module show them, and Jinja2 escapes each one.
What HTML does not read entities in, the scripts, the styles and the data of the charts, goes in through `raw_text`,
the only way past the escaping. Nothing else can get in: the content policy forbids the page to load anything, and to
run any script but the two that are written here.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from fairway.report.training.charts import Figure

_LEAVES_RAW_TEXT = re.compile(r"<(?=!--|/?script|/?style)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Origin:
    """How the runs of a page came about, in a word and in a paragraph."""

    word: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Column:
    """The heading of a column of numbers, and what it means."""

    title: str
    meaning: str


@dataclass(frozen=True, slots=True)
class NumberCell:
    """A number in print, with its spread over several seeds; `best` marks the best of its column."""

    text: str
    spread: str = ""
    best: bool = False


@dataclass(frozen=True, slots=True)
class NumberRow:
    """The numbers of a policy or scheduler, and the line by which it is known in the charts."""

    name: str
    colour: str
    border_style: str
    cells: tuple[NumberCell, ...]


@dataclass(frozen=True, slots=True)
class Numbers:
    """The table of a page, and sentences about what its averages leave out; `of` says what a row is."""

    of: str
    columns: tuple[Column, ...]
    rows: tuple[NumberRow, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Section:
    """One thing that a page shows, under a heading of its own and with a link to it at the top of the page.

    `figure` is a chart of all runs. `of_runs` has, run by run, what the page's script draws of the run that the reader
    chooses. Where neither holds anything, the page says `empty`; where the chosen run has nothing, it says `empty_run`.
    `template` is the file that shows the section; a `nested` one belongs to the section before it.
    """

    name: str
    heading: str
    link: str
    meaning: str
    figure: Any | None = None
    of_runs: tuple[Any | None, ...] = ()
    empty: str = ""
    empty_run: str = ""
    template: str = "chart.html"
    nested: bool = False

    @property
    def drawn(self) -> bool:
        """Whether there is anything to draw."""
        return self.figure is not None or any(part is not None for part in self.of_runs)


@dataclass(frozen=True, slots=True, eq=False)
class Page:
    """What a page says: `labels` are the names of its runs, `command` repeats them, `settings` are all they had."""

    title: str
    about: str
    finding: str
    numbers: Numbers
    sections: tuple[Section, ...]
    labels: tuple[str, ...]
    origin: Origin
    command: str
    settings: Mapping[str, Any]

    @property
    def chooser(self) -> Section | None:
        """The section in which the reader chooses a run: the first that shows one at a time."""
        return next((section for section in self.sections if section.of_runs and section.drawn), None)

    @property
    def settings_text(self) -> str:
        """The settings as a reader may copy them."""
        return json.dumps(self.settings, indent=2, ensure_ascii=False, allow_nan=False)

    @property
    def data(self) -> dict[str, Any]:
        """What the page's script draws: the figures by section, and what is drawn of each run by section."""
        return {
            "figures": {section.name: section.figure for section in self.sections if section.figure is not None},
            "details": [
                {section.name: section.of_runs[number] for section in self.sections if section.of_runs}
                for number in range(len(self.labels))
            ],
        }


def chart_section(
    name: str, heading: str, link: str, meaning: str, figure: Figure | None, *, empty: str = ""
) -> Section | None:
    """A section with one chart of all runs; without the chart it says `empty`, or is left out where that is nothing."""
    if figure is None and not empty:
        return None
    return Section(name, heading, link, meaning, figure=parts(figure), empty=empty)


def title_of(names: Sequence[str], many: str) -> str:
    """The title of a page about some policies or schedulers; `many` is what it says of more than three."""
    different = list(dict.fromkeys(names))
    if len(different) > 3:
        return f"{len(different)} {many}"
    return f"{different[0]}, {different[1]} and {different[2]}" if len(different) == 3 else " against ".join(different)


def parts(figure: Figure | None) -> Any:
    """A figure's traces and layout, without plotly's own template: the page has its own."""
    if figure is None:
        return None
    parts = json.loads(figure.to_json())
    parts["layout"].pop("template", None)
    return parts


def render(page: Page) -> str:
    """The whole page as HTML."""
    return _templates().get_template("page.html").render(page=page, **_frame(page.title, page.data))


def raw_text(text: str) -> Markup:
    """Text as it stands in a script or a style element, where HTML reads no entities.

    HTML reads three things there all the same: `</script` ends the element, and `<!--` and `<script` can make it ignore
    that end. In JSON, and in the strings and patterns of JavaScript, `<` can be written as a number, and then none of
    them is left.
    """
    return Markup(_LEAVES_RAW_TEXT.sub(r"\\u003c", text))


@functools.cache
def _templates() -> Environment:
    return Environment(
        loader=PackageLoader("fairway.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _frame(title: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """What the frame of any page shows; `data` holds the figures, and the details of each run, for its script."""
    # In JSON, < stands in texts only, so that it can be written as a number wherever it is.
    payload = json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return {"title": title, "style": _packaged("style.css"), "scripts": _scripts(), "data": raw_text(payload)}


@functools.cache
def _scripts() -> tuple[tuple[Markup, str], ...]:
    """The scripts of every page, each with the hash by which the content policy knows it."""
    codes = (raw_text(get_plotlyjs()), _packaged("script.js"))
    return tuple((code, base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()) for code in codes)


@functools.cache
def _packaged(name: str) -> Markup:
    return raw_text((resources.files("fairway.report") / "templates" / name).read_text(encoding="utf-8"))
