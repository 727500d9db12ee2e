"""The numbers of one run of requests, as `fairway simulate serving --json` prints them.

Latencies, slow-downs and SLO hits are those of the requests that count; tasks, energy and cost are those of the whole
run or, where the record has a window, those of that window. Slow-down is latency over the workflow's lower bound: its
longest chain of stages, with no waiting, no transfers and nothing to load. Where use is billed, a request that is late
costs as much as any other; one that never ended costs what ran of it. A number that nothing gives rise to is None:
never NaN, which is not JSON.
"""

from __future__ import annotations

from typing import Any, TypedDict

import numpy as np

from fairway.report.plain_json import plain
from fairway.report.serving.record import BoolArray, FloatArray, RequestOutcome, ServingRecord
from fairway.report.serving.task_numbers import TaskNumbers, part, task_numbers

TOLERANCE_SECONDS = 1e-9
"""An answer so much after its deadline is in time: clocks round."""


class Distribution(TypedDict):
    """What is told of a distribution."""

    mean: float | None
    p50: float | None
    p95: float | None
    p99: float | None


class Percentiles(TypedDict):
    """The median and the slowest but one in a hundred."""

    p50: float | None
    p99: float | None


class WorkflowSummary(TypedDict):
    """How the requests for one workflow fared."""

    requests: int
    completed: int
    latency_seconds: Distribution
    slowdown: Distribution
    slo_hit_rate: float | None


class ServingSummary(TaskNumbers):
    """One member of `runs` in the JSON of `fairway simulate serving`."""

    scheduler: str
    seed: int | None
    workers: int
    workers_used: int
    requests: int
    requests_arrived: int
    completed: int
    refused: int
    refusals: list[str]
    retried: int
    window: tuple[float, float] | None
    latency_seconds: Distribution
    slowdown: Distribution
    latency_of_slo: Distribution
    per_workflow: dict[str, WorkflowSummary]
    slo_hit_rate: float | None
    cost_dollars: float | None
    cost_per_1000_requests: float | None
    energy_joules: float | None
    noise: float | None
    end_seconds: float
    decisions: int
    decision_seconds: Percentiles
    events: int
    wall_seconds: float
    skipped_rows: int
    unreadable_rows: int
    settings: dict[str, Any]


def summarize_serving(record: ServingRecord) -> ServingSummary:
    """The numbers of a run."""
    requests, workers = record.requests, record.workers
    everything = np.ones(len(requests), dtype=np.bool_)
    counted = everything if record.window is None else requests.counted
    cost = cost_dollars(record)
    return {
        "scheduler": record.scheduler,
        "seed": seed_of(record),
        "workers": len(workers.names),
        "workers_used": int((workers.tasks > 0).sum()),
        "requests": int(counted.sum()),
        "requests_arrived": len(requests),
        "completed": int((counted & (requests.outcome == RequestOutcome.COMPLETED)).sum()),
        "refused": int((counted & (requests.outcome == RequestOutcome.REFUSED)).sum()),
        "refusals": list(record.refusals),
        "retried": int((requests.asked > 1).sum()),
        "window": record.window,
        "latency_seconds": distribution(latencies(record, everything)),
        "slowdown": distribution(slowdowns(record, everything)),
        "latency_of_slo": distribution(_of_slo(record)),
        "per_workflow": {facts.name: _workflow(record, number) for number, facts in enumerate(record.workflows)},
        "slo_hit_rate": _slo_hit_rate(record, everything),
        "cost_dollars": cost,
        "cost_per_1000_requests": 1000 * cost / int(counted.sum()) if cost is not None and counted.any() else None,
        **task_numbers(record),
        "energy_joules": energy_joules(record),
        "noise": record.noise,
        "end_seconds": record.end_seconds,
        "decisions": len(record.decision_seconds),
        "decision_seconds": _percentiles(record.decision_seconds),
        "events": record.events,
        "wall_seconds": record.wall_seconds,
        "skipped_rows": record.skipped_rows,
        "unreadable_rows": record.unreadable_rows,
        "settings": plain(record.settings),
    }


def seed_of(record: ServingRecord) -> int | None:
    """The seed among the settings, if one is told."""
    seed = record.settings.get("seed")
    return int(seed) if isinstance(seed, int | np.integer) else None


def completed(record: ServingRecord, among: BoolArray) -> BoolArray:
    """Which of some requests count and were answered."""
    requests = record.requests
    return np.asarray(among & requests.counted & (requests.outcome == RequestOutcome.COMPLETED), dtype=np.bool_)


def latencies(record: ServingRecord, among: BoolArray) -> FloatArray:
    """Seconds from the arrival of a request to the end of its last task."""
    done = completed(record, among)
    return record.requests.finish[done] - record.requests.arrival[done]


def slowdowns(record: ServingRecord, among: BoolArray) -> FloatArray:
    """Latency over the lower bound of the workflow."""
    bounds = np.array([facts.lower_bound_seconds for facts in record.workflows])
    bound = bounds[record.requests.workflow[completed(record, among)]]
    known = bound > 0
    return np.asarray(latencies(record, among)[known] / bound[known], dtype=np.float64)


def energy_joules(record: ServingRecord) -> float | None:
    """Every worker draws its idle power all the time, more while it runs a task, and more again while it copies.

    None where the record has a window: the sums by worker are those of the whole run.
    """
    if record.window is not None:
        return None
    power, workers = record.power, record.workers
    idle = power.idle_watts * len(workers.names) * record.end_seconds
    busy = (power.busy_watts - power.idle_watts) * float(workers.busy_seconds.sum())
    copying = (power.copy_watts - power.idle_watts) * float(workers.copy_seconds.sum())
    return idle + busy + copying


def cost_dollars(record: ServingRecord) -> float | None:
    """What the requests that count used, where use is billed; else all workers for the whole run, if priced."""
    requests = record.requests
    if requests.cost is not None:
        return float(requests.cost[requests.counted].sum())
    return None if record.dollars_per_hour is None else record.dollars_per_hour * record.end_seconds / 3600


def _workflow(record: ServingRecord, number: int) -> WorkflowSummary:
    among = np.asarray(record.requests.workflow == number, dtype=np.bool_)
    counted = among if record.window is None else among & record.requests.counted
    return {
        "requests": int(counted.sum()),
        "completed": int((counted & (record.requests.outcome == RequestOutcome.COMPLETED)).sum()),
        "latency_seconds": distribution(latencies(record, among)),
        "slowdown": distribution(slowdowns(record, among)),
        "slo_hit_rate": _slo_hit_rate(record, among),
    }


def _slo_hit_rate(record: ServingRecord, among: BoolArray) -> float | None:
    """The part of the requests that were answered in time; one that was refused, or never answered, was not."""
    requests = record.requests
    counted = among & requests.counted
    in_time = counted & (requests.finish <= requests.arrival + _slos(record) + TOLERANCE_SECONDS)  # NaN is not
    return part(int(in_time.sum()), int(counted.sum()))


def _of_slo(record: ServingRecord) -> FloatArray:
    """Latency over the SLO of the workflow."""
    everything = np.ones(len(record.requests), dtype=np.bool_)
    slo = _slos(record)[completed(record, everything)]
    known = slo > 0
    return np.asarray(latencies(record, everything)[known] / slo[known], dtype=np.float64)


def _slos(record: ServingRecord) -> FloatArray:
    """By request, within how many seconds it should be answered."""
    return np.array([facts.slo_seconds for facts in record.workflows])[record.requests.workflow]


def distribution(values: FloatArray) -> Distribution:
    """Mean and percentiles."""
    if not values.size:
        return {"mean": None, "p50": None, "p95": None, "p99": None}
    p50, p95, p99 = np.percentile(values, [50, 95, 99]).tolist()
    return {"mean": float(values.mean()), "p50": p50, "p95": p95, "p99": p99}


def _percentiles(values: FloatArray) -> Percentiles:
    if not values.size:
        return {"p50": None, "p99": None}
    p50, p99 = np.percentile(values, [50, 99]).tolist()
    return {"p50": p50, "p99": p99}
