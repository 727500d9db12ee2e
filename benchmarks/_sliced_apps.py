"""The scenario `esg-apps` under all schedulers, with GPUs of any number of slices, cut by MIG, and shared by MPS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fairway.configure.slices.mig import A100_40GB
from fairway.report.serving.metrics import summarize_serving
from fairway.sim.comparison import compare
from fairway.sim.scenario import DeviceSharing
from fairway.sim.serving import ServingOptions
from fairway.sim.serving_workload import EsgApps, ServingRun

SCHEDULERS = (
    "esg", "esg:margin=0.1", "esg:shed", "front", "infless", "fast-gshare", "orion", "aquatope:exact", "nexus",
    "esg+compass", "compass", "jit", "heft", "hash",
)  # fmt: skip
SLOWDOWN = 0.1
SHARINGS = {"mig": DeviceSharing(A100_40GB), f"mps:{SLOWDOWN:g}": DeviceSharing(slowdown=SLOWDOWN)}


@dataclass(frozen=True)
class Apps:
    """The part of requests in time and the dollars of 1,000, with any slices and by kind of sharing."""

    scheduler: str
    free: tuple[float, float]
    shared: Mapping[str, tuple[float, float]]


def apps_under(schedulers: Sequence[str], *, quick: bool) -> Iterator[Apps]:
    """One seed of the normal load with moderate SLOs."""
    ways = {"any": DeviceSharing(), **SHARINGS}
    for scheduler in schedulers:
        records = compare([_run(scheduler, sharing, quick=quick) for sharing in ways.values()])
        found = {
            name: (each["slo_hit_rate"] or 0.0, each["cost_per_1000_requests"] or 0.0)
            for name, each in zip(ways, map(summarize_serving, records), strict=True)
        }
        yield Apps(scheduler, found.pop("any"), found)


def _run(scheduler: str, sharing: DeviceSharing, *, quick: bool) -> ServingRun:
    warmup, duration = (1.0, 4.0) if quick else (30.0, 120.0)
    options = ServingOptions(
        noise=0.08, window=(warmup, warmup + duration), drain_seconds=120.0, seed=1, keep_runs=True
    )
    return ServingRun(EsgApps("normal", "moderate", seconds=warmup + duration, sharing=sharing), scheduler, options)
