"""The recorded runs of Gavel's own simulator (`tests/fixtures/gavel`), run by ours."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fairway.cluster import Cluster
from fairway.sim.submissions import Submission, TrainingOptions
from fairway.sim.training import simulate_training
from fairway.sim.workload import submissions_of
from fairway.traces import parse_trace
from tests.figures import gavel_rates, gavel_runs, gavel_trace

OUR_NAMES = {
    "allox": "allox",
    "fifo": "fifo:agnostic",
    "fifo_perf": "fifo",
    "finish_time_fairness": "finish-time-fairness:agnostic",
    "finish_time_fairness_perf": "finish-time-fairness",
    "gandiva": "gandiva",
    "isolated": "isolated",
    "max_min_fairness": "max-min-fairness:agnostic",
    "max_min_fairness_packed": "max-min-fairness:space-sharing",
    "max_min_fairness_perf": "max-min-fairness",
    "max_min_fairness_water_filling_perf": "water-filling",
    "max_sum_throughput_perf": "max-throughput",
    "min_total_duration": "makespan:agnostic",
    "min_total_duration_perf": "makespan",
}


def recorded_jobs(trace: str, cluster: Cluster) -> Iterator[Submission]:
    """The jobs of a recorded trace, at the rates of the original's simulator."""
    return submissions_of(parse_trace(gavel_trace(trace), trace).jobs, cluster, gavel_rates(), source=trace)


def differences() -> Iterator[tuple[str, float, float]]:
    """The name of each run, and by what part our mean completion time and makespan differ from the recorded ones."""
    for run in gavel_runs().values():
        cluster = Cluster(run["cluster"])
        record = simulate_training(
            recorded_jobs(run["trace"], cluster),
            cluster,
            OUR_NAMES[run["policy"]],
            TrainingOptions(compat="gavel", seed=run["seed"]),
            table=gavel_rates(),
        )
        jct = float(np.nanmean(record.jobs.finish - record.jobs.arrival))
        yield run["name"], jct / run["avg_jct_seconds"] - 1, record.makespan_seconds / run["makespan_seconds"] - 1
