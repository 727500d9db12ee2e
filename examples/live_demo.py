"""Shows the live system: two teams share four emulated accelerators, and jobs are preempted, saved and resumed.

It starts `fairway up` in a directory of its own, submits a dozen training jobs (`train_numpy.py`) through
`fairway.Client`, shows how they do, and stops it all again. What should come of it is predicted first, by the
simulator, which runs the same scheduler in virtual time; in the end both are compared. Time runs ten times as fast as
on the accelerators that are emulated.

    python examples/live_demo.py
"""

from __future__ import annotations

import math
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

import fairway
from fairway.client.records import ENDED, Job
from fairway.profiles import catalog

SCRIPT = Path(__file__).with_name("train_numpy.py")
WORKERS = {"v100": 2, "p100": 1, "k80": 1}
TEAMS = {"vision": 1.0, "language": 1.0}
POLICY = "hierarchical"
TIME_SCALE = 10.0
ROUND_SECONDS, RESTART_SECONDS = 60.0, 5.0
"""On the clock of the accelerators, as in the settings of `fairway up`: six seconds, and half a second, of ours."""
SIMULATIONS = 20
PATIENCE = 60.0
STATES = {"queued": "yellow", "running": "green", "preempting": "magenta", "succeeded": "dim", "failed": "bold red"}


@dataclass(frozen=True, slots=True)
class Planned:
    """A job to come: its type in the catalog says how fast it is on what; `seconds` is its length on a V100."""

    name: str
    team: str
    job_type: str
    seconds: float
    arrival: float
    model: str = "logistic"

    @property
    def rates(self) -> dict[str, float]:
        return {name: rate for name, rate in catalog.builtin().rates(self.job_type, 1).items() if name in WORKERS}

    @property
    def steps(self) -> int:
        return round(self.seconds * self.rates["v100"])

    def document(self) -> dict[str, object]:
        """As it is submitted."""
        return {
            "name": self.name,
            "team": self.team,
            "run": [sys.executable, str(SCRIPT), "--model", self.model],
            "job_type": self.job_type,
            "steps": self.steps,
        }


# Team vision comes first and takes all; language comes later and is owed half.
JOBS = (
    Planned("resnet18-a", "vision", "ResNet-18 (batch size 64)", 150, 0),
    Planned("resnet18-b", "vision", "ResNet-18 (batch size 128)", 200, 3),
    Planned("resnet18-c", "vision", "ResNet-18 (batch size 256)", 90, 6, "mlp"),
    Planned("resnet50-a", "vision", "ResNet-50 (batch size 16)", 120, 9, "mlp"),
    Planned("resnet50-b", "vision", "ResNet-50 (batch size 32)", 90, 12, "mlp"),
    Planned("resnet50-c", "vision", "ResNet-50 (batch size 64)", 60, 15),
    Planned("cyclegan", "vision", "CycleGAN", 60, 18, "mlp"),
    Planned("lm-a", "language", "LM (batch size 40)", 120, 90),
    Planned("lm-b", "language", "LM (batch size 80)", 100, 93),
    Planned("transformer-a", "language", "Transformer (batch size 16)", 90, 96, "mlp"),
    Planned("transformer-b", "language", "Transformer (batch size 64)", 80, 99, "mlp"),
    Planned("recommender", "language", "Recommendation (batch size 1024)", 60, 102),
)


def predicted() -> dict[str, float]:
    """When each job should be done, in our seconds after it was submitted.

    Who is preempted can hang on a tenth of a second, so this is the mean of some simulations, in which jobs come a
    little later or earlier.
    """
    options = fairway.TrainingOptions(
        round_seconds=ROUND_SECONDS,
        restart_seconds=RESTART_SECONDS,
        entities={name: fairway.Entity(weight=weight) for name, weight in TEAMS.items()},
    )
    draws = np.random.default_rng(0)
    took: dict[str, list[float]] = {job.name: [] for job in JOBS}
    for _ in range(SIMULATIONS):
        submissions = [
            fairway.Submission(
                job.arrival + draws.uniform(0.0, 2.0),
                fairway.Job(id=job.name, throughputs=job.rates, steps_left=job.steps, entity=job.team),
            )
            for job in JOBS
        ]
        jobs = fairway.simulate_training(submissions, fairway.Cluster(WORKERS), POLICY, options).jobs
        for name, seconds in zip(jobs.ids, (jobs.finish - jobs.arrival).tolist(), strict=True):
            took[name].append(seconds / TIME_SCALE)
    return {name: float(np.mean(each)) for name, each in took.items()}


@contextmanager
def running_system(directory: Path, console: Console) -> Iterator[fairway.Client]:
    """`fairway up`, and a client of it; stopped in the end, as Ctrl-C would."""
    emulate = ",".join(f"{name}={count}" for name, count in WORKERS.items())
    teams = ",".join(f"{name}={weight:g}" for name, weight in TEAMS.items())
    command = [sys.executable, "-m", "fairway.cli.main", "up", "--directory", str(directory), "--port", "0"]
    command += ["--emulate", emulate, "--teams", teams]
    command += ["--time-scale", f"{TIME_SCALE:g}", "--round", f"{ROUND_SECONDS:g}s"]
    console.print(f"[dim]$ fairway {' '.join(command[3:])}[/dim]")
    with (directory / "up.log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        address = directory / "address"
        deadline = time.monotonic() + PATIENCE
        while not address.exists():
            if server.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"fairway up did not start:\n{(directory / 'up.log').read_text()}")
            time.sleep(0.05)
        token = (directory / "token").read_text().strip()
        with fairway.Client(address.read_text().strip(), token) as client:
            yield client
    finally:
        server.send_signal(signal.SIGINT)
        code = server.wait()
    if code:
        raise SystemExit(f"fairway up ended with exit code {code}:\n{(directory / 'up.log').read_text()}")


def watch(client: fairway.Client, expected: Mapping[str, float], console: Console) -> list[Job]:
    """Submit the jobs when they are due, and show them until all have ended."""
    began = time.time()
    coming = list(JOBS)
    jobs: list[Job] = []
    said = 0.0
    with Live(console=console, refresh_per_second=4, transient=True) as live:
        while coming or any(job.state not in ENDED for job in jobs):
            while coming and time.time() - began >= coming[0].arrival / TIME_SCALE:
                client.submit(coming.pop(0).document())
            jobs, workers = list(client.jobs(order="oldest")), client.workers()
            busy, seconds = sum(worker.state == "busy" for worker in workers), time.time() - began
            title = f"{seconds:.0f} s: {busy} of {len(workers)} emulated accelerators busy, {len(coming)} jobs to come"
            live.update(Group(Text(title, style="bold"), picture(jobs, expected)))
            if not console.is_terminal and seconds - said >= 10:
                said = seconds
                states = ", ".join(f"{sum(job.state == state for job in jobs)} {state}" for state in STATES)
                console.print(f"{title}; {states}")
            until = coming[0].arrival / TIME_SCALE - seconds if coming else math.inf
            time.sleep(max(min(0.3, until), 0.0))
    return [client.job(job) for job in jobs]


def picture(jobs: Sequence[Job], expected: Mapping[str, float]) -> Table:
    """The jobs as they stand."""
    table = Table(box=None, pad_edge=False)
    for heading in ("job", "team", "state", "on", "progress", "", "starts", "predicted", "took"):
        table.add_column(heading, justify="right" if heading in {"", "starts", "predicted", "took"} else "left")
    for job in jobs:
        done = 1 - (job.steps_left or 0.0) / (job.steps or 1.0)
        since = job.submitted_at or 0.0
        took = (job.ended_at or time.time()) - since
        table.add_row(
            job.name,
            job.team,
            Text(job.state, style=STATES.get(job.state, "")),
            job.accelerator or "",
            ProgressBar(total=1.0, completed=done, width=24),
            f"{done:.0%}",
            str(job.attempt_count),
            f"{expected[job.name or '']:.1f} s",
            f"{took:.1f} s",
        )
    return table


def compare(jobs: Sequence[Job], expected: Mapping[str, float], console: Console) -> None:
    """What was predicted, and what happened."""
    console.print(picture(jobs, expected))
    took = np.array([(job.ended_at or 0.0) - (job.submitted_at or 0.0) for job in jobs])
    said = np.array([expected[job.name or ""] for job in jobs])
    error = took.mean() / said.mean() - 1
    stops = sum(attempt.outcome == "preempted" for job in jobs for attempt in job.attempts)
    console.print(
        f"\nPredicted: {said.mean():.1f} s on average. Live: {took.mean():.1f} s, [bold]{error:+.1%}[/bold]; "
        f"a single job was off by {np.abs(took / said - 1).mean():.0%} on average."
    )
    console.print(f"Jobs were preempted {stops} times: each saved a checkpoint, stopped, and went on from there later.")


def main() -> None:
    began = time.monotonic()
    console = Console()
    if not console.is_terminal:
        console.width = 120
    console.print("Twelve training jobs of two teams on four accelerators, which are [bold]emulated[/bold]: processes")
    console.print("that take as long as the real ones would, ten times as fast. The models are small, but trained.\n")
    expected = predicted()
    with tempfile.TemporaryDirectory(prefix="fairway-demo-") as name:
        with running_system(Path(name), console) as client:
            jobs = watch(client, expected, console)
            stopped = next((job for job in jobs if job.attempt_count > 1), jobs[0])
            log = "".join(client.logs(stopped))
            compare(jobs, expected, console)
        console.print(f"\nThe log of {stopped.name}:")
        for line in log.splitlines():
            console.print(f"  {line}", style="dim", highlight=False)
    console.print(f"\nEverything is stopped, after {time.monotonic() - began:.0f} s.")
    if any(job.state != "succeeded" for job in jobs):
        raise SystemExit("not every job succeeded")


if __name__ == "__main__":
    main()
