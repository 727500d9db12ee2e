"""How quick is the dashboard, and what do open pages cost? With 1,000 workers and 10,000 jobs, in Chromium.

Paints and updates are on the wall clock, of this machine and whatever else it does; what pages cost is CPU time of the
server's process, from which that of the same seconds without a page is taken. One open page is a real one; fifty are
clients that listen to the stream that keeps a page up to date. The saved run has 100,000 leases on 1,000 workers.
"""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from threading import Event, Thread
from typing import Any

import httpx
import numpy as np
from playwright.sync_api import Browser, Page

from benchmarks._report import Options, Result
from benchmarks._report import run as report
from fairway.cluster import Cluster
from fairway.dashboard.of_training import saved_training
from fairway.dashboard.page import ASSETS, asset, page_with
from fairway.dashboard.run_file import document
from fairway.report.training.record import JobColumns, LeaseColumns, Outcome, Timeline, TrainingRecord
from tests.dashboard.browser import browser, log_in, page_of

WORKERS, JOBS, LEASES = 1000, 10_000, 100_000
PAINT_SECONDS, UPDATE_SECONDS, FRAMES = 1.5, 1.0, 30.0
ONE_PAGE, FIFTY_PAGES = 3.0, 25.0
MOST_KILOBYTES, MOST_REPORT_KILOBYTES = 300.0, 1000.0

_PAINTED = """() => {
    const seen = () => {
        const there = document.querySelector(".tile-value") !== null;
        requestAnimationFrame(there ? () => { window.painted = performance.now() / 1000; } : seen);
    };
    seen();
}"""
_SHOWN = "(name) => [...document.querySelectorAll('tbody a')].some((link) => link.textContent === name)"
_SCROLLED = """async () => {
    const box = document.querySelector(".gantt-box");
    let frames = 0, down = true;
    const begin = performance.now();
    while (performance.now() - begin < 3000) {
        box.scrollTop += down ? 60 : -60;
        if (box.scrollTop + box.clientHeight >= box.scrollHeight - 1) down = false;
        if (box.scrollTop === 0) down = true;
        await new Promise(requestAnimationFrame);
        frames += 1;
    }
    return frames / ((performance.now() - begin) / 1000);
}"""


@dataclass(frozen=True, slots=True)
class Server:
    """The process that serves, where and with which token; `waiting` is a job that waits."""

    process: subprocess.Popen[str]
    address: str
    secret: str
    waiting: str

    def cpu_seconds(self) -> float:
        """What it has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def server(workers: int, jobs: int) -> Iterator[Server]:
    with tempfile.TemporaryDirectory(prefix="fairway-") as name:
        command = [sys.executable, "-m", "benchmarks._dashboard_server", name, str(workers), str(jobs)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield Server(process, *process.stdout.readline().split())
        finally:
            process.stdin.close()
            process.wait(60)


def measure(options: Options) -> Iterator[Result]:
    assert shutil.which("chromium") or shutil.which("chromium-browser"), "no Chromium: apt-get install chromium"
    size = sum(len(gzip.compress(asset(name))) for name in ASSETS) / 1000
    yield Result("the page's own code, compressed", "kB", size, target=MOST_KILOBYTES)
    yield Result(
        "a report of one policy on 120 jobs", "kB", report_kilobytes(options.seed), target=MOST_REPORT_KILOBYTES
    )
    workers, jobs, leases = (100, 1000, 10_000) if options.quick else (WORKERS, JOBS, LEASES)
    seconds = 5.0 if options.quick else 20.0
    with browser() as started:
        yield from saved(started, leases, workers, options)
        with server(workers, jobs) as serving:
            yield from live(started, serving, options)
            yield from costs(started, serving, seconds)


def report_kilobytes(seed: int) -> float:
    """The size of what `fairway simulate training --report` writes."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "report.html"
        words = (
            "--generate",
            f"jobs=120,rate=12,seed={seed}",
            "--cluster",
            "v100=6,p100=6,k80=6",
            "-p",
            "fifo",
            "--quiet",
        )
        command = [sys.executable, "-m", "fairway.cli.main", "simulate", "training", *words, "--report", str(path)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return path.stat().st_size / 1000


def saved(started: Browser, leases: int, workers: int, options: Options) -> Iterator[Result]:
    with tempfile.TemporaryDirectory() as directory, page_of(started) as page:
        path = Path(directory) / "run.html"
        path.write_text(page_with(document([saved_training(long_run(leases, workers, options.seed))]), title="run"))
        page.add_init_script(f"({_PAINTED})()")
        paints = [painted(page, path.as_uri()) for _ in range(options.repeats)]
        yield _timed(f"first useful paint, saved run of {leases:,} leases", paints, PAINT_SECONDS)
        page.goto(f"{path.as_uri()}#/workers")
        page.reload()
        page.locator(".gantt-box").wait_for()
        rates = [float(page.evaluate(_SCROLLED)) for _ in range(options.repeats)]
        yield Result(
            f"milliseconds between frames, scrolling a timeline of {workers:,} workers", "ms", 1000 / median(rates),
            target=1000 / FRAMES, spread=_spread(rates), extra={"frames_per_second": median(rates)},
        )  # fmt: skip


def live(started: Browser, serving: Server, options: Options) -> Iterator[Result]:
    with page_of(started) as page:
        log_in(page, serving.address, serving.secret)
        page.add_init_script(f"({_PAINTED})()")
        paints = [painted(page, serving.address) for _ in range(options.repeats)]
        yield _timed("first useful paint, live", paints, PAINT_SECONDS)
        page.get_by_role("link", name="Jobs", exact=True).click()
        page.get_by_label("State").select_option("queued")
        page.get_by_role("table").wait_for()
        updates = [updated(page, serving) for _ in range(options.repeats)]
        yield _timed("a job that was submitted is on the screen", updates, UPDATE_SECONDS)


def painted(page: Page, address: str) -> float:
    """Seconds from the begin of a navigation to the first numbers on the screen."""
    page.goto("about:blank")
    page.goto(address)
    return float(page.wait_for_function("() => window.painted").json_value())


def updated(page: Page, serving: Server) -> float:
    headers = {"Authorization": f"Bearer {serving.secret}"}
    job = {"run": ["true"], "resources": {"accelerators": "v100"}, "steps": 1.0}
    answer = httpx.post(f"{serving.address}/jobs", json=job, headers=headers, timeout=60, trust_env=False)
    name, begin = answer.raise_for_status().json()["id"], time.perf_counter()
    page.wait_for_function(_SHOWN, arg=name)
    return time.perf_counter() - begin


def costs(started: Browser, serving: Server, seconds: float) -> Iterator[Result]:
    idle = _used(serving, seconds)
    with page_of(started) as page:
        log_in(page, serving.address, serving.secret)
        time.sleep(2)
        one = _used(serving, seconds) - idle
    yield _cost("one open page", one, ONE_PAGE, idle)
    stop = Event()
    threads = [Thread(target=_follow, args=(serving, stop), daemon=True) for _ in range(50)]
    for thread in threads:
        thread.start()
        time.sleep(0.2)
    time.sleep(3)
    many = _used(serving, seconds) - idle
    stop.set()
    yield _cost("50 open pages", many, FIFTY_PAGES, idle)


def _follow(serving: Server, stop: Event) -> None:
    """Listen as a page does that shows what is there: all else comes by the same stream."""
    headers = {"Authorization": f"Bearer {serving.secret}"}
    asked = {"pages": "true", "after": str(int((time.time() - 10) * 1e6))}
    with (
        suppress(httpx.HTTPError),  # the server may end before the page does
        httpx.Client(base_url=serving.address, headers=headers, timeout=60, trust_env=False) as client,
        client.stream("GET", "/events", params=asked) as stream,
    ):
        for _ in stream.iter_raw():
            if stop.is_set():
                return


def _used(serving: Server, seconds: float) -> float:
    """Per cent of a core that the server uses."""
    before, begin = serving.cpu_seconds(), time.perf_counter()
    time.sleep(seconds)
    return 100 * (serving.cpu_seconds() - before) / (time.perf_counter() - begin)


def _timed(name: str, seconds: list[float], target: float) -> Result:
    return Result(name, "s", median(seconds), target=target, spread=_spread(seconds))


def _cost(name: str, percent: float, target: float, idle: float) -> Result:
    extra = {"per_cent_without_pages": idle}
    return Result(f"CPU of the controller for {name}, per cent of a core", "%", percent, target=target, extra=extra)


def _spread(values: list[float]) -> float | None:
    return (max(values) - min(values)) / median(values) if len(values) > 1 else None


def long_run(leases: int, workers: int, seed: int) -> TrainingRecord:
    """A run in which every worker goes from job to job without a rest."""
    generator = np.random.default_rng(seed)
    each = leases // workers
    lasts = generator.exponential(600.0, (workers, each))
    ends = np.cumsum(lasts, axis=1)
    starts = ends - lasts
    order = np.argsort(starts, axis=None)
    start, end = starts.ravel()[order], ends.ravel()[order]
    jobs = min(leases, 10_000)
    owner = np.arange(leases) % jobs
    first, last = np.full(jobs, np.inf), np.zeros(jobs)
    np.minimum.at(first, owner, start)
    np.maximum.at(last, owner, end)
    known: dict[str, Any] = {name: np.ones(jobs) for name in ("weight", "isolated_seconds", "cost_dollars")}
    columns = JobColumns(
        ids=tuple(map(str, range(jobs))), job_types=("train",) * jobs,
        entities=tuple(f"team-{number % 4}" for number in range(jobs)), arrival=first, start=first, finish=last,
        scale_factor=np.ones(jobs, dtype=np.int64), deadline=np.full(jobs, np.nan),
        preemptions=np.full(jobs, each, dtype=np.int64), outcome=np.full(jobs, Outcome.COMPLETED, dtype=np.int64),
        counted=np.ones(jobs, dtype=np.bool_), **known,
    )  # fmt: skip
    held = LeaseColumns(
        job=owner, partner=np.full(leases, -1), accelerator=np.zeros(leases, dtype=np.int64), start=start, end=end,
        steps=np.zeros(leases), partner_steps=np.zeros(leases), offset=np.arange(leases + 1), workers=order // each,
    )  # fmt: skip
    nothing = np.zeros(0, dtype=np.int64)
    return TrainingRecord(
        policy="fifo", cluster=Cluster({"v100": workers}), settings={"seed": seed}, jobs=columns, leases=held,
        timeline=Timeline(np.zeros(0), nothing, nothing, np.zeros((0, 1), dtype=np.int64)),
        makespan_seconds=float(end.max()), busy_seconds=np.array([float(lasts.sum())]), rounds=0, solves=0,
        leases_granted=leases, wall_seconds=0.0,
    )  # fmt: skip


if __name__ == "__main__":
    report("dashboard", measure)
