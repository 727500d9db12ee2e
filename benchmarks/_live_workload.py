"""The jobs of the live benchmark, in two forms: for the simulator, and as processes of the live system.

They are those of Gavel's generator with the rates of the catalog. A live job does coarser steps than a real one, as
many as take some milliseconds on a V100; the simulator is given the same steps and rates.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fairway.cluster import Cluster
from fairway.jobs import Job
from fairway.profiles import catalog
from fairway.sim.submissions import Submission
from fairway.traces.generate import generate
from fairway.traces.generate_options import parse_generate

JOB_SCRIPT = Path(__file__).with_name("_live_job.py")
STEP_SECONDS = 0.02
"""What a step takes on the reference accelerator, on the wall clock."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Jobs in order of arrival, with times on the engine's clock, `time_scale` of which pass in a second."""

    jobs: tuple[Submission, ...]
    cluster: Cluster
    time_scale: float

    @property
    def emulate(self) -> str:
        """The cluster as an option of `fairway up`."""
        return ",".join(f"{name}={count}" for name, count in self.cluster.workers.items())

    def described(self, traces: Path) -> Iterator[tuple[float, dict[str, Any]]]:
        """When each job comes, in seconds of the wall clock, and its description; they write to files in `traces`."""
        for submission in self.jobs:
            yield submission.arrival / self.time_scale, described(submission.job, traces / submission.job.id)


def described(job: Job, trace: Path, every: int | None = None) -> dict[str, Any]:
    """A job that does its steps at the pace of the accelerator that it gets."""
    run = [sys.executable, str(JOB_SCRIPT), str(trace)]
    return {
        "run": run if every is None else [*run, str(every)],
        "name": job.id,
        "steps": int(job.steps_left or 0),
        "throughputs": dict(job.throughputs),
        "retries": 1000,
    }


def generated(text: str, cluster: Cluster, time_scale: float) -> Workload:
    """Jobs as in `jobs=60,rate=1.0,seed=0`."""
    table = catalog.builtin()
    jobs = []
    for one in generate(parse_generate(text), table):
        assert one.job_type is not None
        job = table.job(f"job{one.id}", one.job_type, one.scale_factor, steps_left=one.total_steps)
        jobs.append(Submission(one.arrival, _coarse(job, cluster, time_scale)))
    return Workload(tuple(jobs), cluster, time_scale)


def _coarse(job: Job, cluster: Cluster, time_scale: float) -> Job:
    """The same job in fewer steps."""
    rates = {name: job.throughputs[name] for name in cluster.workers}
    wanted = 1 / (STEP_SECONDS * time_scale)
    factor = wanted / max(rates.values())
    assert job.steps_left is not None
    steps = max(round(job.steps_left * factor), 1)
    return replace(
        job,
        throughputs={name: rate * factor for name, rate in rates.items()},
        spread_throughputs=None,
        steps_left=steps,
    )
