"""Does the serverless simulator give the published numbers of `esg-apps`, and how fast?

The expected ones come from outside the project: an independent simulation of the same scenario with run times that vary
by 8 %, five seeds. A row says by how much the mean over the seeds is off: in points for the part of requests in time,
in percent for dollars per request. Near saturation, small differences grow, so the bound there is three points and
three percent. The first rows say how long a simulated minute takes, and are to be seen against the two seconds that
it may.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from benchmarks._report import Options, Result, spread, take_turns
from benchmarks._report import run as report
from fairway.report.serverless_metrics import summarize_serverless
from fairway.sim.comparison import compare
from fairway.sim.serverless import ServerlessOptions
from fairway.sim.serverless_workload import EsgApps, ServerlessRun


class Expected(NamedTuple):
    """The part of requests in time and dollars per 1,000 requests; `busy` near saturation or beyond."""

    hit: float
    cost: float
    busy: bool = False


STRICT_LIGHT = {
    "esg": Expected(0.6472, 0.4276),
    "esg:margin=0.05": Expected(0.8355, 0.4777),
    "esg:margin=0.1": Expected(0.9605, 0.5548),
    "esg:shed": Expected(0.6429, 0.4170),
    "esg:same": Expected(0.6421, 0.4276),
    "esg:no-batching": Expected(0.6421, 0.4276),
    "esg:no-gpu-sharing": Expected(0.7660, 1.0986, busy=True),
    "infless": Expected(0.7673, 0.5571),
    "infless:efficiency": Expected(0.7202, 0.5455),
    "fast-gshare": Expected(0.5062, 0.4087),
    "orion": Expected(0.9346, 0.6678),
    "aquatope:exact": Expected(0.9538, 0.5367),
    "front": Expected(0.9785, 0.5772),
}
MODERATE_NORMAL = {
    "esg": Expected(0.8657, 0.2499),
    "esg:margin=0.05": Expected(0.9097, 0.2617),
    "esg:margin=0.1": Expected(0.9691, 0.3009),
    "esg:shed": Expected(0.8655, 0.2485),
    "esg:same": Expected(0.8647, 0.2499),
    "esg:no-batching": Expected(0.8647, 0.2499),
    "esg:no-gpu-sharing": Expected(0.0, 0.6872, busy=True),
    "infless": Expected(0.9638, 0.4749),
    "infless:efficiency": Expected(0.9230, 0.3583),
    "fast-gshare": Expected(0.9081, 0.2623),
    "orion": Expected(0.9690, 0.3887),
    "aquatope:exact": Expected(0.9420, 0.2709),
    "front": Expected(0.9852, 0.2889),
}
RELAXED_HEAVY = {
    "esg": Expected(1.0, 0.2493),
    "esg:margin=0.05": Expected(1.0, 0.2539),
    "esg:margin=0.1": Expected(1.0, 0.2507),
    "esg:shed": Expected(1.0, 0.2493),
    "esg:same": Expected(1.0, 0.2473),
    "esg:no-batching": Expected(1.0, 0.2473),
    "esg:no-gpu-sharing": Expected(0.0, 0.2369, busy=True),
    "infless": Expected(0.0, 0.3691, busy=True),
    "infless:efficiency": Expected(0.0, 0.3352, busy=True),
    "fast-gshare": Expected(0.3797, 0.2304, busy=True),
    "orion": Expected(0.9986, 0.2516),
    "aquatope:exact": Expected(1.0, 0.2473),
    "front": Expected(1.0, 0.2476),
}
PUBLISHED = {
    ("strict", "light"): STRICT_LIGHT,
    ("moderate", "normal"): MODERATE_NORMAL,
    ("relaxed", "heavy"): RELAXED_HEAVY,
}


def measure(options: Options) -> Iterator[Result]:
    """All rows, in turn."""
    for slo in ("relaxed", "moderate", "strict"):
        yield minute(slo, options)
    for (slo, load), schedulers in PUBLISHED.items():
        for scheduler, expected in schedulers.items():
            yield from off(scheduler, slo, load, expected, options)


def minute(slo: str, options: Options) -> Result:
    """How long a minute of the heavy load takes."""
    run = ServerlessRun(EsgApps("heavy", slo), "esg", ServerlessOptions(0.0, 60.0, 0.0, seed=1))
    seconds = take_turns((run, 1 if options.quick else options.repeats))[0].seconds
    name = f"a minute of {slo}-heavy under esg"
    return Result(name, "s", float(np.median(seconds)), target=2.0, spread=spread(seconds))


def off(scheduler: str, slo: str, load: str, expected: Expected, options: Options) -> Iterator[Result]:
    """How far from the published means."""
    seeds = (1,) if options.quick else (1, 2, 3, 4, 5)
    length = ServerlessOptions(5.0, 20.0) if options.quick else ServerlessOptions()
    runs = [
        ServerlessRun(
            EsgApps(load, slo),
            scheduler,
            ServerlessOptions(length.warmup_seconds, length.duration_seconds, seed=seed),
        )
        for seed in seeds
    ]
    summaries = [summarize_serverless(record) for record in compare(runs)]
    hit = float(np.mean([each["slo_hit_rate"] or 0.0 for each in summaries]))
    cost = float(np.mean([each["cost_per_1000_requests"] or 0.0 for each in summaries]))
    bound = None if options.quick else 3.0 if expected.busy else 1.0
    name = f"{scheduler}, {slo}-{load}"
    found = {"found": hit, "expected": expected.hit}
    yield Result(f"{name}: in time, off", "points", 100 * abs(hit - expected.hit), target=bound, extra=found)
    found = {"found": cost, "expected": expected.cost}
    yield Result(f"{name}: cost, off", "%", 100 * abs(cost / expected.cost - 1), target=bound, extra=found)


if __name__ == "__main__":
    report("esg_apps", measure)
