"""The authors' own experiment, repeated: task by task, and in the shape that they published."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairway.errors import InputError
from fairway.report.serving_metrics import summarize_serving
from fairway.sim.failures import Failure
from fairway.sim.navigator import is_compat, simulate_navigator
from fairway.sim.scenarios import SCENARIOS
from fairway.sim.serving import ServingOptions

EDGE = SCENARIOS["compass-edge"]()


SCHEDULERS = {
    "hashtask": "hash:compat",
    "decentralheft": "compass:compat",
    "decentralheft+adjust": "compass:compat,adjust",
    "centralheft": "compass:compat,centralised",
    "centralheft+adjust": "compass:compat,adjust,centralised",
}
"""What the other program calls its schedulers, and what they are here."""


def golden(shared_data: Path, name: str) -> Any:
    file = shared_data / "navigator-golden" / name
    if not file.is_file():
        pytest.skip(f"no file {file}")
    content = file.read_bytes()
    return json.loads(gzip.decompress(content) if file.suffix == ".gz" else content)


@pytest.mark.parametrize(
    ("name", "workers", "rate"), [("hashtask_140_100_42_0", 140, 40.0), ("decentralheft_5_2000_42_0", 5, 2.0)]
)
def test_a_published_run_is_repeated_task_by_task(shared_data: Path, name: str, workers: int, rate: float) -> None:
    trace = golden(shared_data, f"traces/{name}.json.gz")
    jobs = trace["jobs"]
    scheduler, options = SCHEDULERS[trace["scheduler"]], ServingOptions(seed=42, keep_runs=True)
    record = simulate_navigator(EDGE.with_workers(workers), 1000, rate, scheduler, options)
    assert record.requests.arrival.tolist() == pytest.approx([job["create_ms"] / 1000 for job in jobs], abs=1e-9)
    runs = record.runs
    ours = {
        (request, stage): times
        for request, stage, *times in zip(
            runs.request.tolist(),
            runs.stage.tolist(),
            runs.worker.tolist(),
            runs.queued.tolist(),
            runs.turn.tolist(),
            runs.start.tolist(),
            runs.end.tolist(),
            strict=True,
        )
    }
    theirs = {
        (number, stage): [job["ADFG"][str(stage)], *(time / 1000 for time in times)]
        for number, job in enumerate(jobs)
        for stage, *times in job["tasks"]
        if times[-1]
    }
    assert set(ours) == set(theirs)
    assert len(ours) > 3700
    assert {task for task in ours if np.abs(np.subtract(ours[task], theirs[task])).max() > 1e-8} == set()


@pytest.mark.parametrize(
    ("name", "file", "point"),
    [
        *((name, "scalability.json", "60") for name in SCHEDULERS if name != "centralheft+adjust"),
        ("decentralheft+adjust", "scalability.json", "240"),
        *((name, "small.json", "3") for name in SCHEDULERS),
    ],
)
def test_the_numbers_of_the_other_program_are_repeated_to_the_last_digit(
    shared_data: Path, name: str, file: str, point: str
) -> None:
    """A point is a number of workers at 40 per second, or a rate on 5 workers."""
    expected = golden(shared_data, file)["results"][name][point]
    workers, rate = (int(point), 40.0) if file == "scalability.json" else (5, float(point))
    numbers = [
        summarize_serving(
            simulate_navigator(EDGE.with_workers(workers), 1000, rate, SCHEDULERS[name], ServingOptions(seed=seed))
        )
        for seed in expected["seeds"]
    ]
    for what, column in (("mean", "slowdown_mean_per_seed"), ("p50", "slowdown_median_per_seed")):
        assert [each["slowdown"][what] for each in numbers] == pytest.approx(expected[column], abs=5.1e-4)  # type: ignore[literal-required]
    assert np.mean([each["events"] for each in numbers]) == pytest.approx(expected["events"], abs=1e-3)
    assert np.mean([each["workers_used"] for each in numbers]) == pytest.approx(expected["workers_used"], abs=1e-3)


def median(scheduler: str, workers: int, requests: int = 1000) -> tuple[float, int]:
    options = ServingOptions(seed=42)
    record = simulate_navigator(EDGE.with_workers(workers), requests, 40.0, scheduler, options)
    numbers = summarize_serving(record)
    assert numbers["slowdown"]["p50"] is not None
    return numbers["slowdown"]["p50"], numbers["workers_used"]


def test_their_compass_stops_at_about_fifty_workers_and_their_hash_overtakes_it_later() -> None:
    compass = {workers: median("compass:compat", workers) for workers in (60, 140, 240)}
    hashed = {workers: median("hash:compat", workers) for workers in (60, 140, 240)}
    assert all(44 <= used <= 56 for _, used in compass.values())
    assert [used for _, used in hashed.values()] == [60, 140, 240]
    assert hashed[60][0] > 3 * compass[60][0]
    assert hashed[240][0] < compass[240][0]
    # The medians of the authors' simulator with this seed.
    assert compass[140][0] == pytest.approx(3.392, abs=5.1e-4)
    assert hashed[140][0] == pytest.approx(4.177, abs=5.1e-4)


def test_averages_are_over_the_requests_that_completed_without_the_first_tenth() -> None:
    record = simulate_navigator(EDGE, 100, 2.0, "compass:compat", ServingOptions(seed=1))
    assert summarize_serving(record)["completed"] == 100
    assert int(record.requests.counted.sum()) == 90
    assert (record.requests.outcome[record.requests.counted] == 0).all()


def test_what_that_simulator_does_not_have_is_refused() -> None:
    assert is_compat("hash:compat")
    assert not is_compat("hash")
    with pytest.raises(InputError, match="neither failures nor noise"):
        simulate_navigator(EDGE, 10, 2.0, "hash:compat", ServingOptions(failures=(Failure(0, 1.0),)))
