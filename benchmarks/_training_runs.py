"""Runs of generated training jobs that the benchmarks share: the clusters and streams of Gavel's evaluation."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np

from fairway.cluster import Cluster
from fairway.profiles import ThroughputTable, catalog, read_table
from fairway.report.training_record import TrainingRecord
from fairway.sim.submissions import Submission, TrainingOptions
from fairway.sim.training import simulate_training
from fairway.traces.generate import generate
from fairway.traces.generate_options import parse_generate

CLUSTER = Cluster({"v100": 36, "p100": 36, "k80": 36})
WINDOW = (4000, 5000)


@cache
def table() -> ThroughputTable:
    """The published rates: the file itself if FAIRWAY_SHARED_DATA names a place that has it, or else our catalog of it.

    The catalog has four digits of each rate, which moves single completion times, and averages by less than a percent.
    """
    file = Path(os.environ.get("FAIRWAY_SHARED_DATA", "")) / "gavel/simulation_throughputs.json"
    return read_table(file) if file.is_file() else catalog.builtin()


def jobs(text: str) -> Iterator[Submission]:
    rates = table()
    for job in generate(parse_generate(text), rates):
        assert job.job_type is not None
        yield Submission(job.arrival, rates.job(job.id, job.job_type, job.scale_factor, steps_left=job.total_steps))


def run(text: str, policy: str, options: TrainingOptions, cluster: Cluster = CLUSTER) -> TrainingRecord:
    return simulate_training(jobs(text), cluster, policy, options, table=table())


def mean_hours(record: TrainingRecord) -> float:
    """The mean completion time of the jobs that count."""
    counted = record.jobs.counted
    return float(np.nanmean((record.jobs.finish - record.jobs.arrival)[counted])) / 3600
