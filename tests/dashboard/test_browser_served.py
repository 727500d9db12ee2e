"""The page of an application that is served, in a browser: its newest requests, a waterfall, what is saved of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, expect

from fairway.dashboard.page import page_with
from fairway.dashboard.run_file import read_run
from tests.dashboard.browser import NEEDED, browser, log_in, look, page_of, serious
from tests.service.inference.conftest import TOKEN, Serving
from tests.service.inference.conftest import serving as serving_fixture

pytestmark = [NEEDED, pytest.mark.slow]

serving = serving_fixture
"""Two real workers behind real HTTP."""


@pytest.fixture(scope="module")
def started() -> Iterator[Browser]:
    with browser() as one:
        yield one


def test_a_request_is_looked_at_as_a_waterfall_and_saved_for_later(
    started: Browser, serving: Serving, tmp_path: Path
) -> None:
    for _ in range(3):
        assert serving.client.post("/workflows/measure", content=b"1").status_code == 200
    with page_of(started) as page:
        log_in(page, serving.address, TOKEN)
        for view in ("Workflows", "Workers", "Requests"):
            look(page, view)
            expect(page.locator("main .card").first).to_be_visible()
            assert serious(page) == [], view
        with page.expect_download() as downloading:
            page.get_by_role("button", name="Save these").click()
        downloading.value.save_as(tmp_path / "served.fairway")
        page.get_by_role("link", name="0", exact=True).click()
        expect(page.get_by_role("heading", name="Request 0", exact=True)).to_be_visible()
        expect(page.get_by_role("application")).to_be_visible()
    content = read_run(tmp_path / "served.fairway")
    (tmp_path / "served.html").write_text(page_with(content, title="served"))
    with page_of(started) as page:
        page.goto(f"{(tmp_path / 'served.html').as_uri()}#/workflows")
        expect(page.get_by_role("heading", name="measure", exact=True)).to_be_visible()
        expect(page.get_by_label("Graph of the workflow").first).to_contain_text("budget")


def test_before_the_login_the_page_asks_for_nothing(started: Browser, serving: Serving) -> None:
    with page_of(started) as page:
        page.goto(serving.address)
        expect(page.get_by_label("Token")).to_be_visible()


def test_the_history_of_an_application_can_be_saved_from_a_terminal(serving: Serving, tmp_path: Path) -> None:
    assert serving.client.post("/workflows/measure", content=b"1").status_code == 200
    answer = httpx.get(f"{serving.address}/history", headers={"Authorization": f"Bearer {TOKEN}"}, trust_env=False)
    (run,) = answer.json()["runs"]
    last = max(range(len(run["requests"]["arrival"])), key=lambda k: run["requests"]["arrival"][k])
    assert run["requests"]["outcome"][last] == "completed"
    (row,) = [k for k, request in enumerate(run["stages"]["request"]) if request == last]
    times = [run["stages"][name][row] for name in ("queued", "start", "end")]
    assert run["requests"]["arrival"][last] <= times[0] <= times[1] <= times[2] <= run["requests"]["finish"][last]
    assert run["stages"]["found"][row] in {"hit", "miss"}
