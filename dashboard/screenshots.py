"""Makes the pictures of the ten-minute tour, by doing what it says and photographing what comes of it.

    python dashboard/screenshots.py

Runs the commands of `docs/tour.md` in an empty directory, opens their pages in Chromium, and writes small PNG files
into `docs/assets/tour`. Jobs are longer than there, so that they wait for each other on
a slow machine, too. What a terminal shows is photographed from a page with the same text.
"""

from __future__ import annotations

import html
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

REPOSITORY = Path(__file__).resolve().parents[1]
PICTURES = REPOSITORY / "docs" / "assets" / "tour"
FAIRWAY = Path(sys.executable).with_name("fairway")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
PATIENCE_MS = 120_000
COLOURS = 96
"""Of a picture; pages of text and charts have few, and a file of few colours is small."""

_TERMINAL = """<!doctype html><meta charset=utf-8><style>
body { margin: 0; background: #fff } #screen { display: inline-block; padding: 18px 22px; background: #16202b;
color: #e4e9ee; font: 14px/1.35 "DejaVu Sans Mono", monospace; white-space: pre } b { color: #7fd1ae }
</style><div id=screen>"""


class Tour:
    """The commands, in a directory of their own, and the page that they are looked at in."""

    def __init__(self, directory: Path, page: Page) -> None:
        self._directory, self.page = directory, page
        self._environment = {
            **os.environ,
            "FAIRWAY_HOME": str(directory / "home"),
            "COLUMNS": "100",
            "NO_COLOR": "1",
        }
        (directory / "examples").symlink_to(REPOSITORY / "examples")

    def run(self, words: str) -> str:
        """What a command prints."""
        command = [str(FAIRWAY), *words.split()]
        done = subprocess.run(
            command, cwd=self._directory, env=self._environment, capture_output=True, text=True, check=True, timeout=500
        )
        return done.stdout

    def show_terminal(self, name: str, *commands: str) -> None:
        """Photograph what commands print."""
        blocks = [f"<b>$ fairway {html.escape(one)}</b>\n{html.escape(self.run(one).rstrip())}" for one in commands]
        self.page.goto("about:blank")  # a page of Fairway would not let this one have its style
        self.page.set_content(_TERMINAL + "\n\n".join(blocks))
        self.keep(name, "#screen")

    def show_page(self, name: str, address: str) -> None:
        """Photograph the upper part of a page."""
        self.page.set_viewport_size({"width": 1100, "height": 1020})
        self.page.goto(address)
        self.keep(name)

    def keep(self, name: str, element: str | None = None) -> None:
        """Write what is seen, or an element of it, as a small picture."""
        path = PICTURES / f"{name}.png"
        self.page.wait_for_timeout(500)
        if element is None:
            self.page.screenshot(path=path)
        else:
            self.page.locator(element).screenshot(path=path)
        with Image.open(path) as picture:
            few = picture.convert("RGB").quantize(COLOURS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
        few.save(path, optimize=True)
        print(f"{path.relative_to(REPOSITORY)}: {path.stat().st_size / 1000:.0f} kB", flush=True)

    @property
    def token(self) -> str:
        """The admin's."""
        return (self._directory / "home" / "token").read_text().strip()

    @contextmanager
    def live(self) -> Iterator[str]:
        """The address of a live system with two accelerators and three jobs."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self._environment["FAIRWAY_ADDRESS"] = f"http://127.0.0.1:{port}"
        self.run(f"up --emulate v100=1,k80=1 --round 5s --port {port} --detach")
        try:
            for name in ("first", "second", "third"):
                self.run(f"submit --name {name} --accelerators v100 -- sleep 600")
            time.sleep(3.0)
            yield f"http://127.0.0.1:{port}"
        finally:
            self.run("down")


def main() -> int:
    """Make all pictures."""
    if CHROMIUM is None:
        print("no Chromium on this machine; install it, as by 'apt install chromium'", file=sys.stderr)
        return 1
    PICTURES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as directory, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        context = browser.new_context(viewport={"width": 1100, "height": 700}, color_scheme="light")
        context.set_default_timeout(PATIENCE_MS)
        tour = Tour(Path(directory), context.new_page())
        take(tour, Path(directory))
        browser.close()
    return 0


def take(tour: Tour, directory: Path) -> None:
    """The pictures, in the order of the tour."""
    tour.show_terminal("allocate", "allocate examples/mixed-cluster.json --policy max-min-fairness --table")
    tour.run(
        "simulate training --trace examples/jobs.tsv --cluster examples/cluster.yaml -p max-min-fairness:agnostic "
        "-p max-min-fairness -p fifo --report report.html"
    )
    tour.show_page("report", f"file://{directory}/report.html")
    tour.show_terminal("place", "place examples/place-request.json --scheduler compass --table")
    with tour.live() as address:
        tour.show_terminal("explain", "ls", "explain job-2")
        tour.page.set_viewport_size({"width": 1100, "height": 660})
        tour.page.goto(address)
        tour.page.get_by_label("Token").fill(tour.token)
        tour.page.get_by_role("button", name="Log in").click()
        tour.page.locator(".tiles").wait_for()
        tour.keep("live")
    tour.run(
        "sweep -p max-min-fairness -p fifo --rate 2,4 --seed 0,1 --generate jobs=50 --cluster v100=4,k80=4 "
        "--report sweep.html"
    )
    tour.show_page("sweep", f"file://{directory}/sweep.html")


if __name__ == "__main__":
    sys.exit(main())
