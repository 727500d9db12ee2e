"""The page of a controller in a browser: log in, watch, cancel; a token that ends, a controller that comes back."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from fairway.client import Client
from fairway.live.training.controller import Controller
from fairway.live.training.settings import ControllerSettings
from fairway.service.first_token import ensure_first_token
from fairway.store import Store, open_store
from fairway.store.tokens import Role, create_token, revoke_token
from tests.dashboard.browser import NEEDED, PATIENCE_MS, browser, log_in, look, page_of, serious
from tests.service.running import running_server, served

pytestmark = [NEEDED, pytest.mark.slow]

COUNTING = """
import sys, time, fairway
for batch in fairway.leased(range(int(sys.argv[1])), checkpoint=lambda step: {"step": step}):
    print("batch", batch, flush=True)
    time.sleep(0.05)
"""


class Live:
    """A controller that is served, and its store."""

    def __init__(self, address: str, store: Store, secret: str, controller: Controller) -> None:
        self.address, self.store, self.secret, self.controller = address, store, secret, controller


@pytest.fixture(scope="module")
def started() -> Iterator[Browser]:
    with browser() as one:
        yield one


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    settings = ControllerSettings(tmp_path / "home", round_seconds=2.0, restart_seconds=0.1, emulate="v100=1,k80=1")
    with open_store(str(tmp_path / "home")) as store:
        controller = Controller(settings, store)
        controller.start()
        try:
            ensure_first_token(store, settings.directory)
            secret = (settings.directory / "token").read_text().strip()
            with running_server(controller) as server:
                yield Live(server.address, store, secret, controller)
        finally:
            controller.shut_down()


def test_a_job_is_watched_from_queued_to_finished_and_another_is_cancelled(started: Browser, live: Live) -> None:
    with page_of(started) as page:
        log_in(page, live.address, live.secret)
        look(page, "Jobs")

        def submit(steps: int) -> str:
            job = {
                "run": [sys.executable, "-c", COUNTING, str(steps)], "steps": steps, "throughputs": {"v100": 20.0},
                "resources": {"accelerators": "v100"}, "name": f"counts-{steps}",
            }  # fmt: skip
            return str(
                page.evaluate(
                    """async (job) => {
                        const key = localStorage.getItem("fairway-key");
                        const headers = {"Content-Type": "application/json", "Fairway-Key": key};
                        const answer = await fetch("jobs", {method: "POST", body: JSON.stringify(job), headers});
                        return (await answer.json()).id;
                    }""",
                    job,
                )
            )

        first, second = submit(60), submit(100_000)
        row = page.get_by_role("row").filter(has=page.get_by_role("link", name=second, exact=True))
        expect(row).to_contain_text("queued")
        page.get_by_role("link", name=first, exact=True).click()
        badge = page.locator(".heading .badge")
        expect(badge).to_have_text("running")
        expect(page.get_by_label("Log", exact=True)).to_contain_text("batch 3")
        expect(badge).to_have_text("succeeded")
        expect(page.get_by_label("Log", exact=True)).to_contain_text("batch 59")
        look(page, "Jobs")
        page.get_by_role("link", name=second, exact=True).click()
        expect(badge).to_have_text("running")
        assert serious(page) == []
        page.get_by_role("button", name="Cancel job").click()
        page.get_by_role("button", name="Yes, cancel it").click()
        expect(page.locator(".banner.note")).to_contain_text("is to be cancelled")
        expect(badge).to_have_text("cancelled")
        expect(page.get_by_role("button", name="Cancel job")).to_have_count(0)
        look(page, "Decisions")
        page.locator("tbody a").first.click()
        expect(page.get_by_text("Who gets which share of time")).to_be_visible()
        assert serious(page) == []


def test_a_what_if_is_planned_and_a_goal_is_searched_for(started: Browser, live: Live) -> None:
    with page_of(started, allowed=("422",)) as page:
        log_in(page, live.address, live.secret)
        with Client(live.address, live.secret) as client:
            for _ in range(3):
                client.submit({"run": ["sleep", "60"], "steps": 600.0, "throughputs": {"v100": 10.0}})
        look(page, "Plan")
        page.get_by_label("Changes, one on each line").fill("add v100=2\npolicy fifo")
        page.get_by_label("Seeds").fill("2")
        page.get_by_role("button", name="Plan", exact=True).click()
        table = page.get_by_role("region", name="What would come of it")
        expect(table.get_by_role("row")).to_have_count(4)
        expect(table).to_contain_text("add v100=2")
        expect(page.get_by_role("heading", name="Who gains and who loses: add v100=2")).to_be_visible()
        assert serious(page) == []
        page.get_by_label("Changes, one on each line").fill("ad v100=2")
        page.get_by_role("button", name="Plan", exact=True).click()
        expect(page.get_by_role("alert")).to_contain_text("'ad' given, did you mean 'add'?")


def test_a_wrong_token_is_told_and_the_right_one_works_then(started: Browser, tmp_path: Path) -> None:
    with served(tmp_path) as service, page_of(started, allowed=("401",)) as page:
        page.goto(service.address)
        page.get_by_label("Token").fill("fairway_wrong")
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_role("alert")).to_contain_text("not known here")
        assert serious(page) == []
        page.get_by_label("Token").fill(service.secret)
        page.get_by_role("button", name="Log in").click()
        expect(page.locator(".tiles").first).to_be_visible()


def test_a_session_lasts_over_a_reload_and_ends_with_logging_out(started: Browser, tmp_path: Path) -> None:
    with served(tmp_path) as service, page_of(started) as page:
        log_in(page, service.address, service.secret)
        assert page.evaluate("document.cookie") == ""
        page.reload()
        expect(page.locator(".tiles").first).to_be_visible()
        page.get_by_role("button", name="Log out").click()
        expect(page.get_by_label("Token")).to_be_visible()
        page.reload()
        expect(page.get_by_label("Token")).to_be_visible()


def test_a_token_that_ends_asks_for_another_and_keeps_the_screen(started: Browser, tmp_path: Path) -> None:
    with served(tmp_path) as service, page_of(started, allowed=("401",)) as page:
        secret, token = service.store.write(create_token, Role.ADMIN, at=time.time(), name="short")
        log_in(page, service.address, secret)
        service.store.write(revoke_token, token.id, at=time.time())
        expect(page.get_by_role("alert")).to_contain_text("Your session has ended")
        expect(page.locator(".tiles").first).to_be_visible()
        page.get_by_label("Token").fill(service.secret)
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_label("Token")).to_have_count(0)
        expect(page.get_by_role("alert")).to_have_count(0)


def test_a_controller_that_goes_away_is_told_and_found_again(started: Browser, tmp_path: Path) -> None:
    with served(tmp_path) as service, page_of(started, allowed=("ERR_", "503")) as page:
        log_in(page, service.address, service.secret)
        port = int(service.address.rpartition(":")[2])
        service.server.stop()
        expect(page.get_by_role("alert")).to_contain_text("No answer from the server", timeout=PATIENCE_MS)
        expect(page.locator(".tiles").first).to_be_visible()
        with running_server(service.scheduler, port=port):
            expect(page.get_by_role("alert")).to_have_count(0)


def test_a_reader_has_no_buttons_that_change_anything(started: Browser, tmp_path: Path) -> None:
    with served(tmp_path) as service, page_of(started) as page:
        with service.client() as admin:
            job = admin.post("/jobs", json={"run": ["sleep", "60"]}).json()["id"]
        log_in(page, service.address, service.new_token(Role.READER))
        look(page, "Jobs")
        page.get_by_role("link", name=job, exact=True).click()
        expect(page.get_by_role("heading", name=job)).to_be_visible()
        expect(page.get_by_role("button", name="Cancel job")).to_have_count(0)
        look(page, "Decisions")
        expect(page.get_by_text("is for admins")).to_be_visible()


def test_the_api_is_documented_and_can_be_asked(started: Browser, tmp_path: Path) -> None:
    with served(tmp_path) as service, page_of(started) as page:
        page.goto(f"{service.address}/docs")
        page.get_by_label("Token").fill(service.secret)
        page.get_by_role("button", name="Log in").click()
        page.get_by_text("See how the system stands").click()
        page.get_by_role("button", name="Send GET").first.click()
        expect(page.get_by_label("Answer")).to_contain_text('"policy"')
        assert serious(page) == []
