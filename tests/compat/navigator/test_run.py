"""The authors' own experiment, repeated: task by task, and in the shape that they published."""

from __future__ import annotations

import numpy as np
import pytest

from fairway.compat.navigator.run import is_compat, simulate_navigator
from fairway.errors import InputError
from fairway.report.serving.metrics import summarize_serving
from fairway.sim.failures import Failure
from fairway.sim.scenarios import SCENARIOS
from fairway.sim.serving import ServingOptions
from tests.figures import NAVIGATOR_NAMES, navigator_jobs, navigator_point

EDGE = SCENARIOS["compass-edge"]()


@pytest.mark.parametrize(
    ("name", "scheduler", "workers", "rate"),
    [("hash_140_workers", "hash:compat", 140, 40.0), ("compass_5_workers", "compass:compat", 5, 2.0)],
)
def test_a_recorded_run_is_repeated_task_by_task(name: str, scheduler: str, workers: int, rate: float) -> None:
    jobs, options = navigator_jobs(name), ServingOptions(seed=42, keep_runs=True)
    record = simulate_navigator(EDGE.with_workers(workers), 1000, rate, scheduler, options)
    assert record.requests.arrival.tolist() == pytest.approx([job.created for job in jobs], abs=1e-9)
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
        (number, stage): [worker, *times]
        for number, job in enumerate(jobs)
        for stage, (worker, times) in enumerate(zip(job.workers, job.times, strict=True))
        if len(times) == 4
    }
    assert set(ours) == set(theirs)
    assert len(ours) > 3700
    assert {task for task in ours if np.abs(np.subtract(ours[task], theirs[task])).max() > 1e-8} == set()


@pytest.mark.parametrize(
    ("name", "experiment", "point"),
    [
        *((name, "scalability", "60") for name in NAVIGATOR_NAMES if name != "compass:compat,adjust,centralised"),
        ("compass:compat,adjust", "scalability", "240"),
        *((name, "small", "3") for name in NAVIGATOR_NAMES),
    ],
)
def test_the_numbers_of_the_other_program_are_repeated_to_the_last_digit(
    name: str, experiment: str, point: str
) -> None:
    """A point is a number of workers at 40 per second, or a rate on 5 workers."""
    expected = navigator_point(experiment, name, point)
    workers, rate = (int(point), 40.0) if experiment == "scalability" else (5, float(point))
    numbers = [
        summarize_serving(simulate_navigator(EDGE.with_workers(workers), 1000, rate, name, ServingOptions(seed=seed)))
        for seed in expected.seeds
    ]
    assert [each["slowdown"]["mean"] for each in numbers] == pytest.approx(expected.mean_slowdowns, abs=5.1e-4)
    assert [each["slowdown"]["p50"] for each in numbers] == pytest.approx(expected.median_slowdowns, abs=5.1e-4)
    assert np.mean([each["events"] for each in numbers]) == pytest.approx(expected.events, abs=1e-3)
    assert np.mean([each["workers_used"] for each in numbers]) == pytest.approx(expected.workers_used, abs=1e-3)


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
