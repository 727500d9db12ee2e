"""How fast is the serving simulator, against the one of Compass's authors, and how far does it go?

The same experiment: 1,000 requests for the four workflows (about 3,800 tasks) at 40 per second, 240 workers. The
authors' program is not part of this project, so it does not run here: its times are means of three runs recorded with
the results that our tests compare with, on a machine that may differ from this one and had other work, and the rows say
so. Ours is the median of single runs on one core, the making of workers and requests included. Both are given by the
clock and in CPU time; on a machine with other work, only the latter says much.

Then 1,000,000 tasks on 1,000 workers, in a process of its own: seconds and the most memory that it held.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from statistics import median

from benchmarks._report import Options, Result, spread, take_turns
from benchmarks._report import run as report
from fairway.report.serving.record import ServingRecord
from fairway.sim.serving import ServingOptions
from fairway.sim.serving_workload import ServingRun, ServingWorkload

WORKERS = 240
RATE = 40.0
PEER = "the authors' simulator, recorded"
RECORDED_SECONDS = {"compass": (4.675, 2.900), "hash": (0.743, 0.537)}
"""Of 1,000 jobs on 240 workers: by the clock, and in CPU time."""

TASKS_BOUND = {"seconds": 300.0, "megabytes": 2000.0}


def measure(options: Options) -> Iterator[Result]:
    """All rows, in turn."""
    requests = 100 if options.quick else 1000
    for scheduler, recorded in RECORDED_SECONDS.items():
        yield from speed(scheduler, recorded, requests, options)
    yield from scale(5000 if options.quick else 1_000_000, options)


def speed(scheduler: str, recorded: tuple[float, float], requests: int, options: Options) -> Iterator[Result]:
    """The time of one experiment."""
    workload = ServingWorkload("compass-edge", "clients", WORKERS, requests, RATE)
    run = ServingRun(workload, scheduler, ServingOptions(seed=42 + options.seed))
    run()  # loads the compiled kernels
    cpu_seconds: list[float] = []

    def timed() -> ServingRecord:
        begin = time.process_time()
        record = run()
        cpu_seconds.append(time.process_time() - begin)
        return record

    (turns,) = take_turns((timed, options.repeats))
    for kind, ours, peer in zip(("", ", CPU time"), (turns.seconds, cpu_seconds), recorded, strict=True):
        yield Result(
            name=f"{requests:,} requests, {WORKERS} workers, {scheduler}{kind}",
            unit="s",
            ours=median(ours),
            peer_name=PEER,
            peer=peer,
            ratio=None if options.quick else peer / median(ours),
            target=None if options.quick else 10.0,
            spread=spread(ours),
            extra={"repeats": len(ours), "peer_in_this_run": False, "events": turns.answer.events},
        )


def scale(tasks: int, options: Options) -> Iterator[Result]:
    """A large run, apart from this process."""
    command = [sys.executable, "-m", "benchmarks._serving_scale", str(tasks), str(options.seed)]
    told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    for unit, name in (("seconds", "s"), ("megabytes", "MB")):
        yield Result(
            name=f"{told['tasks']:,} tasks, 1,000 workers",
            unit=name,
            ours=told[unit],
            target=None if options.quick else TASKS_BOUND[unit],
            extra={key: told[key] for key in ("cpu_seconds", "events", "mean_slowdown")},
        )


if __name__ == "__main__":
    report("serving_sim", measure)
