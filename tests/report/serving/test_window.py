"""Numbers and table of runs in which a window counts, use is billed and tasks hold shares of workers."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from fairway.report.serving.comparison import measures_of
from fairway.report.serving.metrics import summarize_serving
from fairway.report.serving.record import RequestOutcome, ServingRecord
from fairway.report.serving.table import serving_table
from fairway.sim.scenario import ColdStarts
from fairway.sim.serving import ServingOptions
from fairway.sim.serving_workload import EsgApps, ServingRun
from tests.report.serving.test_metrics import record as whole_run


def record(scheduler: str = "esg", seed: int = 1, cold: ColdStarts | None = None) -> ServingRecord:
    workload = EsgApps("normal", "strict", seconds=4.0, cold=cold)
    options = ServingOptions(noise=0.08, window=(1.0, 4.0), drain_seconds=120.0, keep_runs=True, seed=seed)
    return ServingRun(workload, scheduler, options, {"scheduler": scheduler, "seed": seed})()


def test_a_request_that_never_ended_was_not_in_time() -> None:
    made = record()
    numbers = summarize_serving(made)
    requests = made.requests
    finish, outcome = requests.finish.copy(), requests.outcome.copy()
    finish[-1], outcome[-1] = np.nan, RequestOutcome.UNFINISHED
    fewer = summarize_serving(replace(made, requests=replace(requests, finish=finish, outcome=outcome)))
    assert fewer["completed"] == numbers["completed"] - 1
    assert (fewer["slo_hit_rate"] or 0) <= (numbers["slo_hit_rate"] or 0)
    assert fewer["cost_dollars"] == numbers["cost_dollars"]


def test_numbers_are_those_of_the_window() -> None:
    made = record()
    numbers, runs = summarize_serving(made), made.runs
    counted = (made.requests.arrival >= 1.0) & (made.requests.arrival < 4.0)
    assert numbers["requests"] == int(counted.sum()) < numbers["requests_arrived"]
    assert made.requests.cost is not None
    assert numbers["cost_dollars"] == pytest.approx(float(made.requests.cost[counted].sum()))
    started = (runs.start >= 1.0) & (runs.start < 4.0) & (runs.member == 0)
    assert numbers["tasks"] == int(started.sum()) < int((runs.member == 0).sum())
    assert numbers["slices_per_task"] == pytest.approx(float(runs.gpu[started].mean()))
    assert sum((numbers["kinds"] or {}).values()) == numbers["tasks"]
    held = sum(
        gpu * max(min(end, 4.0) - max(start, 1.0), 0.0)
        for gpu, start, end, member in zip(runs.gpu, runs.start, runs.end, runs.member, strict=True)
        if member == 0
    )
    assert numbers["utilization"] == pytest.approx(held / (16 * 7 * 3.0))
    assert numbers["energy_joules"] is None


def test_a_cold_start_is_a_copy_that_a_job_waited_for() -> None:
    made = record(cold=ColdStarts(0))
    copies = made.copies
    begun = (copies.start >= 1.0) & (copies.start < 4.0) & ~copies.evicted
    numbers = summarize_serving(made)
    assert numbers["copies_begun"] == int(begun.sum())
    assert numbers["cold_starts"] == int((begun & ~copies.ahead).sum()) > 0
    warm = summarize_serving(record())
    assert (warm["cold_starts"], warm["copies_begun"], warm["cache_hit_rate"]) == (0, 0, 1.0)


def test_tasks_wait_from_the_moment_at_which_all_that_they_take_is_there() -> None:
    runs = record().runs
    assert (runs.queued <= runs.turn).all()
    ends = {(request, stage): end for request, stage, end in zip(runs.request, runs.stage, runs.end, strict=True)}
    for request, stage, queued in zip(runs.request, runs.stage, runs.queued, strict=True):
        if stage:  # all of these applications are chains
            assert queued == ends[request, stage - 1]


def test_a_run_of_nothing_has_no_numbers() -> None:
    made = record()
    nothing = np.zeros_like(made.requests.counted)
    made = replace(made, window=(100.0, 200.0), requests=replace(made.requests, counted=nothing))
    numbers = summarize_serving(made)
    assert numbers["slo_hit_rate"] is None
    assert numbers["cost_per_1000_requests"] is None
    assert numbers["latency_seconds"]["p50"] is None
    json.dumps(numbers, allow_nan=False)


def test_the_table_fits_80_columns() -> None:
    names = ("esg:margin=0.1,shed", "front", "fast-gshare+near-data")
    runs = [summarize_serving(record(name, seed)) for name in names for seed in (1, 2)]
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(serving_table(runs))
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= 80
    assert "±" in text
    assert "…" not in text
    assert "slow-" not in text


def test_columns_are_those_that_any_run_has_numbers_for() -> None:
    window, whole = summarize_serving(record()), summarize_serving(whole_run())
    titles = [measure.title for measure in measures_of([window])]
    assert titles[:2] == ["in time", "cost per 1000"]
    assert "mean slow-down" not in titles
    assert "slices" not in [measure.title for measure in measures_of([whole])]
    both = [measure.title for measure in measures_of([whole, window])]
    assert both.count("in time") == 1
    assert {"mean slow-down", "slices"} <= set(both)
