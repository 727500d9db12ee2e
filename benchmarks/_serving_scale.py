"""A large serving run: prints its seconds and the most memory that the process held, as JSON.

It is a process of its own, so that nothing else counts; `python -m benchmarks._serving_scale 1000000 0`.
"""

from __future__ import annotations

import json
import math
import sys
import time

from benchmarks._peak_memory import peak_megabytes
from fairway.report.serving.metrics import summarize_serving
from fairway.sim.serving import ServingOptions
from fairway.sim.serving_workload import ServingRun, ServingWorkload

WORKERS = 1000
RATE = 700.0
TASKS_OF_A_REQUEST = 3.75

if __name__ == "__main__":
    requests = math.ceil(1.001 * int(sys.argv[1]) / TASKS_OF_A_REQUEST)
    workload = ServingWorkload("compass-edge", "poisson", WORKERS, requests, RATE)
    record = ServingRun(workload, "compass", ServingOptions(seed=int(sys.argv[2])))()
    told = {
        "tasks": int(record.workers.tasks.sum()),
        "seconds": record.wall_seconds,
        "cpu_seconds": time.process_time(),
        "megabytes": peak_megabytes(),
        "events": record.events,
        "mean_slowdown": summarize_serving(record)["slowdown"]["mean"],
    }
    sys.stdout.write(json.dumps(told) + "\n")
