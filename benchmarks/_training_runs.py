"""Runs of generated training jobs that the benchmarks share: the clusters and streams of Gavel's evaluation."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fairway.cluster import Cluster
from fairway.report.training.record import TrainingRecord
from fairway.sim.submissions import Progress, Submission, TrainingOptions
from fairway.sim.training import simulate_training
from fairway.traces.generate import generate
from fairway.traces.generate_options import parse_generate
from tests.figures import gavel_rates

CLUSTER = Cluster({"v100": 36, "p100": 36, "k80": 36})
WINDOW = (4000, 5000)


def jobs(text: str) -> Iterator[Submission]:
    rates = gavel_rates()
    for job in generate(parse_generate(text), rates):
        assert job.job_type is not None
        yield Submission(job.arrival, rates.job(job.id, job.job_type, job.scale_factor, steps_left=job.total_steps))


def run(
    text: str, policy: str, options: TrainingOptions, cluster: Cluster = CLUSTER, *, progress: Progress | None = None
) -> TrainingRecord:
    return simulate_training(jobs(text), cluster, policy, options, table=gavel_rates(), progress=progress)


def mean_hours(record: TrainingRecord) -> float:
    """The mean completion time of the jobs that count."""
    counted = record.jobs.counted
    return float(np.nanmean((record.jobs.finish - record.jobs.arrival)[counted])) / 3600
