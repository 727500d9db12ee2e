"""Names from files and the command line show as the text that they are, in every field of a record."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import pytest
from fairway.report.serving.page import serving_page
from fairway.report.training.charts import plotly_text
from fairway.report.training.page import page

from fairway.sim.scenario import ColdStarts
from tests.report.records import four_jobs, jobs, leases, record
from tests.report.serving.test_page import record as serving_record
from tests.report.serving.test_window import record as window_record
from tests.report.training.test_page import Elements

HOSTILE = "<script>alert(1)</script><!--<img src=x onerror=alert(2)>\"'`&lt;{{7*7}}{% raw %}{# %{x}\\u003c\u2028"
"""Ends a script, hides one, opens tags and attributes, and means something to Jinja2, to plotly and to JSON."""

LOOKED_UP = {"seed", "entities"}
"""Settings that a page reads by their names."""

Value = TypeVar("Value")


def hostile(value: Value) -> Value:
    """The same value with every name in it hostile, however deep it is."""
    made: Any = value
    if isinstance(value, str):
        made = HOSTILE + value
    elif isinstance(value, Mapping):
        made = {key if key in LOOKED_UP else hostile(key): hostile(member) for key, member in value.items()}
    elif isinstance(value, tuple):
        made = tuple(hostile(member) for member in value)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        made = replace(
            value, **{field.name: hostile(getattr(value, field.name)) for field in dataclasses.fields(value)}
        )
    return made  # type: ignore[no-any-return]


def harmless(value: Any, written: str) -> Any:
    """What is left of a page's data without the hostile part of its names, in the form in which they are written."""
    if isinstance(value, str):
        return value.replace(written, "")
    if isinstance(value, dict):
        return {harmless(key, written): harmless(member, written) for key, member in value.items()}
    return [harmless(member, written) for member in value] if isinstance(value, list) else value


def text_of(found: Elements) -> str:
    """The text of a page, without the hostile part of names as HTML shows them, and as JSON in HTML does."""
    in_json = json.dumps(HOSTILE, ensure_ascii=False)[1:-1]
    return "".join(found.text).replace(in_json, "").replace(HOSTILE, "")


def drawn(data: Any) -> str:
    """What plotly draws, as text: it reads tags in it, and `%{x}`. The Gantt charts' names never get to plotly."""
    return json.dumps([data["figures"], [dict(detail, gantt=None) for detail in data["details"]]])


def assert_same_but_for_names(page: str, hostile_page: str) -> Elements:
    """That the elements, their attributes, the other text and the charts of two pages are the same."""
    plain, found = Elements(page), Elements(hostile_page)
    assert found.found == plain.found
    assert text_of(found) == text_of(plain)
    data, hostile_data = json.loads(plain.data), json.loads(found.data)
    assert re.findall("<[^>]*>|%{", drawn(hostile_data)) == re.findall("<[^>]*>|%{", drawn(data))
    assert harmless(harmless(hostile_data, plotly_text(HOSTILE)), HOSTILE) == data
    assert "<!--" not in hostile_page
    assert hostile_page.count("<script") == page.count("<script")
    return found


def test_in_a_page_about_training() -> None:
    settings = {"seed": 0, "trace": "jobs.tsv", "entities": {"red": {"weight": 2.0}, "blue": {"weight": 1.0}}}
    teams = replace(four_jobs(), settings=settings)
    columns = jobs(ids="ef", job_types=["LM", "A3C"], weight=[1, 2], finish=[100, 100], isolated_seconds=[50.0, 100.0])
    workers = {"v100": 2, "k80": 1}
    pair = record(
        columns, leases([(0, 0, 0, 100, [0])], partners=[1]), policy="isolated", workers=workers, makespan=100
    )
    runs = [teams, replace(teams, policy="makespan"), replace(teams, settings={**settings, "seed": 1}), pair]
    command = "fairway simulate training --trace jobs.tsv"
    found = assert_same_but_for_names(
        page(runs, command=command), page([hostile(run) for run in runs], command=hostile(command))
    )
    text, data = "".join(found.text), json.loads(found.data)
    for name in ("fifo", "v100", "fifo, seed 1", "fairway simulate training"):
        assert HOSTILE + name in text
    assert [HOSTILE + "e", HOSTILE + "LM", None, 1] in data["details"][3]["gantt"]["jobs"]
    assert data["details"][0]["gantt"]["legend"] == [HOSTILE + "red", HOSTILE + "blue"]
    assert set(data["figures"]) >= {"completion", "teams", "weights", "fairness", "queue", "utilization", "cost"}


@pytest.mark.parametrize("workflows", [4, 9], ids=["a panel for each workflow", "more workflows than panels"])
def test_in_a_page_about_serving(workflows: int) -> None:
    made = serving_record()
    facts = made.workflows + tuple(replace(made.workflows[0], name=f"more {k}") for k in range(workflows - 4))
    seen = replace(made.staleness, load_seconds=np.ones_like(made.staleness.load_seconds))
    made = replace(
        made, workflows=facts, staleness=seen, refusals=("too large",), settings={"seed": 1, "trace": "x.csv"}
    )
    runs = [made, replace(made, scheduler="hash"), replace(made, settings={"seed": 2})]
    command = "fairway simulate serving --arrivals trace:x.csv"
    found = assert_same_but_for_names(
        serving_page(runs, command=command), serving_page([hostile(run) for run in runs], command=hostile(command))
    )
    text = "".join(found.text)
    for name in ("hash", "compass, seed 2", "fairway simulate serving"):
        assert HOSTILE + name in text
    in_json = json.dumps(HOSTILE, ensure_ascii=False)[1:-1]
    for name in ("w0", "translation", "x.csv"):
        assert in_json + name in text
    charts, in_figure = drawn(json.loads(found.data)), json.dumps(plotly_text(HOSTILE))[1:-1]
    for name in (made.workers.names[0], made.workflows[0].name, made.workflows[0].stages[0], made.models[0]):
        assert in_figure + name in charts


def test_in_a_page_about_runs_with_bills_and_cold_starts() -> None:
    runs = [window_record(scheduler, cold=ColdStarts(0)) for scheduler in ("esg", "compass")]
    found = assert_same_but_for_names(
        serving_page(runs, command="x"), serving_page([hostile(run) for run in runs], command=hostile("x"))
    )
    figures = json.loads(found.data)["figures"]
    assert {"trade", "sizes", "cold"} <= set(figures)
    assert figures["trade"]["data"][0]["text"] == [plotly_text(HOSTILE + "esg")]
