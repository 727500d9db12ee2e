"""How long does a sweep take, and how much faster is it on all cores than on one?

Four policies at six rates with three seeds, of 1,000 jobs each on 108 accelerators: 72 runs of `fairway sweep`, first
with a process per core, then in one process, each begun by a new interpreter as the command would be. Both write the
same bytes, or the benchmark fails.

Two times are measured. The clock says what a user waits, which on a busy machine is not what the sweep takes. The
*critical path* is what it would take with all cores to itself: the CPU seconds of the process that asks, until its
workers begin, and then those of the worker that has most to do, or what all take together by the number of cores if
that is more. `--only one-seed` does a third of it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks._report import Options, Result
from benchmarks._report import run as report
from fairway.sim.comparison import usable_cores

POLICIES = ("fifo", "max-min-fairness", "finish-time-fairness", "shortest-job-first")
RATES = (1, 2, 3, 4, 5, 6)
CLUSTER = "v100=36,p100=36,k80=36"
MOST_SECONDS = 180.0
LEAST_SPEED_UP = 1.8

_PROGRAM = """
import json, multiprocessing, os, sys, time
begin = time.monotonic()
from pathlib import Path
from fairway.experiments import results
given, to, processes = json.loads(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
made = results.Results(results.Sweep(**given), to)
before = time.process_time()

def cpu(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

taken = {}

def told(_):
    for child in multiprocessing.active_children():
        taken[child.pid] = cpu(child.pid)

results.complete(made, processes=processes, told=told)
print(json.dumps([time.monotonic() - begin, before, time.process_time(), list(taken.values())]))
"""


def measure(options: Options) -> Iterator[Result]:
    jobs, rates, seeds = (50, RATES[:2], [0]) if options.quick else (1000, RATES, [0, 1, 2])
    if options.only == "one-seed":
        seeds = [0]
    given = {
        "policies": POLICIES,
        "rates": rates,
        "seeds": [options.seed + one for one in seeds],
        "clusters": [CLUSTER],
        "generate": f"jobs={jobs},multi-gpu",
    }
    cores = usable_cores()
    with tempfile.TemporaryDirectory() as directory:
        several, one = (Path(directory) / f"{count}.parquet" for count in ("several", "one"))
        wall, before, own, workers = _swept(given, several, cores)
        single_wall, _, single, _ = _swept(given, one, 1)
        assert several.read_bytes() == one.read_bytes(), "the number of processes shows in the results"
    path = before + max(*workers, (own - before + sum(workers)) / cores)
    name = f"sweep of {len(POLICIES)} policies, {len(rates)} rates, {len(seeds)} seeds, {jobs:,} jobs each"
    target = None if options.quick else MOST_SECONDS
    extra = {"clock_seconds": wall, "clock_seconds_of_one": single_wall, "cpu_seconds_of_workers": workers}
    yield Result(f"{name}, {cores} cores", "s (critical path)", path, target=target, extra=extra)
    least = None if options.quick else LEAST_SPEED_UP
    yield Result("the same against one process", "s (CPU)", path, "one process", single, single / path, target=least)
    yield Result("the same by the clock", "s", wall, "one process", single_wall, single_wall / wall)


def _swept(given: Mapping[str, object], to: Path, processes: int) -> tuple[float, float, float, list[float]]:
    command = [sys.executable, "-c", _PROGRAM, json.dumps(given), str(to), str(processes)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    wall, before, own, workers = json.loads(done.stdout)
    return wall, before, own, workers


if __name__ == "__main__":
    report("sweep", measure, parts=("one-seed",))
