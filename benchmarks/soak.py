"""Does the live system hold ever more of anything, under a mixed load and with processes that are killed?

`fairway up` runs training jobs, `fairway serve` answers requests, both for as long as asked; processes of jobs, keepers
and serving workers are killed all the while. The controller, the agent and the supervisor of serving live through it:
their memory, descriptors, threads and dead children are counted every few seconds, and so are the files of runs and in
shared memory. A row says how much more there was in the last quarter of the time than in the second one.

Memory may grow by the jobs that the controller remembers, so its bound is wider. Every job has to succeed, and every
request has to be answered, rightly.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Annotated

import typer

from benchmarks._live_kills import EMULATE, Submitter, lost_jobs, wait_for_all
from benchmarks._live_system import System
from benchmarks._report import Result, show
from benchmarks._serving_live_fork import Fork
from benchmarks._soak_samples import Sample, files_in, growth, process_sample
from fairway.errors import FairwayError
from fairway.live.local.identity import process_table
from fairway.live.serving.clients.async_client import AsyncServingClient
from fairway.live.serving.supervise.settings import ServingSettings

WORKERS = 3
CLIENTS = 4
PAUSE_SECONDS = 0.05
"""Between two requests of a client: the load is to last, not to be the most that can be had."""
ANSWER_SECONDS = 90.0
START_SECONDS = 120.0

MEMORY_GROWTH_MB = 20.0
FILES_GROWTH = 60.0
OTHER_GROWTH = 3.0


class Serving:
    """`fairway serve` as a process of its own, and clients that ask it all the time."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.requests = 0
        self.wrong: list[str] = []
        self._over = False
        self._asking = Thread(target=lambda: asyncio.run(self._ask_all()), daemon=True)
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.directory.mkdir(parents=True)
        command = [sys.executable, "-m", "fairway.cli.main", "serve", "benchmarks._serving_live_fork:fork"]
        options = ["--workers", str(WORKERS), "--memory", "100MB", "--no-profile", "--port", "0"]
        with (self.directory / "serve.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*command, *options, "--directory", str(self.directory)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        deadline = time.monotonic() + START_SECONDS
        while len(self.workers()) < WORKERS or not (self.directory / "token").exists():
            assert time.monotonic() < deadline, (self.directory / "serve.log").read_text()
            time.sleep(0.1)
        self._asking.start()

    def workers(self) -> list[int]:
        """The processes that its supervisor has started."""
        assert self.process is not None
        return [row.pid for row in process_table() if row.parent == self.process.pid]

    def stop(self) -> None:
        self._over = True
        self._asking.join(ANSWER_SECONDS)
        if self.process is not None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(30.0)
            except subprocess.TimeoutExpired:
                self.process.kill()

    async def _ask_all(self) -> None:
        client = AsyncServingClient(self.directory)
        await asyncio.gather(*(self._ask(client, number) for number in range(CLIENTS)))
        await client.close()

    async def _ask(self, client: AsyncServingClient, number: int) -> None:
        while not self._over:
            request = Fork(number)
            self.requests += 1
            try:
                request.check(await asyncio.wait_for(client.ask(request.workflow, **request.inputs), ANSWER_SECONDS))
            except (AssertionError, FairwayError, TimeoutError) as error:
                self.wrong.append(f"{number}: {type(error).__name__}: {error}")
            number += CLIENTS
            await asyncio.sleep(PAUSE_SECONDS)


def soak(directory: Path, seconds: float, every: float, seed: int) -> Iterator[Result]:
    """Let it run, and say what has grown."""
    draws = random.Random(seed)
    system = System(directory / "up", ["--emulate", EMULATE, "--round", "2s"])
    serving = Serving(directory / "serve")
    traces = directory / "traces"
    traces.mkdir(parents=True)
    submitter = Submitter(system, traces, 6, seed)
    samples: list[Sample] = []
    killed: Counter[str] = Counter()
    try:
        system.start()
        serving.start()
        submitter.start()
        submitter.submitted.wait(START_SECONDS)
        agent = system.agent()
        assert agent is not None, f"the agent does not answer: {system.log}"
        began = shown = time.monotonic()
        while (now := time.monotonic()) < began + seconds:
            samples.append(_sample(system, agent, serving))
            if now > shown + 60.0:
                shown = now
                _say(f"  {(now - began) / 60:.0f} min: {serving.requests:,} requests, {dict(killed)}")
            while time.monotonic() < began + len(samples) * every:
                time.sleep(draws.uniform(0.5, 2.0))
                _kill(system, serving, draws, killed)
        submitter.finish()
        jobs = wait_for_all(system)
    finally:
        submitter.over.set()
        serving.stop()
        left = system.stop()
    extra = {"minutes": seconds / 60, "jobs": len(jobs), "requests": serving.requests, "kills": dict(killed)}
    lost = list(lost_jobs(submitter.acknowledged, jobs))
    for text in [*lost, *serving.wrong]:
        _say(text)
    yield Result("jobs that did not succeed", "", len(lost), target=0.0, extra=extra)
    yield Result("requests without their answer", "", len(serving.wrong), target=0.0, extra=extra)
    yield Result("processes left behind", "", len(left), target=0.0)
    for what, (early, late) in growth(samples).items():
        bound = MEMORY_GROWTH_MB if "memory, MB" in what else FILES_GROWTH if "files" in what else OTHER_GROWTH
        yield Result(f"growth of {what}", "", late - early, target=bound, extra={"second quarter": early, "last": late})


def _sample(system: System, agent: int, serving: Serving) -> Sample:
    assert system.process is not None
    assert serving.process is not None
    settings_memory = ServingSettings.read(serving.directory / "settings.json").memory_directory
    return {
        **process_sample("controller", system.process.pid),
        **process_sample("agent", agent),
        **process_sample("supervisor", serving.process.pid),
        "files of runs": files_in(system.directory / "agent/runs", system.directory / "agent/channels"),
        "files in shared memory": files_in(settings_memory),
    }


def _kill(system: System, serving: Serving, draws: random.Random, killed: Counter[str]) -> None:
    what = draws.choice(["keeper", "rank", "worker", "worker"])
    found = {"keeper": system.keepers, "rank": system.ranks, "worker": serving.workers}[what]()
    if found:
        with suppress(ProcessLookupError):
            os.kill(draws.choice(found), signal.SIGKILL)
            killed[what] += 1


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(
    destination: Annotated[str | None, typer.Option("--json", help="Write the results here, - for stdout.")] = None,
    minutes: Annotated[float, typer.Option(min=0.1, help="How long.")] = 60.0,
    quick: Annotated[bool, typer.Option("--quick", help="One minute, to see that it runs.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Other jobs, and other moments.")] = 0,
) -> None:
    seconds, every = (60.0, 3.0) if quick else (60.0 * minutes, 10.0)
    with tempfile.TemporaryDirectory(prefix="fairway-") as name:
        show("soak", soak(Path(name), seconds, every, seed), destination)


if __name__ == "__main__":
    typer.run(main)
