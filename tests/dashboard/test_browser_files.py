"""Saved runs in a real browser: as one file, dropped on the page, and what is no run."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

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
