"""The numbers of a run as one row of a sweep; only what the run decides, nothing that depends on the machine."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairway.report.serving.metrics import summarize_serving
from fairway.report.serving.record import ServingRecord
from fairway.report.training.metrics import summarize
from fairway.report.training.record import TrainingRecord

Row = dict[str, Any]


def training_row(record: TrainingRecord) -> Row:
    """The numbers of a run of training jobs; seconds, dollars, parts of 1."""
    run = summarize(record)
    due = int((record.jobs.counted & np.isfinite(record.jobs.deadline)).sum())
    missed = run["slo_violations"]
    return {
        "jobs": run["jobs"],
        "completed": run["completed"],
        **{f"jct_{name}": value for name, value in run["jct_seconds"].items()},
        "makespan": run["makespan_seconds"],
        "utilization": run["utilization"],
        "preemptions": run["preemptions"],
        "rho_mean": run["rho"]["mean"],
        "rho_max": run["rho"]["max"],
        "cost_dollars": run["cost_dollars"],
        "hit_rate": None if missed is None or not due else 1.0 - missed / due,
    }


def serving_row(record: ServingRecord) -> Row:
    """The numbers of a run of requests; seconds, dollars, parts of 1."""
    run = summarize_serving(record)
    return {
        "requests": run["requests"],
        "completed": run["completed"],
        **{f"latency_{name}": value for name, value in run["latency_seconds"].items()},
        "slowdown_mean": run["slowdown"]["mean"],
        "utilization": run["utilization"],
        "cost_dollars": run["cost_dollars"],
        "hit_rate": run["slo_hit_rate"],
    }
