"""The most memory that a process needs which decides max-min fairness of so many jobs: prints it with the gap, as JSON.

It is a process of its own, so that nothing else counts; `python -m benchmarks._peak_memory 100000`.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

from benchmarks._instances import distinct_jobs
from fairway import policy_of


def peak_megabytes() -> float:
    """The highest resident size so far.

    ru_maxrss of a child begins at that of the process which started it; VmHWM, where there is one, begins at 0.
    """
    status = Path("/proc/self/status")
    if status.exists():
        peak = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(peak.split()[1]) * 1024 / 1e6
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


if __name__ == "__main__":
    jobs = int(sys.argv[1])
    allocation = policy_of("max-min-fairness").allocate(distinct_jobs(jobs, jobs // 4).problem())
    sys.stdout.write(json.dumps({"megabytes": peak_megabytes(), "gap": allocation.gap}) + "\n")
