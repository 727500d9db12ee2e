"""Kills the controller, the agent or a job, again and again, while jobs come and go; then looks for what was lost.

Everything is started through `fairway up` and submitted through `fairway.Client`. The jobs write down each step that
they do and each checkpoint that is on disk, and what they wrote decides: whether two leases ever ran on one worker at
once, and whether a job ever went on from before its last checkpoint.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from threading import Event, Thread
from typing import Any

import httpx
from sqlalchemy import select

from benchmarks._live_system import System, listed
from benchmarks._live_trace import Life, lives_of
from benchmarks._live_workload import described
from fairway.client import Client
from fairway.jobs import Job
from fairway.store import open_store
from fairway.store.database.schema import leases
from fairway.store.records import LeaseRecord

EMULATE = "v100=2,p100=1,k80=1"
RATES = {"v100": 40.0, "p100": 25.0, "k80": 12.0}
SAVED_EVERY = 10
PATIENCE = 300.0


@dataclass(slots=True)
class Findings:
    """What was done, and what is wrong: nothing should be."""

    killed: Counter[str] = field(default_factory=Counter)
    jobs: int = 0
    attempts: int = 0
    seconds: float = 0.0
    lost: list[str] = field(default_factory=list)
    """Acknowledged jobs that did not end well, and jobs that no client has submitted."""
    double: list[str] = field(default_factory=list)
    """Leases on one worker at the same time, or one job twice."""
    undone: list[str] = field(default_factory=list)
    """Steps that were done again though they were saved, or left out."""
    left_behind: list[int] = field(default_factory=list)
    """Processes that were still there after the end."""


def kill_again_and_again(
    directory: Path,
    kills: int,
    seed: int,
    *,
    active: int = 8,
    gap: tuple[float, float] = (0.1, 1.6),
    options: Sequence[str] = ("--emulate", EMULATE),
    strike: Callable[[System, random.Random, Findings], None] | None = None,
) -> Findings:
    """Do it `kills` times at random moments, with about `active` jobs at any time; `strike` is what kills something."""
    draws = random.Random(seed)
    system = System(directory / "home", [*options, "--round", "2s"])
    traces = directory / "traces"
    traces.mkdir(parents=True)
    findings = Findings()
    began = time.monotonic()
    submitter = Submitter(system, traces, active, seed)
    try:
        system.start()
        submitter.start()
        submitter.submitted.wait(PATIENCE)
        watch = _CheckpointWatch(system)
        for number in range(kills):
            if draws.random() < 0.8:  # otherwise it may be hit while it starts
                system.wait_until_ready(time.monotonic())
            time.sleep(draws.uniform(*gap))
            watch.look()
            (strike or kill_something)(system, draws, findings)
            if not system.alive:
                time.sleep(draws.choice([0.0, draws.uniform(0.0, 1.0)]))  # things go on without a controller
                system.start(wait=False)
            if (number + 1) % 10 == 0:
                print(f"  {number + 1} of {kills} kills: {dict(findings.killed)}", file=sys.stderr, flush=True)
        submitter.finish()
        system.wait_until_ready(time.monotonic())
        jobs = wait_for_all(system)
    finally:
        submitter.over.set()
        findings.left_behind = system.stop()
    findings.seconds = time.monotonic() - began
    findings.jobs, findings.attempts = len(jobs), sum(job["attempt_count"] for job in jobs)
    findings.lost = list(lost_jobs(submitter.acknowledged, jobs))
    with open_store(system.directory) as store:
        held = store.read(lambda connection: [LeaseRecord(*row) for row in connection.execute(select(leases))])
    lives = {path.name: lives_of(path) for path in traces.iterdir()}
    findings.double = list(double_leases([life for each in lives.values() for life in each], held))
    steps = {job["name"]: job["steps"] for job in jobs}
    findings.undone = [text for name, total in steps.items() for text in lost_steps(name, lives.get(name, []), total)]
    findings.undone += watch.contradicted_by(lives)
    return findings


class Submitter(Thread):
    """Keeps some jobs going through the client, whatever becomes of the server; notes what was acknowledged."""

    def __init__(self, system: System, traces: Path, active: int, seed: int) -> None:
        super().__init__(daemon=True)
        self._system, self._traces, self._active = system, traces, active
        self._draws = random.Random(seed + 1)
        self.acknowledged: dict[str, str] = {}
        self.submitted, self.over = Event(), Event()
        self._failure: BaseException | None = None

    def run(self) -> None:
        try:
            with Client(self._system.address, self._system.token, patience=PATIENCE) as client:
                while not self.over.is_set():
                    states = Counter(job.state for job in client.jobs(state=["queued", "running", "preempting"]))
                    for _ in range(self._active - states.total()):
                        self._submit(client)
                    self.submitted.set()
                    self.over.wait(0.3)
        except BaseException as error:
            self._failure = error
            self.submitted.set()

    def _submit(self, client: Client) -> None:
        name = f"job{len(self.acknowledged)}"
        job = Job(id=name, throughputs=RATES, steps_left=float(self._draws.randrange(40, 240)))
        taken = client.submit(described(job, self._traces / name, SAVED_EVERY), idempotency_key=name)
        self.acknowledged[taken.id] = name

    def finish(self) -> None:
        """Submit no more; raises what went wrong."""
        self.over.set()
        self.join(PATIENCE)
        if self._failure is not None:
            raise self._failure


class _CheckpointWatch:
    """What the server said of checkpoints, and when: no process may begin later from before."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._seen: dict[str, list[tuple[float, int]]] = {}

    def look(self) -> None:
        system = self._system
        with (
            suppress(httpx.HTTPError),
            httpx.Client(base_url=system.address, headers=system.headers, timeout=5.0) as client,
        ):
            for job in listed(client, state="running"):
                if job["checkpoint_steps_left"] is not None:
                    saved = job["steps"] - job["checkpoint_steps_left"]
                    self._seen.setdefault(job["name"], []).append((time.time(), int(saved)))

    def contradicted_by(self, lives: dict[str, list[Life]]) -> Iterator[str]:
        for name, seen in self._seen.items():
            for life in lives.get(name, ()):
                known = max((saved for at, saved in seen if at < life.began_at), default=0)
                if life.first < known:
                    yield f"{name} began at step {life.first} though the server knew of a checkpoint at {known}"


def kill_something(system: System, draws: random.Random, findings: Findings) -> None:
    what = draws.choice(["controller", "agent", "keeper", "rank"])
    victims: Callable[[], Iterable[int]] = {
        "controller": lambda: [system.process.pid] if system.process is not None else [],
        "agent": lambda: [pid for pid in [system.agent()] if pid is not None],
        "keeper": system.keepers,
        "rank": system.ranks,
    }[what]
    deadline = time.monotonic() + PATIENCE
    while not (found := list(victims())):  # nothing of this kind lives just now
        assert time.monotonic() < deadline, f"nothing to kill: no {what} for {PATIENCE:g} s"
        time.sleep(0.02)
    with suppress(ProcessLookupError):
        os.kill(draws.choice(found), signal.SIGKILL)
        findings.killed[what] += 1
    if what == "controller" and system.process is not None:
        system.process.wait()


def wait_for_all(system: System) -> list[dict[str, Any]]:
    deadline = time.monotonic() + PATIENCE
    with httpx.Client(base_url=system.address, headers=system.headers, timeout=30.0) as client:
        while True:
            jobs = listed(client)
            if all(job["state"] in {"succeeded", "failed", "cancelled"} for job in jobs):
                return jobs
            if time.monotonic() > deadline:
                return jobs
            time.sleep(0.5)


def lost_jobs(acknowledged: dict[str, str], jobs: list[dict[str, Any]]) -> Iterator[str]:
    """Acknowledged jobs (names by id) that are gone or did not succeed, and jobs that no client has submitted."""
    by_id = {str(job["id"]): job for job in jobs}
    for job, name in acknowledged.items():
        if job not in by_id:
            yield f"{name} ({job}) was acknowledged and is gone"
        elif by_id[job]["state"] != "succeeded":
            yield f"{name} ({job}) is {by_id[job]['state']}: {by_id[job]['reason']}"
    for job in by_id.keys() - acknowledged.keys():
        yield f"{by_id[job]['name']} ({job}) is there though no client knows of it"


def double_leases(lives: list[Life], held: list[LeaseRecord]) -> Iterator[str]:
    """Processes that overlapped, on a worker or of one job, and leases that do so by the store's own times."""
    places = {lease.number: [(lease.accelerator, worker) for worker in lease.workers] for lease in held}
    on: dict[object, list[Life]] = {}
    for life in lives:
        if life.lease not in places:
            yield f"{life.job} ran under lease {life.lease}, of which the store knows nothing"
        for place in [*places.get(life.lease, ()), life.job]:
            on.setdefault(place, []).append(life)
    for place, there in on.items():
        for one, two in pairwise(sorted(there, key=lambda life: life.began_at)):
            if two.began_at < one.last_at:
                seconds = one.last_at - two.began_at
                yield f"{place}: lease {one.lease} ({one.job}) and {two.lease} ({two.job}) overlap by {seconds:.3f} s"
    for place, some in _by_worker(held).items():
        for first, second in pairwise(sorted(some, key=lambda lease: lease.number)):
            if first.ended_at is None or (second.granted_at or 0.0) < first.ended_at:
                yield f"{place}: by the store, lease {second.number} began before {first.number} ended"


def _by_worker(held: list[LeaseRecord]) -> dict[tuple[str, int], list[LeaseRecord]]:
    found: dict[tuple[str, int], list[LeaseRecord]] = {}
    for lease in held:
        if lease.granted_at is not None:
            for worker in lease.workers:
                found.setdefault((lease.accelerator, worker), []).append(lease)
    return found


def lost_steps(name: str, lives: list[Life], total: int) -> Iterator[str]:
    """Where a job went on from before its last checkpoint, or from beyond what it had done, or did not do its steps."""
    saved = done = 0
    for life in lives:
        if life.first < saved:
            yield f"{name} went back to step {life.first}, though step {saved} was saved (process {life.pid})"
        if life.first > done:
            yield f"{name} went on at step {life.first}, though only {done} were done (process {life.pid})"
        expected = range(life.first + 1, life.first + 1 + len(life.steps))
        if [step for _, step in life.steps] != list(expected):
            yield f"{name} did not do its steps one by one (process {life.pid})"
        saved = max([saved, *(step for _, step in life.saved)])
        done = max(done, life.last)
    if not lives or not lives[-1].ended or done != total:
        yield f"{name} did {done} of {total} steps, and {'ended' if lives and lives[-1].ended else 'never ended'}"
