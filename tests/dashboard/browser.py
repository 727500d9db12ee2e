"""A real browser for tests: Chromium, driven by Playwright; without it, tests are skipped and say what to install."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
NEEDED = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine (Debian: apt-get install chromium)")
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
PATIENCE_MS = 60_000
"""Far more than anything takes, since the machine may be busy."""
expect.set_options(timeout=PATIENCE_MS)


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser without a window."""
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=ARGUMENTS)
        try:
            yield started
        finally:
            started.close()


@contextmanager
def page_of(started: Browser, *, allowed: tuple[str, ...] = (), **options: Any) -> Iterator[Page]:
    """A page, which must have said nothing wrong on its console when the test is over, but for what is `allowed`."""
    context = started.new_context(viewport={"width": 1400, "height": 900}, **options)
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text) if message.type in {"error", "warning"} else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    try:
        yield page
        assert [line for line in said if not any(words in line for words in allowed)] == []
    finally:
        context.close()


def log_in(page: Page, address: str, secret: str) -> None:
    """Open the page of a server and log in."""
    page.goto(address)
    page.get_by_label("Token").fill(secret)
    page.get_by_role("button", name="Log in").click()
    page.locator(".tiles").wait_for()


def look(page: Page, view: str) -> None:
    """Go to a view by its link."""
    page.get_by_role("navigation", name="Views").get_by_role("link", name=view, exact=True).click()


def serious(page: Page) -> list[str]:
    """What keeps people from using the page, by axe-core; what is minor or moderate is left out."""
    from axe_playwright_python.sync_playwright import Axe  # noqa: PLC0415 - reads a large script when imported

    found = Axe().run(page).response["violations"]
    return [f"{one['id']}: {one['help']}" for one in found if one["impact"] in {"serious", "critical"}]
