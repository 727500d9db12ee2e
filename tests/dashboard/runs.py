"""Small runs of requests, simulated."""

from __future__ import annotations

import functools

from fairway.report.serving.record import ServingRecord
from fairway.sim.serving import ServingOptions
from fairway.sim.serving_workload import ServingRun, ServingWorkload


@functools.cache
def served_requests() -> ServingRecord:
    """Forty requests for the four workflows of compass-edge."""
    workload = ServingWorkload(arrivals="clients", requests=40, rate=3.0)
    options = ServingOptions(seed=1, keep_runs=True)
    return ServingRun(workload, "compass", options, {"scheduler": "compass", "seed": 1})()
