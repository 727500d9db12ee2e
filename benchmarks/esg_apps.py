"""Does the serverless simulator give the numbers of another simulation of `esg-apps`, and how fast?

That is a reference simulation of the same scenario which was written separately, with run times that vary by 8 % and
five seeds; its figures are in `tests/fixtures/esg_apps`. A row says by how much the mean over the seeds is off: in
points for the part of requests in time, in percent for dollars per request. Near saturation, small differences grow, so
the bound there is three points and three percent. The first rows say how long a simulated minute takes, and are to be
seen against the two seconds that it may.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks._report import Options, Result, spread, take_turns
from benchmarks._report import run as report
from fairway.report.serving.metrics import summarize_serving
from fairway.sim.comparison import compare
from fairway.sim.serving import ServingOptions
from fairway.sim.serving_workload import EsgApps, ServingRun
from tests.figures import esg_totals

REFERENCE = esg_totals()

NAMES = {
    "esg": "esg",
    "esg:margin=0.05": "esg-m05",
    "esg:margin=0.1": "esg-m10",
    "esg:shed": "esg-shed",
    "esg:same": "esg-same",
    "esg:no-batching": "no-batching",
    "esg:no-gpu-sharing": "no-gpu-sharing",
    "infless": "infless",
    "infless:efficiency": "infless-eff",
    "fast-gshare": "fast-gshare",
    "orion": "orion",
    "aquatope:exact": "aquatope",
    "front": "plan95",
}
"""Our schedulers, and what the reference simulation calls them, or the one that is closest."""

BUSY = {
    "strict-light": {"esg:no-gpu-sharing"},
    "moderate-normal": {"esg:no-gpu-sharing"},
    "relaxed-heavy": {"esg:no-gpu-sharing", "infless", "infless:efficiency", "fast-gshare"},
}
"""Those near saturation or beyond."""


def measure(options: Options) -> Iterator[Result]:
    """All rows, in turn."""
    for slo in ("relaxed", "moderate", "strict"):
        yield minute(slo, options)
    for setting in REFERENCE:
        for scheduler in NAMES:
            yield from off(scheduler, setting, options)


def run_of(
    scheduler: str,
    slo: str,
    load: str,
    seed: int = 1,
    *,
    warmup: float = 60.0,
    duration: float = 300.0,
    drain: float = 120.0,
) -> ServingRun:
    """One run of the scenario, as `fairway simulate serving --scenario esg-apps` does it."""
    options = ServingOptions(
        noise=0.08, window=(warmup, warmup + duration), drain_seconds=drain, seed=seed, keep_runs=True
    )
    return ServingRun(EsgApps(load, slo, seconds=warmup + duration), scheduler, options)


def minute(slo: str, options: Options) -> Result:
    """How long a minute of the heavy load takes."""
    run = run_of("esg", slo, "heavy", warmup=0.0, duration=60.0, drain=0.0)
    seconds = take_turns((run, 1 if options.quick else options.repeats))[0].seconds
    name = f"a minute of {slo}-heavy under esg"
    return Result(name, "s", float(np.median(seconds)), target=2.0, spread=spread(seconds))


def off(scheduler: str, setting: str, options: Options) -> Iterator[Result]:
    """How far from the means of the reference simulation."""
    slo, load = setting.split("-")
    expected_hit, expected_cost = REFERENCE[setting][NAMES[scheduler]]
    seeds = (1,) if options.quick else (1, 2, 3, 4, 5)
    length = {"warmup": 5.0, "duration": 20.0} if options.quick else {}
    runs = [run_of(scheduler, slo, load, seed, **length) for seed in seeds]
    summaries = [summarize_serving(record) for record in compare(runs)]
    hit = float(np.mean([each["slo_hit_rate"] or 0.0 for each in summaries]))
    cost = float(np.mean([each["cost_per_1000_requests"] or 0.0 for each in summaries]))
    bound = None if options.quick else 3.0 if scheduler in BUSY[setting] else 1.0
    name = f"{scheduler}, {setting}"
    found = {"found": hit, "expected": expected_hit}
    yield Result(f"{name}: in time, off", "points", 100 * abs(hit - expected_hit), target=bound, extra=found)
    found = {"found": cost, "expected": expected_cost}
    yield Result(f"{name}: cost, off", "%", 100 * abs(cost / expected_cost - 1), target=bound, extra=found)


if __name__ == "__main__":
    report("esg_apps", measure)
