"""Runs so many training jobs on 1,000 workers, and prints the seconds, the memory and the mean completion time as JSON.

It is a process of its own, so that nothing else counts; `python -m benchmarks._training_scale 100000 0`.
"""

from __future__ import annotations

import json
import sys
import time

from benchmarks._peak_memory import peak_megabytes
from benchmarks._training_runs import mean_hours, run
from fairway.cluster import Cluster
from fairway.sim.submissions import TrainingOptions

WORKERS = {"v100": 334, "p100": 333, "k80": 333}

if __name__ == "__main__":
    count, seed = int(sys.argv[1]), int(sys.argv[2])
    cluster = Cluster(WORKERS)
    run("jobs=30,rate=1000", "max-min-fairness", TrainingOptions(), cluster)  # loads the compiled code
    begin = time.perf_counter()
    record = run(f"jobs={count},rate=37,seed={seed}", "max-min-fairness", TrainingOptions(seed=seed), cluster)
    seconds = time.perf_counter() - begin
    answer = {"seconds": seconds, "megabytes": peak_megabytes(), "rounds": record.rounds, "hours": mean_hours(record)}
    sys.stdout.write(json.dumps(answer) + "\n")
