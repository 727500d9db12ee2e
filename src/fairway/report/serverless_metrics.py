"""The numbers of one run of a serverless platform, as `fairway simulate serving --json` prints them.

All of them are about the requests that arrived in the window that counts, or about the tasks that started in it. A
request that is late costs as much as any other; one that never ended was not in time, and costs what ran of it. A
number that nothing gives rise to is None: never NaN, which is not JSON.
"""

from __future__ import annotations

from typing import Any, TypedDict

import numpy as np

from fairway.report.intervals import held_between
from fairway.report.plain_json import plain
from fairway.report.serverless_record import KINDS, BoolArray, FloatArray, IntArray, ServerlessRecord
from fairway.report.serving_metrics import Distribution, Percentiles, WorkflowSummary, distribution

TOLERANCE_SECONDS = 1e-9
"""An answer so much after its deadline is in time: clocks round."""


class ServerlessSummary(TypedDict):
    """One member of `runs` in the JSON of `fairway simulate serving --scenario esg-apps`."""

    scheduler: str
    seed: int | None
    workers: int
    workers_used: int
    requests: int
    requests_arrived: int
    completed: int
    refused: int
    retried: int
    skipped_rows: int
    latency_seconds: Distribution
    slowdown: Distribution
    latency_of_slo: Distribution
    per_workflow: dict[str, WorkflowSummary]
    cache_hit_rate: float | None
    slo_hit_rate: float | None
    cost_dollars: float | None
    cost_per_1000_requests: float | None
    cold_start_dollars: float | None
    cold_starts: int
    containers_begun: int
    utilization: float | None
    cpu_utilization: float | None
    energy_joules: float | None
    tasks: int
    jobs_per_task: float | None
    cpus_per_task: float | None
    slices_per_task: float | None
    local_fetch_rate: float | None
    kinds: dict[str, int]
    noise: float
    end_seconds: float
    decisions: int
    decision_seconds: Percentiles
    events: int
    wall_seconds: float
    settings: dict[str, Any]


def summarize_serverless(record: ServerlessRecord) -> ServerlessSummary:
    """The numbers of a run."""
    requests, tasks = record.requests, record.tasks
    counted = counts(record)
    everything = np.ones(len(requests), np.bool_)
    started = (tasks.start >= record.window[0]) & (tasks.start < record.window[1])
    later = started & ~is_entry(record)
    cost = float(requests.cost[counted].sum())
    many = int(counted.sum())
    begun = (record.containers.start >= record.window[0]) & (record.containers.start < record.window[1])
    cold = started & (tasks.cold > 0)
    waited = int(begun.sum() - (begun & record.containers.ahead).sum())
    gpu, cpu = utilizations(record)
    seed = record.settings.get("seed")
    return {
        "scheduler": record.scheduler,
        "seed": int(seed) if isinstance(seed, int | np.integer) else None,
        "workers": record.invokers,
        "workers_used": len(np.unique(tasks.invoker)),
        "requests": many,
        "requests_arrived": len(requests),
        "completed": int((counted & np.isfinite(requests.finish)).sum()),
        "refused": 0,
        "retried": 0,
        "skipped_rows": 0,
        "latency_seconds": distribution(latencies(record, everything)),
        "slowdown": distribution(latencies(record, everything) / _by_request(record, "lower_bound_seconds")),
        "latency_of_slo": distribution(latencies(record, everything) / _by_request(record, "slo_seconds")),
        "per_workflow": {facts.name: _application(record, place) for place, facts in enumerate(record.applications)},
        "cache_hit_rate": 1 - waited / int(started.sum()) if started.any() else None,
        "slo_hit_rate": hit_rate(record, everything),
        "cost_dollars": cost if record.prices_known else None,
        "cost_per_1000_requests": 1000 * cost / many if many and record.prices_known else None,
        "cold_start_dollars": float((tasks.cost * tasks.cold / np.maximum(tasks.fetch + tasks.run, 1e-12))[cold].sum())
        if record.prices_known
        else None,
        "cold_starts": waited,
        "containers_begun": int(begun.sum()),
        "utilization": gpu,
        "cpu_utilization": cpu,
        "energy_joules": None,
        "tasks": int(started.sum()),
        "jobs_per_task": _mean(tasks.jobs, started),
        "cpus_per_task": _mean(tasks.cpu, started),
        "slices_per_task": _mean(tasks.gpu, started),
        "local_fetch_rate": float(tasks.local[later].sum() / tasks.jobs[later].sum()) if later.any() else None,
        "kinds": {name: int((tasks.kind[started] == place).sum()) for place, name in enumerate(KINDS)},
        "noise": record.noise,
        "end_seconds": record.end_seconds,
        "decisions": len(record.decision_seconds),
        "decision_seconds": _percentiles(record.decision_seconds),
        "events": record.events,
        "wall_seconds": record.wall_seconds,
        "settings": plain(record.settings),
    }


def counts(record: ServerlessRecord) -> BoolArray:
    """Which requests count."""
    arrival = record.requests.arrival
    return np.asarray((arrival >= record.window[0]) & (arrival < record.window[1]), np.bool_)


def is_entry(record: ServerlessRecord) -> BoolArray:
    """Which tasks take requests themselves as their input: those of the first stages."""
    entries = [set(facts.entries) for facts in record.applications]
    tasks = record.tasks
    pairs = zip(tasks.application.tolist(), tasks.stage.tolist(), strict=True)
    return np.array([stage in entries[application] for application, stage in pairs], np.bool_)


def latencies(record: ServerlessRecord, among: BoolArray) -> FloatArray:
    """Seconds from arrival to the end of the last task, of those that count and ended."""
    requests = record.requests
    done = among & counts(record) & np.isfinite(requests.finish)
    return np.asarray(requests.finish[done] - requests.arrival[done], np.float64)


def hit_rate(record: ServerlessRecord, among: BoolArray) -> float | None:
    """The part of the requests that count which were answered in time."""
    requests = record.requests
    counted = among & counts(record)
    slo = np.array([facts.slo_seconds for facts in record.applications])[requests.application]
    in_time = counted & (requests.finish <= requests.arrival + slo + TOLERANCE_SECONDS)  # NaN is not
    return float(in_time.sum() / counted.sum()) if counted.any() else None


def utilizations(record: ServerlessRecord) -> tuple[float | None, float | None]:
    """Which part of all slices, and of all CPUs, tasks held in the window."""
    tasks, edges = record.tasks, np.array(record.window)
    span = float(edges[1] - edges[0])
    held = [
        float(held_between(tasks.start, tasks.end, amount.astype(np.float64), edges)[0])
        for amount in (tasks.gpu, tasks.cpu)
    ]
    gpu, cpu = (each * record.invokers * span for each in (record.gpu, record.cpu))
    return (held[0] / gpu if gpu > 0 else None, held[1] / cpu if cpu > 0 else None)


def _application(record: ServerlessRecord, place: int) -> WorkflowSummary:
    among = np.asarray(record.requests.application == place, np.bool_)
    latency, facts = latencies(record, among), record.applications[place]
    return {
        "requests": int((among & counts(record)).sum()),
        "completed": len(latency),
        "latency_seconds": distribution(latency),
        "slowdown": distribution(latency / facts.lower_bound_seconds),
        "slo_hit_rate": hit_rate(record, among),
    }


def _by_request(record: ServerlessRecord, fact: str) -> FloatArray:
    """A fact of the application of each request that counts and ended."""
    requests = record.requests
    done = counts(record) & np.isfinite(requests.finish)
    return np.array([getattr(facts, fact) for facts in record.applications])[requests.application[done]]


def _mean(values: IntArray, among: BoolArray) -> float | None:
    return float(values[among].mean()) if among.any() else None


def _percentiles(values: FloatArray) -> Percentiles:
    if not values.size:
        return {"p50": None, "p99": None}
    p50, p99 = np.percentile(values, [50, 99]).tolist()
    return {"p50": p50, "p99": p99}
