"""How the service does with very many jobs: taking them in, listing them, and coming back after a kill."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._live_system import PATIENCE, System
from benchmarks._live_workload import described
from fairway.jobs import Job
from fairway.store import open_store
from fairway.store.submissions import Submission, submit

EMULATE = "v100=2,p100=1,k80=1"
RATES = {"v100": 20.0, "p100": 10.0, "k80": 5.0}
FOR_LONG = 10_000_000.0


@contextmanager
def new_system(jobs: int = 0) -> Iterator[System]:
    """A system that runs, with so many jobs in its store before it first started."""
    with tempfile.TemporaryDirectory(prefix="fairway-") as name:
        directory = Path(name)
        system = System(directory / "home", ["--emulate", EMULATE, "--round", "30s"])
        (system.directory / "traces").mkdir(parents=True)
        if jobs:
            with open_store(system.directory) as store:
                given = [Submission(spec=spec, name=spec["name"], steps=spec["steps"])
                         for spec in (_job(system, number) for number in range(jobs))]  # fmt: skip
                store.write(submit, given, at=time.time())
        try:
            system.start()
            yield system
        finally:
            system.stop()


def take_in(system: System, jobs: int, clients: int) -> dict[str, float]:
    """Submit jobs; each is acknowledged when it is durable, and only then does a client send its next."""
    return _asked(
        system,
        clients,
        [["POST", "/jobs", json.dumps(_job(system, number)), f"key-{number}"] for number in range(jobs)],
    )


def list_jobs(system: System, pages: int, clients: int, jobs: int) -> dict[str, float]:
    """Ask for pages of 100 jobs: the newest, older ones, and those of a state."""
    paths = ["/jobs", *(f"/jobs?after={after}" for after in range(jobs, 100, -jobs // 7)), "/jobs?state=queued"]
    return _asked(system, clients, [["GET", paths[number % len(paths)], None, None] for number in range(pages)])


def restart(system: System) -> dict[str, Any]:
    """Kill the controller and start it again: the seconds until it answers, and whether jobs noticed."""
    before = _until_running(system)
    system.kill()
    steps = _steps(system)
    seconds = system.start()
    cpu_seconds = system.cpu_seconds
    after = system.ranks()
    deadline = time.monotonic() + PATIENCE
    while any(later <= steps.get(name, 0) for name, later in _steps(system).items()):  # they go on, too
        assert time.monotonic() < deadline, "a job does not go on after the restart"
        time.sleep(0.1)
    return {
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "running": len(before),
        "untouched": len(set(before) & set(after)),
    }


def _until_running(system: System) -> list[int]:
    """Wait until every worker has a job that does steps."""
    wanted = sum(int(part.partition("=")[2]) for part in EMULATE.split(","))
    deadline = time.monotonic() + PATIENCE
    while len(_steps(system)) < wanted or len(system.ranks()) != wanted:
        assert time.monotonic() < deadline, f"only {len(system.ranks())} of {wanted} jobs run"
        time.sleep(0.1)
    return system.ranks()


def _steps(system: System) -> dict[str, int]:
    """How far the jobs that run are, by the files that they write themselves."""
    found = {}
    for path in (system.directory / "agent/channels").glob("*/progress-0.json"):
        try:
            found[path.parent.name] = int(json.loads(path.read_text())["step"])
        except (OSError, ValueError):
            continue
    return {name: step for name, step in found.items() if step}


def _asked(system: System, clients: int, requests: list[list[str | None]]) -> dict[str, float]:
    asked = {"address": system.address, "token": system.token, "clients": clients, "requests": requests}
    command = [sys.executable, "-m", "benchmarks._live_clients"]
    before = system.cpu_seconds
    done = subprocess.run(command, input=json.dumps(asked), check=True, capture_output=True, text=True)
    answer = json.loads(done.stdout)
    each = np.array(answer["each"])
    p50, p99 = np.quantile(each, [0.5, 0.99]).tolist()
    return {
        "seconds": answer["seconds"],
        "cpu_seconds": system.cpu_seconds - before,
        "per_second": len(each) / answer["seconds"],
        "p50": p50,
        "p99": p99,
    }


def _job(system: System, number: int) -> dict[str, Any]:
    job = Job(id=f"job{number}", throughputs=RATES, steps_left=FOR_LONG)
    return described(job, system.directory / "traces" / job.id)


if __name__ == "__main__":
    with new_system() as system:
        print(take_in(system, 10_000, 32))
        print(list_jobs(system, 1000, 1, 10_000))
        print(list_jobs(system, 1000, 8, 10_000))
        print(restart(system))
