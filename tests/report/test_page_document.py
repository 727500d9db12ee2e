"""The frame of pages: templates that escape, one way past them, sections that stand alone."""

from __future__ import annotations

import json
import re
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
import pytest
from fairway.report.page_document import (
    Column,
    NumberCell,
    NumberRow,
    Numbers,
    Origin,
    Page,
    Section,
    _templates,
    chart_section,
    raw_text,
    render,
    title_of,
)
from fairway.report.serving.charts import cache_chart
from fairway.report.training.charts import log_ticks

import fairway.report
from fairway.report.serving import page as serving_page
from tests.report.serving.test_page import record
from tests.report.training.test_page import Elements


def page(*sections: Section, labels: tuple[str, ...] = ("a", "b")) -> Page:
    row = NumberRow("a", "#000000", "solid", (NumberCell("1.0", "±0.1", best=True),))
    numbers = Numbers("policy", (Column("mean JCT (h)", "mean"),), (row,), ("A note.",))
    return Page("a", "two runs", "a wins", numbers, sections, labels, Origin("simulated", "All of it."), "x", {"y": 1})


@pytest.mark.parametrize("text", ["</script>", "</SCRIPT >", "<!--", "<script>", "a</style >", "<!--<script></script>"])
def test_no_text_can_end_or_hide_the_element_that_it_stands_in(text: str) -> None:
    written = raw_text(json.dumps(text))
    assert not re.search("<(!--|/?script|/?style)", written, re.IGNORECASE)
    assert json.loads(written) == text


def test_other_code_stays_as_it_is() -> None:
    code = 'if (a < b && c<!d) { e = "<br>"; }'
    assert raw_text(code) == code


def test_there_is_one_way_past_the_escaping() -> None:
    folder = Path(str(resources.files(fairway.report)))
    marked = {path.name for path in folder.glob("*.py") if "Markup" in path.read_text()}
    assert marked == {"page_document.py"}
    for template in (folder / "templates").glob("*.html"):
        assert not re.search(r"\|\s*safe|autoescape", template.read_text()), template.name


def test_a_template_that_shows_what_is_not_there_fails() -> None:
    with pytest.raises(jinja2.UndefinedError):
        _templates().from_string("{{ page.missing }}").render(page=page())


def test_runs_are_chosen_in_the_first_section_that_shows_one_at_a_time() -> None:
    figure: dict[str, Any] = {"data": [], "layout": {}}
    empty = Section("x", "X", "x", "", of_runs=(None, None), empty="No x was kept.", template="run_chart.html")
    first, second = (
        Section(name, name, name, "", of_runs=(figure, None), empty_run="None.", template="run_chart.html")
        for name in "yz"
    )
    found = Elements(render(page(empty, first, second)))
    assert [attributes["id"] for tag, attributes in found.found if attributes.get("id") == "runs"] == ["runs"]
    assert {"y", "no-y", "z", "no-z"} <= found.ids
    assert not {"x", "no-x"} & found.ids
    assert "No x was kept." in "".join(found.text)
    assert json.loads(found.data)["details"] == [
        {"x": None, "y": figure, "z": figure},
        {"x": None, "y": None, "z": None},
    ]
    assert "runs" not in Elements(render(page(replace_runs(first), labels=("a",)))).ids


def replace_runs(section: Section) -> Section:
    return Section(
        section.name, section.heading, section.link, "", of_runs=section.of_runs[:1], template=section.template
    )


def test_a_section_is_added_without_touching_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    before = Elements(serving_page.serving_page([record()], command="x"))

    def budgets(runs: Any) -> Section | None:
        return chart_section("budgets", "What stages were given", "budgets", "Seconds.", cache_chart(runs))

    monkeypatch.setattr(serving_page, "SECTIONS", (*serving_page.SECTIONS, budgets))
    after = Elements(serving_page.serving_page([record()], command="x"))
    assert after.ids - before.ids == {"budgets", "about-budgets"}
    assert ("a", {"href": "#about-budgets"}) in after.found
    figures = json.loads(after.data)["figures"]
    assert figures.pop("budgets")
    assert figures == json.loads(before.data)["figures"]


def test_a_chart_without_data_is_left_out_or_says_why() -> None:
    assert chart_section("x", "X", "x", "", None) is None
    section = chart_section("x", "X", "x", "", None, empty="No x.")
    assert section is not None
    assert not section.drawn
    assert "No x." in "".join(Elements(render(page(section))).text)


def test_the_title_names_up_to_three() -> None:
    assert title_of(["a", "a"], "things") == "a"
    assert title_of(["a", "b"], "things") == "a against b"
    assert title_of(["a", "b", "c", "a"], "things") == "a, b and c"
    assert title_of("abcd", "things compared") == "4 things compared"


@pytest.mark.parametrize(("low", "high"), [(0.3, 20.0), (1.0, 60.0), (1e-3, 1e3)])
def test_a_logarithmic_axis_has_a_few_ticks_that_are_written_out(low: float, high: float) -> None:
    axis = log_ticks(low, high)
    shown = [text for tick, text in zip(axis["tickvals"], axis["ticktext"], strict=True) if low <= tick <= high]
    assert 3 <= len(shown) <= 8
    assert [float(text) for text in shown] == sorted(float(text) for text in shown)


def test_a_short_logarithmic_axis_is_left_to_plotly() -> None:
    assert "tickvals" not in log_ticks(1.1, 1.4)
    assert "tickvals" not in log_ticks(1.0, 1.0)
