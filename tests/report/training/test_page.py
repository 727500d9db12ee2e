"""The page about runs: whole, offline, safe, and not too large."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairway.report.page_document import Origin
from fairway.report.training.page import page, write_page

from fairway.errors import InputError
from fairway.report.training.record import TrainingRecord
from tests.report.records import four_jobs, jobs, leases, many_leases, nothing_ran, record

HOSTILE = "</script><img src=x onerror=alert(1)>&amp;\"'"


class Elements(HTMLParser):
    """All elements with their attributes, and the text of all but scripts and styles."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.data = ""
        self._inside: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self._inside.append("report" if ("id", "report") in attrs else tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._inside or tag == "script":
            self._inside.pop()

    def handle_data(self, data: str) -> None:
        if self._inside and self._inside[-1] == "report":
            self.data += data
        elif not self._inside or self._inside[-1] not in {"script", "style"}:
            self.text.append(data)

    @property
    def ids(self) -> set[str]:
        return {attributes["id"] or "" for _, attributes in self.found if "id" in attributes}


def elements(*records: TrainingRecord, command: str = "fairway simulate training") -> Elements:
    return Elements(page(records, command=command))


def test_every_section_is_there() -> None:
    found = elements(four_jobs(), replace(four_jobs(), policy="max-min-fairness"))
    sections = {"completion", "teams", "fairness", "queue", "utilization", "cost", "gantt", "shares", "settings"}
    assert {f"about-{name}" for name in sections} <= found.ids
    data = json.loads(found.data)
    assert set(data["figures"]) == {"completion", "teams", "fairness", "queue", "utilization", "cost"}
    assert len(data["details"]) == 2
    assert all(detail["gantt"] and detail["shares"] for detail in data["details"])
    links = {attributes["href"] for tag, attributes in found.found if tag == "a"}
    assert links <= {f"#{name}" for name in found.ids}
    text = " ".join("".join(found.text).split())
    assert "simulated, in virtual time" in text
    assert "2 of 4 jobs completed" in text
    assert '"seed": 0' in text


def test_the_page_loads_nothing() -> None:
    html = page([four_jobs()], command="fairway simulate training")
    found = Elements(html)
    for tag, attributes in found.found:
        assert tag not in {"link", "img", "iframe", "object", "embed", "base", "form"}
        assert "src" not in attributes
        assert not (attributes.get("href") or "").startswith(("http", "//"))
    style = html[html.index("<style>") : html.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style
    policy = next(a["content"] or "" for _, a in found.found if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy


def test_names_from_files_cannot_become_html() -> None:
    whole = four_jobs()
    hostile = replace(whole.jobs, ids=(HOSTILE, "b", "c", "d"), entities=(HOSTILE,) * 4, job_types=(HOSTILE,) * 4)
    run = replace(whole, jobs=hostile, policy=HOSTILE, settings={"trace": HOSTILE})
    html = page([run, replace(run, policy="fifo")], command=f"fairway --trace {HOSTILE}")
    found = Elements(html)
    assert "img" not in {tag for tag, _ in found.found}
    assert "<img" not in html.replace(_plotly_script(html), "")
    assert HOSTILE in "".join(found.text)
    data = json.loads(found.data)
    assert data["details"][0]["gantt"]["jobs"][0][:3] == [HOSTILE, HOSTILE, HOSTILE]
    # plotly understands some tags: what goes into its texts is escaped once more
    assert all("<img" not in text for figure in data["figures"].values() for text in _texts(figure))


def _plotly_script(html: str) -> str:
    return max(re.findall(r"<script>(.*?)</script>", html, re.DOTALL), key=len)


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [text for member in members for text in _texts(member)]


def test_only_the_scripts_of_the_page_may_run() -> None:
    html = page([four_jobs()], command="x")
    assert html.count("'sha256-") == 2
    assert "script-src 'sha256-" in html


def test_the_same_runs_give_the_same_bytes() -> None:
    assert page([four_jobs()], command="x") == page([four_jobs()], command="x")


@pytest.mark.parametrize(
    "run",
    [
        nothing_ran(),
        record(jobs(ids="")),
        record(jobs(ids="a", finish=[0.0]), makespan=0.0),
        record(jobs(ids="a", finish=[5.0], isolated_seconds=[5.0]), leases([(0, 0, 0, 5, [0])]), makespan=5.0),
        record(jobs(ids="a", finish=[5.0]), workers={"v100": 0, "k80": 1}, makespan=5.0),
    ],
    ids=["nothing ran", "no jobs", "no time", "one lease, no prices", "a type without workers"],
)
def test_empty_runs_have_a_page_too(run: TrainingRecord) -> None:
    found = elements(run)
    assert "about-cost" in found.ids
    assert "no prices" in "".join(found.text)
    json.loads(found.data)


def test_a_run_without_leases_beside_one_with_them_says_so_when_chosen() -> None:
    found = elements(four_jobs(), nothing_ran())
    assert {"no-gantt", "no-shares"} <= found.ids
    assert [bool(detail["gantt"]) for detail in json.loads(found.data)["details"]] == [True, False]


def test_seeds_of_a_policy_are_told_apart_by_name_and_share_a_colour() -> None:
    runs = [replace(four_jobs(), settings={"seed": seed}) for seed in (0, 1, 1)]
    found = elements(*runs)
    buttons = [text for text in found.text if text.startswith("fifo, seed") and ":" not in text]
    assert buttons == ["fifo, seed 0", "fifo, seed 1", "fifo, seed 1 #2"]
    traces = json.loads(found.data)["figures"]["completion"]["data"]
    assert len({trace["line"]["color"] for trace in traces}) == 1
    assert [trace["showlegend"] for trace in traces] == [True, False, False]


def test_a_live_run_does_not_say_that_it_is_simulated() -> None:
    html = page([four_jobs()], command="x", origin=Origin("live", "Measured on three workers, two of them emulated."))
    assert "two of them emulated" in html
    assert "virtual time" not in html


def test_twenty_thousand_leases_make_a_page_of_some_megabytes_in_seconds(tmp_path: Path) -> None:
    run = many_leases(20_000)
    began = time.perf_counter()
    write_page([run, replace(run, policy="max-min-fairness")], tmp_path / "page.html", command="x")
    assert time.perf_counter() - began < 10
    assert (tmp_path / "page.html").stat().st_size < 15e6
    data = json.loads(Elements((tmp_path / "page.html").read_text()).data)
    assert len(data["details"][0]["gantt"]["row"]) == 20_000


def test_a_run_too_long_for_the_gantt_chart_says_how_much_is_drawn() -> None:
    run = many_leases(60_000)
    found = elements(run)
    assert not json.loads(found.data)["details"][0]["gantt"]["complete"]
    assert re.search(r"only the first [\d.]+ h of a run are drawn", "".join(found.text))


def test_a_large_cluster_has_a_page_too() -> None:
    run = many_leases(20_000, workers=2000)
    rows = json.loads(elements(run).data)["details"][0]["gantt"]["rows"]
    assert [block["shown"] for block in rows] == [64, 64, 64]


def test_a_page_that_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written") as caught:
        write_page([four_jobs()], tmp_path / "missing" / "page.html", command="x")
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="cannot be written"):
        write_page([four_jobs()], tmp_path, command="x")
    assert not list(tmp_path.iterdir())


def test_a_page_replaces_the_one_before_and_leaves_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    target.write_text("old")
    write_page([four_jobs()], target, command="caf\udce9")  # bytes of a command line that are not UTF-8
    assert target.read_text().startswith("<!doctype html>")
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_no_runs_are_refused() -> None:
    with pytest.raises(InputError, match="no runs"):
        page([], command="x")


def test_deadlines_weights_and_pairs_find_their_way_into_the_page() -> None:
    columns = jobs(ids="ab", weight=[1, 2], finish=[100, 100], isolated_seconds=np.array([50.0, 100.0]))
    run = record(columns, leases([(0, 0, 0, 100, [0])], partners=[1]), workers={"v100": 1}, makespan=100)
    found = elements(run)
    data = json.loads(found.data)
    assert "weights" in data["figures"]
    assert data["details"][0]["gantt"]["partner"] == [1]
