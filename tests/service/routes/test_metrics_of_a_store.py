"""Metrics of a store and a scheduler that stand by themselves: what is counted, and that it is counted once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from fairway.engine.training.messages import Grant
from fairway.live.training.statistics import Statistics
from fairway.service.routes import metrics as under_test
from fairway.service.routes.metrics import Metrics
from fairway.store import Store, open_store
from fairway.store.job_changes import change_job
from fairway.store.leases import grant_lease, plan_lease
from fairway.store.states import JobState
from fairway.store.workers import drain_workers, lose_workers
from tests.store.making import running, submitted, with_workers


@dataclass
class Scheduler:
    """What metrics ask a scheduler for."""

    store: Store
    counted: Statistics = field(default_factory=lambda: Statistics(50.0, rounds=3, preemptions_total=2))
    healthy: bool = True
    emulated: bool = False

    def statistics(self) -> Statistics:
        return self.counted

    def devices(self) -> dict[Any, Any]:
        return {}


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[Scheduler]:
    with open_store(tmp_path / "store") as store:
        with_workers(store)
        yield Scheduler(store)


def read(metrics: Metrics) -> dict[str, dict[tuple[str, ...], float]]:
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(metrics.text().decode()):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return found


def test_decisions_are_counted_once_also_when_the_controller_begins_again(scheduler: Scheduler) -> None:
    metrics = Metrics(scheduler)  # type: ignore[arg-type]

    def counted() -> tuple[float, float, float]:
        found = read(metrics)
        return (
            found["fairway_decisions_total"][()],
            found["fairway_decision_seconds_count"][()],
            found["fairway_decision_seconds_sum"][()],
        )

    assert counted() == (0, 0, 0)
    for seconds in (0.5, 0.25):
        scheduler.counted.count_decision(seconds)
    assert counted() == counted() == (2, 2, 0.75)
    scheduler.counted.count_decision(1.0)
    assert counted() == (3, 3, 1.75)
    scheduler.counted = Statistics(60.0)
    scheduler.counted.count_decision(2.0)
    assert counted() == (4, 4, 3.75)
    scheduler.counted.solves += 5  # more than their durations are known of
    assert counted() == (9, 5, 5.75)


def test_what_the_scheduler_counts_is_told(scheduler: Scheduler) -> None:
    found = read(Metrics(scheduler))  # type: ignore[arg-type]
    names = ("rounds_total", "preemptions_total", "restarts_total", "start_time_seconds", "healthy", "emulated")
    assert [found[f"fairway_{name}"][()] for name in names] == [3, 2, 0, 50, 1, 0]


def test_a_team_holds_its_part_of_workers_that_jobs_share_and_of_those_that_are_there(scheduler: Scheduler) -> None:
    store = scheduler.store
    first, second = submitted(store, team="a")[0], submitted(store, team="b")[0]
    (third,) = submitted(store)
    store.write(grant_lease, Grant(1, (first, second), "v100", (0,), until=9.0), at=2.0)
    store.write(grant_lease, Grant(2, (third,), "v100", (1, 2), until=9.0, part=0.5), at=2.0)
    (waits,) = submitted(store, team="c")
    store.write(plan_lease, Grant(3, (waits,), "v100", (3,), until=9.0), at=2.0)
    metrics = Metrics(scheduler)  # type: ignore[arg-type]
    assert read(metrics)["fairway_team_share"] == {("a",): 1 / 8, ("b",): 1 / 8, ("",): 1 / 4}
    store.write(lose_workers, [("v100", 3)], at=3.0)
    store.write(drain_workers, [("v100", 2)], at=3.0)
    found = read(metrics)
    assert found["fairway_team_share"] == {("a",): 1 / 6, ("b",): 1 / 6, ("",): 1 / 3}
    assert found["fairway_workers"] == {("v100", "busy"): 2, ("v100", "drained"): 1, ("v100", "lost"): 1}
    assert len(found["fairway_worker_info"]) == 4


def test_sums_over_all_jobs_are_kept_for_some_seconds(scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    # Not the clock of the process: servers of other tests may go by it in threads of their own.
    clock = SimpleNamespace(monotonic=lambda: now[0], perf_counter=time.perf_counter)
    monkeypatch.setattr(under_test, "time", clock)
    metrics = Metrics(scheduler)  # type: ignore[arg-type]

    def failures() -> float:
        return read(metrics)["fairway_job_failures_total"][()]

    assert failures() == 0
    (job,) = submitted(scheduler.store)
    lease = running(scheduler.store, job)
    scheduler.store.write(change_job, job, JobState.FAILED, at=70.0, lease=lease, exit_code=3)
    assert failures() == 0
    now[0] += 60.0
    assert failures() == 1
    found = read(metrics)
    assert found["fairway_queue_wait_seconds_sum"][()] == 1.0, "submitted at 1, it ran at 2"
    assert found["fairway_job_duration_seconds_sum"]["failed",] == 69.0
    waited = found["fairway_queue_wait_seconds_bucket"]
    assert [waited[bound,] for bound in ("1.0", "5.0", "+Inf")] == [1, 1, 1]
    taken = {next(label for label in key if label != "failed"): count
             for key, count in found["fairway_job_duration_seconds_bucket"].items()}  # fmt: skip
    assert [taken[bound] for bound in ("60.0", "300.0", "+Inf")] == [0, 1, 1]
