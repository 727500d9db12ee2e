"""Saved runs in a real browser: as one file, dropped on the page, and what is no run."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from fairway.dashboard.of_loads import RateCurve, saved_rates
from fairway.dashboard.of_serving import saved_serving
from fairway.dashboard.of_training import saved_training
from fairway.dashboard.page import page_with
from fairway.dashboard.run_file import document, packed
from tests.dashboard.browser import NEEDED, browser, look, page_of, serious
from tests.dashboard.runs import served_requests
from tests.report.records import four_jobs

pytestmark = [NEEDED, pytest.mark.slow]


@pytest.fixture(scope="module")
def started() -> Iterator[Browser]:
    with browser() as one:
        yield one


@pytest.fixture(scope="module")
def training_page(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("pages") / "training.html"
    path.write_text(page_with(document([saved_training(four_jobs())], command="fairway demo"), title="training"))
    return path.as_uri()


@pytest.fixture(scope="module")
def serving_page(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("pages") / "serving.html"
    path.write_text(page_with(document([saved_serving(served_requests())]), title="serving"))
    return path.as_uri()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_view_of_training_can_be_used(started: Browser, training_page: str, theme: str) -> None:
    with page_of(started, color_scheme=theme) as page:
        page.goto(training_page)
        expect(page.get_by_text("Mean completion time")).to_be_visible()
        for view in ("Overview", "Jobs", "Teams", "Workers", "Decisions", "Plan"):
            look(page, view)
            expect(page.locator("main .card").first).to_be_visible()
            assert serious(page) == [], view
        look(page, "Jobs")
        page.get_by_label("Search").fill("b")
        page.get_by_role("link", name="b", exact=True).click()
        expect(page.get_by_role("heading", name="b", exact=True)).to_be_visible()
        expect(page.get_by_text("succeeded", exact=True)).to_be_visible()
        assert serious(page) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_runs_are_compared_side_by_side_without_scrolling_sideways(
    started: Browser, tmp_path: Path, theme: str
) -> None:
    slower = replace(four_jobs(), policy="max-min-fairness")
    runs = [saved_training(each) for each in (four_jobs(), slower, replace(slower, settings={"seed": 1}))]
    path = tmp_path / "compared.html"
    path.write_text(page_with(document(runs, command="fairway demo"), title="compared"))
    with page_of(started, color_scheme=theme) as page:
        page.goto(path.as_uri())  # of several runs, the comparison comes first
        expect(page.get_by_role("heading", name="How long jobs took", exact=True)).to_be_visible()
        expect(page.get_by_role("heading", name="Who got its share")).to_be_visible()
        expect(page.get_by_role("heading", name="What it cost")).to_be_visible()
        assert page.get_by_role("region", name="Runs compared").locator("tbody tr").count() == 2, "one for each policy"
        assert serious(page) == []
        wide = page.evaluate("[document.documentElement, ...document.querySelectorAll('.table-box, .plot')]"
                             ".filter((box) => box.scrollWidth > box.clientWidth + 1).length")  # fmt: skip
        assert wide == 0
        page.get_by_role("button", name="seed 1").click()
        expect(page.locator("header label", has_text="Run").locator("select")).to_have_value("2")


def test_requests_under_several_schedulers_are_compared(started: Browser, tmp_path: Path) -> None:
    runs = [saved_serving(each) for each in (served_requests(), replace(served_requests(), scheduler="other"))]
    path = tmp_path / "compared.html"
    path.write_text(page_with(document(runs), title="compared"))
    with page_of(started) as page:
        page.goto(f"{path.as_uri()}#/compare")
        for name in ("How long requests took", "How much longer than necessary", "How tasks found their models"):
            expect(page.get_by_role("heading", name=name)).to_be_visible()
        assert page.get_by_label("answered within a time").count() == 4, "a chart for each workflow"
        assert serious(page) == []


def test_curves_over_loads_are_shown(started: Browser, tmp_path: Path) -> None:
    curves = [RateCurve("a", 1, 3.0, {1.0: 1.0, 3.0: 0.9, 5.0: 0.2}), RateCurve("b", 1, None, {1.0: 0.5})]
    path = tmp_path / "rates.html"
    path.write_text(page_with(document([saved_rates(curves, 0.9, settings={})]), title="rates"))
    with page_of(started) as page:
        page.goto(path.as_uri())
        expect(page.get_by_role("heading", name="a holds the highest rate: 3.00 requests per second.")).to_be_visible()
        expect(page.get_by_label("In time against the rate")).to_be_visible()
        assert serious(page) == []


def test_marks_of_an_axis_do_not_lie_on_each_other(started: Browser, tmp_path: Path) -> None:
    path = tmp_path / "one.html"
    path.write_text(page_with(document([saved_training(four_jobs())]), title="one"))
    overlaps = """() => [...document.querySelectorAll(".plot svg")].map((chart) => {
        const boxes = [...chart.querySelectorAll("text.axis[text-anchor=middle]:not([transform])")].slice(0, -1)
            .map((text) => text.getBoundingClientRect()).sort((a, b) => a.left - b.left);
        return boxes.filter((box, k) => k && box.left < boxes[k - 1].right).length;
    })"""
    with page_of(started) as page:
        for width in (1400, 700, 420):
            page.set_viewport_size({"width": width, "height": 900})
            page.goto(f"{path.as_uri()}#/compare")
            page.locator(".plot svg").first.wait_for()
            found = page.evaluate(overlaps)
            assert found
            assert not any(found), f"{width} pixels wide"


def test_what_others_wrote_is_text(started: Browser, tmp_path: Path) -> None:
    hostile = "<img src=x onerror=alert(1)>"
    run = json.dumps(document([saved_training(four_jobs())])).replace('"b"', json.dumps(hostile))
    path = tmp_path / "hostile.html"
    path.write_text(page_with(json.loads(run), title=hostile))
    with page_of(started) as page:
        page.goto(path.as_uri())
        look(page, "Jobs")
        page.get_by_role("link", name=hostile, exact=True).click()
        expect(page.get_by_role("heading", name=hostile, exact=True)).to_be_visible()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_request_has_a_waterfall(started: Browser, serving_page: str, theme: str) -> None:
    with page_of(started, color_scheme=theme) as page:
        page.goto(serving_page)
        for view in ("Overview", "Workflows", "Workers", "Requests"):
            look(page, view)
            expect(page.locator("main .card").first).to_be_visible()
            assert serious(page) == [], view
        page.get_by_role("link", name="3", exact=True).click()
        expect(page.get_by_role("heading", name="Request 3", exact=True)).to_be_visible()
        expect(page.get_by_role("application")).to_be_visible()
        assert serious(page) == []


def test_another_run_is_opened_from_a_file(started: Browser, training_page: str, tmp_path: Path) -> None:
    (tmp_path / "other.fairway").write_bytes(packed(document([saved_serving(served_requests())])))
    with page_of(started) as page:
        page.goto(training_page)
        page.locator("input[type=file]").set_input_files(tmp_path / "other.fairway")
        expect(page.get_by_text("other.fairway")).to_be_visible()
        expect(page.get_by_role("link", name="Workflows")).to_be_visible()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"PK nothing", "not a saved run"),
        (packed(document([saved_training(four_jobs())]))[:200], "cut off or damaged after 200 bytes"),
        (gzip.compress(json.dumps({"format": "fairway-run", "version": 3, "runs": []}).encode()), "of version 3"),
        (gzip.compress(b"{"), "no JSON"),
    ],
    ids=["other", "cut", "newer", "no-json"],
)
def test_what_is_no_run_is_one_line_and_the_page_goes_on(
    started: Browser, training_page: str, tmp_path: Path, content: bytes, said: str
) -> None:
    (tmp_path / "wrong.fairway").write_bytes(content)
    with page_of(started) as page:
        page.goto(training_page)
        page.locator("input[type=file]").set_input_files(tmp_path / "wrong.fairway")
        expect(page.locator(".banner.note")).to_contain_text("wrong.fairway: ")
        expect(page.locator(".banner.note")).to_contain_text(said)
        expect(page.get_by_text("Mean completion time")).to_be_visible()


def test_the_timeline_can_be_used_by_keys(started: Browser, training_page: str) -> None:
    with page_of(started) as page:
        page.goto(f"{training_page}#/workers")
        page.get_by_role("application").focus()
        shown = page.locator(".tools .faint")
        before = shown.inner_text()
        page.keyboard.press("+")
        expect(shown).not_to_have_text(before)
        page.keyboard.press("0")
        expect(shown).to_have_text(before)
