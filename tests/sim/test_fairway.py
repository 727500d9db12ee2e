"""The scheduler `fairway` in the simulator: what it holds, what it gives up, and that each part can be taken away."""

from __future__ import annotations

import numpy as np
import pytest

from fairway.errors import InputError
from fairway.place.placers.fairway import Fairway
from fairway.report.serving.metrics import summarize_serving
from fairway.report.serving.record import RequestOutcome, ServingRecord
from fairway.sim.serving import ServingOptions
from fairway.sim.serving_workload import ServingRun, ServingWorkload

PARTS = (
    "no-joining", "no-moving", "no-fetching", "no-asking", "no-deadlines", "no-batching", "no-mixing", "no-homes",
    "no-separating", "lingers=0", "centralised",
)  # fmt: skip


def _run(scheduler: str, rate: float, requests: int = 300, scenario: str = "loki-traffic") -> ServingRecord:
    workload = ServingWorkload(scenario, requests=requests, rate=rate)
    return ServingRun(workload, scheduler, ServingOptions(seed=4))()


def _in_time(scheduler: str, rate: float, requests: int = 300) -> float:
    return summarize_serving(_run(scheduler, rate, requests))["slo_hit_rate"] or 0.0


def test_it_holds_a_rate_that_compass_does_not() -> None:
    assert _in_time("fairway", 150.0) >= 0.98
    assert _in_time("compass", 150.0) < 0.8


def test_overload_declines_gently() -> None:
    assert _in_time("fairway", 300.0, 600) >= 0.4


@pytest.mark.parametrize("scheduler", ["fairway", "fairway:late=last", "fairway:late=serve"])
def test_every_request_has_one_end_and_only_refusing_refuses(scheduler: str) -> None:
    outcome = _run(scheduler, 400.0).requests.outcome
    assert set(outcome.tolist()) <= {RequestOutcome.COMPLETED, RequestOutcome.REFUSED}
    assert (outcome == RequestOutcome.REFUSED).any() == (scheduler == "fairway")


def test_news_that_is_100_ms_old_costs_little() -> None:
    workload = ServingWorkload("loki-traffic", requests=600, rate=150.0)
    old = ServingOptions(seed=4, load_staleness_seconds=0.1, cache_staleness_seconds=0.1)
    in_time = summarize_serving(ServingRun(workload, "fairway", old)())["slo_hit_rate"] or 0.0
    alone = summarize_serving(ServingRun(workload, "fairway:no-asking", old)())["slo_hit_rate"] or 0.0
    assert in_time >= 0.97
    assert alone < in_time - 0.05, "by old rows all go where a worker was idle a while ago"


def test_hardly_anything_is_refused_while_there_is_time() -> None:
    record = _run("fairway", 40.0)
    assert (record.requests.outcome == RequestOutcome.COMPLETED).mean() >= 0.99


def test_without_an_slo_nothing_is_refused() -> None:
    record = _run("fairway", 20.0, 60, "compass-edge")
    assert (record.requests.outcome == RequestOutcome.COMPLETED).all()


def _slow_downs(scheduler: str, workers: int, rate: float, arrivals: str = "clients") -> dict[str, float | None]:
    workload = ServingWorkload("compass-edge", arrivals, workers, 1000, rate)
    slow: dict[str, float | None] = summarize_serving(ServingRun(workload, scheduler, ServingOptions(seed=42))())[
        "slowdown"
    ]
    return slow


def test_without_an_slo_it_is_not_slower_than_compass() -> None:
    ours, theirs = (_slow_downs(name, 5, 4.0, "poisson")["mean"] for name in ("fairway", "compass"))
    assert ours is not None
    assert theirs is not None
    assert ours <= theirs


def test_with_workers_to_spare_a_request_takes_hardly_longer_than_alone() -> None:
    slow = _slow_downs("fairway", 60, 40.0)
    assert slow["mean"] is not None
    assert slow["p50"] is not None
    assert slow["mean"] <= 1.10
    assert slow["p50"] <= 1.01


def test_a_worker_is_woken_about_as_often_as_it_looks() -> None:
    workload = ServingWorkload("compass-edge", requests=300, rate=4.0)
    record = ServingRun(workload, "fairway", ServingOptions(seed=2))()
    assert record.events < 100 * 300, "a request has at most 10 messages, and a run 24 looks"


@pytest.mark.parametrize("part", PARTS)
def test_each_part_can_be_taken_away_and_runs_repeat(part: str) -> None:
    first, second = (_run(f"fairway:{part}", 120.0, 120) for _ in range(2))
    assert np.array_equal(first.requests.finish, second.requests.finish, equal_nan=True)
    assert (first.requests.outcome != RequestOutcome.UNFINISHED).all()


def test_without_batching_it_holds_less() -> None:
    assert _in_time("fairway:no-batching", 150.0) < _in_time("fairway", 150.0) - 0.1


def test_a_word_that_means_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="late: 'never' given, expected one of last, refuse, serve"):
        Fairway(late="never")
