"""How fast is the training simulator?

The jobs are those of one point of Gavel's evaluation: one worker each, 4.0 an hour on 36 accelerators of each of three
types, until numbers 4000 to 4999 have finished, under max-min fairness. Gavel's own simulator took 379 s for it on one
core (13,785 rounds); that number is recorded, not measured in this run. Ours runs it twice: with the original's own
mechanism, which passes as many rounds and decides every 1,920 s, and with our engine, the one of the live system, which
decides three times as often and tells a driver about every lease. Timed is everything from generating the jobs to the
record.

Then 10,000 and 100,000 jobs on 1,000 workers at the same load per worker, each in a process of its own: time and memory
should grow no faster than n log n.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from statistics import median

from benchmarks._report import Options, Result, spread, take_turns
from benchmarks._report import run as report
from benchmarks._training_runs import WINDOW, mean_hours, run
from fairway.sim.submissions import TrainingOptions

GAVEL_SECONDS = 379.0
GAVEL = "Gavel's simulator (recorded)"


def measure(options: Options) -> Iterator[Result]:
    yield from one_point(options)
    yield from growth(options)


def one_point(options: Options) -> Iterator[Result]:
    window = (100, 200) if options.quick else WINDOW
    for name, compat in (("5,000 jobs at 4.0/h, Gavel's mechanism", "gavel"), ("the same jobs, our engine", None)):
        asked = TrainingOptions(window=window, compat=compat, seed=options.seed)  # type: ignore[arg-type]
        text = f"rate=4.0,seed={options.seed}"
        run(text, "max-min-fairness", TrainingOptions(window=(0, 10), compat=asked.compat))  # loads the compiled code
        (turns,) = take_turns((partial(run, text, "max-min-fairness", asked), options.repeats))
        seconds = median(turns.seconds)
        yield Result(
            name=name,
            unit="s",
            ours=seconds,
            peer_name=None if options.quick else GAVEL,
            peer=None if options.quick else GAVEL_SECONDS,
            ratio=None if options.quick else GAVEL_SECONDS / seconds,
            target=200.0 if compat and not options.quick else None,
            spread=spread(turns.seconds),
            extra={
                "rounds": turns.answer.rounds,
                "solves": turns.answer.solves,
                "mean_jct_hours": mean_hours(turns.answer),
                "repeats": len(turns.seconds),
            },
        )


def growth(options: Options) -> Iterator[Result]:
    sizes = (500, 1000) if options.quick else (10_000, 100_000)
    small, large = (_scale(size, options.seed) for size in sizes)
    yield Result(f"{sizes[1]:,} jobs on 1,000 workers", "s", large["seconds"], extra=large)
    bound = sizes[1] * math.log(sizes[1]) / (sizes[0] * math.log(sizes[0]))
    for quantity in ("seconds", "megabytes"):
        yield Result(
            f"{quantity} of {sizes[1]:,} jobs against {sizes[0]:,}",
            "x",
            large[quantity] / small[quantity],
            target=None if options.quick else bound,
        )


def _scale(jobs: int, seed: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks._training_scale", str(jobs), str(seed)]
    answer: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return answer


if __name__ == "__main__":
    report("training_sim", measure)
