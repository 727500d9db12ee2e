"""Numbers and table of serving runs."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from fairway.report.serving.metrics import summarize_serving
from fairway.report.serving.record import ServingRecord
from fairway.report.serving.table import serving_table
from fairway.sim.failures import Failure
from fairway.sim.serving import ServingOptions
from fairway.sim.serving_workload import ServingRun, ServingWorkload


def record(scheduler: str = "compass", seed: int = 1, requests: int = 60, **options: object) -> ServingRecord:
    workload = ServingWorkload(arrivals="clients", requests=requests, rate=3.0)
    run = ServingOptions(**{"seed": seed, "keep_runs": True, **options})  # type: ignore[arg-type]
    return ServingRun(workload, scheduler, run, {"scheduler": scheduler, "seed": seed})()


def test_the_numbers_are_those_of_the_contract() -> None:
    numbers = summarize_serving(record())
    assert set(numbers) >= {
        "scheduler", "workers", "workers_used", "requests", "completed", "latency_seconds", "slowdown", "per_workflow",
        "cache_hit_rate", "slo_hit_rate", "cost_dollars", "cold_starts", "utilization", "energy_joules",
        "decision_seconds", "events", "wall_seconds",
    }  # fmt: skip
    assert set(numbers["latency_seconds"]) == {"mean", "p50", "p95", "p99"}
    assert set(numbers["decision_seconds"]) == {"p50", "p99"}
    assert set(numbers["per_workflow"]) == {"translation", "question answering", "image to sound", "3D perception"}
    json.dumps(numbers, allow_nan=False)


def test_averages_leave_the_first_tenth_out_and_sums_do_not() -> None:
    made = record()
    counted = made.requests.counted
    assert counted.tolist() == [False] * 6 + [True] * 54
    latency = (made.requests.finish - made.requests.arrival)[counted]
    numbers = summarize_serving(made)
    assert numbers["latency_seconds"]["mean"] == pytest.approx(latency.mean())
    bounds = np.array([1.365, 0.587, 0.3592, 0.2826])[made.requests.workflow[counted]]
    assert numbers["slowdown"]["p50"] == pytest.approx(float(np.median(latency / bounds)))
    assert numbers["slo_hit_rate"] == pytest.approx(float((latency <= 2 * bounds).mean()))
    assert numbers["requests"] == numbers["completed"] == 60
    assert sum(part["requests"] for part in numbers["per_workflow"].values()) == 60


def test_a_price_makes_a_cost() -> None:
    made = replace(record(), dollars_per_hour=36.0)
    assert summarize_serving(made)["cost_dollars"] == pytest.approx(made.end_seconds / 100)


def test_the_table_fits_80_columns_and_says_what_is_missing() -> None:
    runs = [summarize_serving(record(name, seed)) for name in ("compass:no-adjust", "hash") for seed in (1, 2)]
    runs.append(summarize_serving(record(failures=(Failure(0, 1.0, 5.0),))))
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(serving_table(runs))
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= 80
    assert "±" in text
    assert "had to ask another worker" in text
    assert "…" not in text


def test_a_copy_that_jobs_waited_for_in_their_queue_is_no_hit() -> None:
    made = record("front", keep_runs=False)
    workers, numbers = made.workers, summarize_serving(made)
    awaited, looked = int(workers.awaited.sum()), int((workers.hits + workers.partial + workers.misses).sum())
    assert awaited > 0
    assert numbers["cold_starts"] == awaited + int(workers.misses.sum())
    assert numbers["cache_hit_rate"] == pytest.approx((int(workers.hits.sum()) - awaited) / looked)
