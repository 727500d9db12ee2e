"""The requests of a live run in the simulator, with the profile that the live run had."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import NamedTuple

import numpy as np

from benchmarks._serving_live_documents import Document
from fairway.report.serving.metrics import summarize_serving
from fairway.sim.arrivals import Arrivals
from fairway.sim.scenario_file import parse_scenario
from fairway.sim.serving import ServingOptions, simulate_serving

_PAUSE_SECONDS = 5.0
"""Between turns, as live: those of one are over before the next begins."""


class Simulated(NamedTuple):
    """Mean latencies by turn, and the part of the uses of a model that found it; without the first turn."""

    means: list[float]
    hit_rate: float


def simulated(profile: Path, turns: Sequence[tuple[list[float], list[int]]], seed: int) -> Simulated:
    """Run the turns one after the other in one simulation, so that models stay where they are in between."""
    scenario = parse_scenario(profile.read_bytes(), str(profile))
    names = [workflow.name for workflow in scenario.workflows]
    moments: list[float] = []
    numbers: list[int] = []
    ends = [0]
    for times, requests in turns:
        start = moments[-1] + _PAUSE_SECONDS if moments else 0.0
        moments += [start + time for time in times]
        numbers += requests
        ends.append(len(moments))
    draws = np.random.default_rng(seed)
    arrivals = Arrivals(
        np.array(moments),
        np.array([names.index(Document(number).workflow) for number in numbers]),
        draws.random(len(moments)),
        np.ones(len(moments)),
    )
    options = ServingOptions(seed=seed, discard=ends[1] / ends[-1])
    record = simulate_serving(scenario, arrivals, "compass", options)
    latencies = record.requests.finish - record.requests.arrival
    means = [mean(latencies[begin:end].tolist()) for begin, end in pairwise(ends[1:])]
    hit_rate = summarize_serving(record)["cache_hit_rate"]
    assert hit_rate is not None
    return Simulated(means, hit_rate)
