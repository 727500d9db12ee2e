"""The document application on three nodes of a Ray cluster: ours, and Ray Serve with `serve.multiplexed` beside it.

A worker of ours, or a replica of Ray Serve's, on an accelerator of its own has memory for any half of the models. First
both are up and take turns, at 60 % of what ours can do. Then each by itself is given more and more requests a second:
up to which rate are 95 % answered within four times what one takes alone? What is refused is not in time. The nodes are
loopback addresses of this machine, on whose cores they all run.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Any

from benchmarks._ray_cluster import NumberedCluster
from benchmarks._report import Result
from benchmarks._serving_live_compared import FAST, mean_latency, take_turns
from benchmarks._serving_live_documents import Document, measured
from benchmarks._serving_live_driver import Driver
from benchmarks._serving_live_in_time import PART, Trials
from benchmarks._serving_live_settings import Served, options_of, say
from fairway.live.serving.supervise.environment import stage_environment
from fairway.sim.held_rate import held_rate
from fairway.sim.scenario_file import parse_scenario

NODES = 3
_TIMES_ALONE = 4.0
_TARGET = 2.0


def documents(quick: bool, seed: int, repeats: int) -> Iterator[Result]:
    """Mean latency under memory pressure, and the rate that is held."""
    threads = stage_environment(1)  # which our workers have anyway
    with (
        NumberedCluster(NODES, gpus=2, environment=threads) as cluster,
        measured(Document, 3 if quick else 7) as profile,
        tempfile.TemporaryDirectory(prefix="fairway-") as directory,
    ):
        given = {**options_of(Document, profile), "workers": NODES}
        own = {**given, "backend": "ray", "address": cluster.address}
        del given["memory_bytes"]
        peer = {**given, "most_models": profile.half, "directory": directory}
        environment = {**cluster.environment, **FAST, "RAY_ADDRESS": cluster.address}
        target = None if quick else _TARGET
        with Driver("ours", cluster.environment, **own) as ours:
            ours.clients(8, 3 if quick else 10)
            capacity = ours.clients(8, 4 if quick else 15).throughput
            served = Served(Document, profile, capacity, 8 if quick else 20, seed)
            say(f"{capacity:.1f} requests/s, where each has room for any {profile.half} of {profile.models} models")
            name = "documents on three nodes, 60 % of capacity"
            with Driver("ray-documents", environment, **peer) as ray:
                mine, theirs = take_turns(served, repeats, name, ours=ours, ray=ray)
        yield mean_latency(
            name, "Ray Serve, multiplexed", mine, theirs, target,
            requests_per_second=served.rate, budget_bytes=profile.budget, peer_models=profile.half,
        )  # fmt: skip
        scenario = parse_scenario(profile.file.read_bytes(), str(profile.file))
        deadline = _TIMES_ALONE * max(workflow.critical_path().seconds for workflow in scenario.workflows)
        sides: dict[str, Driver] = {
            "ours": Driver("ours", cluster.environment, **own, scheduler="fairway", slo_seconds=deadline),
            "peer": Driver("ray-documents", environment, **peer),
        }
        found: dict[str, tuple[float, list[tuple[float, float]]]] = {}
        for side, system in sides.items():
            say(f"documents within {deadline:.2f} s on three nodes, {side}")
            with system as driver:
                driver.clients(4, 3.0 if quick else 8.0)
                trials = Trials(driver, deadline, 40 if quick else 100, seed)
                found[side] = held_rate(trials.in_time, PART, capacity / 2, 0.1).rate, trials.tried
        rate, other = found["ours"][0], found["peer"][0]
        extra: dict[str, Any] = {"tried": found["ours"][1], "peer_tried": found["peer"][1], "deadline": deadline}
        yield Result(
            f"documents within {deadline:.2f} s on three nodes: {PART:.0%} in time", "requests/s", rate,
            "Ray Serve, multiplexed", other, rate / other if other else None, target, extra=extra,
        )  # fmt: skip
