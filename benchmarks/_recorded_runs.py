"""The recorded runs of Gavel's own simulator, where FAIRWAY_SHARED_DATA names a place that has them, run by ours."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fairway.cluster import Cluster
from fairway.sim.submissions import TrainingOptions
from fairway.sim.training import simulate_training
from fairway.sim.workload import Workload

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


def recorded_runs(data: Path) -> list[dict[str, Any]]:
    """Those that are the original's own code and ended well."""
    runs: list[dict[str, Any]] = json.loads((data / "gavel-golden/sim_cases.json").read_text())
    return [run for run in runs if run["gavel_own_code"] and run["status"] == "ok"]


def differences(data: Path) -> Iterator[tuple[str, float, float]]:
    """The name of each run, and by what part our mean completion time and makespan differ from the recorded ones."""
    profiles = str(data / "gavel/simulation_throughputs.json")
    for run in recorded_runs(data):
        cluster = Cluster(run["cluster"])
        workload = Workload(trace=str(data / "gavel-golden/traces" / run["trace"]), profiles=profiles)
        record = simulate_training(
            workload.submissions(cluster),
            cluster,
            OUR_NAMES[run["policy"]],
            TrainingOptions(compat="gavel", seed=run["seed"]),
            table=workload.table(),
        )
        jct = float(np.nanmean(record.jobs.finish - record.jobs.arrival))
        yield run["name"], jct / run["avg_jct_seconds"] - 1, record.makespan_seconds / run["makespan_seconds"] - 1
