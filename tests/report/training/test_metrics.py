"""The numbers of a run, against ones worked out by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fairway.cluster import Cluster
from fairway.report.training.metrics import summarize
from fairway.report.training.record import Outcome
from tests.report.records import NAN, four_jobs, jobs, nothing_ran, record


def test_completion_times_are_those_of_the_jobs_that_completed() -> None:
    run = summarize(four_jobs())
    assert (run["jobs"], run["completed"], run["unfinished"], run["unrunnable"]) == (4, 2, 1, ["d"])
    # 100 and 300 s; percentiles between them are linear
    assert run["jct_seconds"] == pytest.approx({"mean": 200, "p50": 200, "p95": 290, "p99": 298, "max": 300})
    assert run["per_job"] == [
        {"id": "a", "arrival": 0.0, "finish": 100.0, "jct": 100.0},
        {"id": "b", "arrival": 50.0, "finish": 350.0, "jct": 300.0},
        {"id": "c", "arrival": 100.0, "finish": None, "jct": None},
        {"id": "d", "arrival": 100.0, "finish": None, "jct": None},
    ]


def test_rho_is_completion_time_over_the_time_on_an_equal_share() -> None:
    assert summarize(four_jobs())["rho"] == pytest.approx({"mean": (0.5 + 2.0) / 2, "max": 2.0})


def test_utilization_cost_and_preemptions_are_those_of_the_whole_run() -> None:
    run = summarize(four_jobs())
    assert run["utilization"] == pytest.approx(750 / (3 * 400))
    assert run["cost_dollars"] == pytest.approx(12.0)
    assert (run["preemptions"], run["preemptions_per_job"]) == (4, 1.0)
    assert (run["rounds"], run["solves"], run["leases_granted"], run["seed"]) == (7, 3, 9, 0)


def test_a_window_narrows_the_averages_and_not_the_totals() -> None:
    whole = four_jobs()
    run = summarize(replace(whole, jobs=replace(whole.jobs, counted=np.array([False, True, True, False]))))
    assert (run["jobs"], run["completed"], run["jct_seconds"]["mean"]) == (2, 1, 300.0)
    assert [job["id"] for job in run["per_job"]] == ["b", "c"]
    assert (run["preemptions"], run["preemptions_per_job"]) == (4, 2.0)
    assert run["cost_dollars"] == pytest.approx(12.0)


def test_a_deadline_is_missed_by_finishing_late_by_not_finishing_in_time_and_by_never_running() -> None:
    # a finishes just in time, b late, c is unfinished when its deadline passes at the end, d can never run
    assert summarize(four_jobs())["slo_violations"] == 3
    whole = four_jobs()
    assert summarize(replace(whole, makespan_seconds=399.0))["slo_violations"] == 2
    assert summarize(nothing_ran())["slo_violations"] is None


def test_teams_have_their_own_averages() -> None:
    teams = summarize(four_jobs())["teams"]
    assert list(teams) == ["red", "blue"]
    assert (teams["red"]["jobs"], teams["red"]["completed"], teams["red"]["jct_seconds"]["mean"]) == (2, 1, 100.0)
    assert teams["blue"]["rho"] == {"mean": 2.0, "max": 2.0}


def test_weights_have_their_own_averages_where_they_differ() -> None:
    finished = {"finish": [10, 20, 40], "isolated_seconds": [10, 10, 10]}
    assert summarize(record(jobs(ids="abc", **finished)))["weights"] == {}
    weights = summarize(record(jobs(ids="abc", weight=[1, 5, 1], **finished)))["weights"]
    assert {name: group["jct_seconds"]["mean"] for name, group in weights.items()} == {"1": 25.0, "5": 20.0}


@pytest.mark.parametrize("run", [nothing_ran(), record(jobs(ids=""))], ids=["nothing completed", "no jobs"])
def test_where_nothing_completed_numbers_are_null_and_never_nan(run: Any) -> None:
    summary = summarize(run)
    assert set(summary["jct_seconds"].values()) == {None}
    assert set(summary["rho"].values()) == {None}
    assert summary["utilization"] is None
    json.dumps(summary, allow_nan=False)


def test_without_prices_there_is_no_cost() -> None:
    assert summarize(nothing_ran())["cost_dollars"] is None
    free = four_jobs()
    free = replace(free, cluster=Cluster({"v100": 2, "k80": 1}), jobs=replace(free.jobs, cost_dollars=np.zeros(4)))
    assert summarize(free)["cost_dollars"] is None


def test_a_job_without_a_time_on_an_equal_share_has_no_rho() -> None:
    run = summarize(record(jobs(ids="abc", finish=[10, 20, 30], isolated_seconds=[0, NAN, 15])))
    assert run["rho"] == {"mean": 2.0, "max": 2.0}


def test_failed_and_cancelled_jobs_are_counted_apart() -> None:
    columns = jobs(ids="ab", finish=[10, 20], outcome=[Outcome.FAILED, Outcome.CANCELLED])
    run = summarize(record(columns))
    assert (run["failed"], run["completed"]) == (2, 0)
    assert run["per_job"][0]["finish"] is None


def test_settings_become_json_whatever_they_are_made_of() -> None:
    run = summarize(
        record(jobs(ids=""), settings={"seed": np.int64(3), "window": (1, 2), "cluster": Cluster({"a": 1})})
    )
    assert run["seed"] == 3
    assert run["settings"]["window"] == [1, 2]
    assert run["settings"]["cluster"]["workers"] == {"a": 1}
    json.dumps(run, allow_nan=False)
