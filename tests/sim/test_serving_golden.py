"""Mean slow-downs of a reference simulation of the algorithm that was written separately: a few points, three seeds.

The arrivals are the same. The whole table (`tests/fixtures/compass_edge`) and the authors' own numbers are compared
in `benchmarks.serving_golden`.
"""

from __future__ import annotations

import numpy as np
import pytest

from fairway.report.serving.metrics import summarize_serving
from fairway.sim.serving import ServingOptions
from fairway.sim.serving_workload import ServingRun, ServingWorkload


def mean(scheduler: str, workers: int, rate: float, seeds: tuple[int, ...] = (42, 43, 44)) -> float:
    workload = ServingWorkload("compass-edge", "clients", workers, 1000, rate)
    runs = [ServingRun(workload, scheduler, ServingOptions(seed=seed))() for seed in seeds]
    return float(np.mean([summarize_serving(record)["slowdown"]["mean"] for record in runs]))


@pytest.mark.parametrize(
    ("scheduler", "workers", "rate", "expected", "tolerance"),
    [
        ("hash", 5, 3.0, 13.3, 0.2),
        ("hash", 140, 40.0, 3.96, 0.2),
        ("heft", 5, 3.0, 12.4, 0.2),
        ("jit", 5, 4.0, 18.9, 0.2),
        ("jit", 60, 40.0, 2.5, 0.2),
        ("compass:as-published,count-running,no-prefetch", 5, 3.0, 2.26, 0.15),
        ("compass:as-published,count-running,no-prefetch", 100, 40.0, 1.21, 0.15),
        ("compass:as-published", 5, 4.0, 4.0, 0.15),
        ("compass:as-published", 240, 40.0, 1.28, 0.15),
    ],
)
def test_the_algorithm_as_it_is_meant(
    scheduler: str, workers: int, rate: float, expected: float, tolerance: float
) -> None:
    assert mean(scheduler, workers, rate) == pytest.approx(expected, rel=tolerance)


def test_our_default_near_saturation_and_with_workers_to_spare() -> None:
    assert mean("compass", 5, 4.0, (42, 43, 44, 45, 46)) <= 5
    assert mean("compass", 60, 40.0) <= 1.4


def test_our_default_is_better_than_the_algorithm_most_of_all_where_it_is_hard() -> None:
    assert mean("compass", 5, 4.0) < 0.75 * mean("compass:as-published", 5, 4.0)
    assert mean("compass", 240, 40.0) < 0.98 * mean("compass:as-published", 240, 40.0)
