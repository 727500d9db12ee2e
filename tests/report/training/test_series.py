"""Queue length, utilisation and shares over time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fairway.report.intervals import held_between, held_by_owner, mean_of_steps
from fairway.report.training.series import MOST_INTERVALS, queue_length, utilization_by_type
from fairway.report.training.shares import share_band, team_shares
from hypothesis import given
from hypothesis import strategies as st

from tests.report.records import four_jobs, jobs, leases, many_leases, nothing_ran, record, timeline


def test_the_mean_of_steps_is_exact_across_the_edges_of_intervals() -> None:
    # 4 until 10, then 1: the interval 5..15 has 5 s of each
    means = mean_of_steps(np.array([0.0, 10.0]), np.array([4, 1]), np.array([0.0, 5.0, 15.0, 20.0]))
    assert means == pytest.approx([4.0, 2.5, 1.0])


def test_nothing_is_held_before_the_first_step() -> None:
    assert mean_of_steps(np.array([5.0]), np.array([2]), np.array([0.0, 10.0])) == pytest.approx([1.0])


spans = st.lists(
    st.tuples(st.integers(0, 2), st.floats(0, 90), st.floats(0.1, 50), st.integers(1, 4)), min_size=1, max_size=20
)


@given(spans)
def test_what_owners_hold_adds_up_to_what_is_held_and_nothing_is_lost(
    rows: list[tuple[int, float, float, int]],
) -> None:
    owner = np.array([row[0] for row in rows])
    start = np.array([row[1] for row in rows])
    end = start + np.array([row[2] for row in rows])
    amount = np.array([float(row[3]) for row in rows])
    edges = np.linspace(0.0, 140.0, 8)
    held = held_between(start, end, amount, edges)
    assert held_by_owner(owner, start, end, amount, edges, 3).sum(axis=1) == pytest.approx(held, abs=1e-8)
    assert held.sum() == pytest.approx(float((amount * (end - start)).sum()))


def test_queue_length_and_utilization_follow_the_rounds() -> None:
    run = four_jobs()
    waiting, running = queue_length(run)
    assert waiting.edges.tolist() == [0, 100, 300, 350, 400]
    assert waiting.values == pytest.approx([0, 0, 1, 1])
    assert running.values == pytest.approx([1, 2, 1, 0])
    busy = utilization_by_type(run)
    assert busy["v100"].values == pytest.approx([0.5, 1, 0, 0])
    assert busy["k80"].values == pytest.approx([0, 1, 1, 0])


def test_a_long_run_has_no_more_points_than_a_chart_needs() -> None:
    rounds = 5000
    state = timeline(np.arange(rounds) * 360.0, [3] * rounds, [2] * rounds, [[1, 1]] * rounds)
    waiting, _ = queue_length(record(jobs(ids="a"), state=state, makespan=rounds * 360.0))
    assert len(waiting.values) == MOST_INTERVALS
    assert waiting.values == pytest.approx(np.full(MOST_INTERVALS, 3.0))


def test_a_run_without_rounds_has_empty_series() -> None:
    run = nothing_ran()
    assert all(not len(series.values) for series in (*queue_length(run), *utilization_by_type(run).values()))
    assert share_band(run) is None
    assert team_shares(run) == []


def test_a_job_that_holds_a_worker_for_half_of_its_fair_time_has_a_ratio_of_a_half() -> None:
    # Two jobs on one worker: an equal share is half of the time. One holds a quarter of it, the other the rest.
    columns = jobs(ids="ab", finish=[400, 400])
    held = leases([(0, 0, 0, 100, [0]), (1, 0, 100, 400, [0])])
    state = timeline([0, 400], [1, 0], [1, 0], [[1], [0]])
    band = share_band(record(columns, held, workers={"v100": 1}, state=state, makespan=400))
    assert band is not None
    assert band.p50 == pytest.approx([1.0])
    assert band.p5 == pytest.approx([0.5 + 0.05 * 1.0])
    assert band.p95 == pytest.approx([0.5 + 0.95 * 1.0])
    assert band.jobs.tolist() == [2]


def test_no_job_is_due_more_than_all_of_the_time() -> None:
    columns = jobs(ids="a", finish=[100])
    held = leases([(0, 0, 0, 100, [0])])
    band = share_band(record(columns, held, workers={"v100": 8}, makespan=100))
    assert band is not None
    assert band.p50 == pytest.approx(np.ones(len(band.p50)))


def test_each_job_of_a_pair_holds_half_of_its_workers() -> None:
    columns = jobs(ids="ab", entities=["red", "blue"], finish=[100, 100])
    held = leases([(0, 0, 0, 100, [0])], partners=[1])
    shares = team_shares(record(columns, held, workers={"v100": 1}, makespan=100))
    assert [float(share.held.values.mean()) for share in shares] == pytest.approx([0.5, 0.5])


def test_teams_are_due_shares_by_weight_while_they_have_jobs() -> None:
    # One worker; red has a job all the time, blue, with thrice the weight, in the second half.
    columns = jobs(ids="ab", entities=["red", "blue"], arrival=[0, 100], finish=[200, 200])
    held = leases([(0, 0, 0, 150, [0]), (1, 0, 150, 200, [0])])
    run = record(columns, held, workers={"v100": 1}, makespan=200, settings={"entities": {"blue": {"weight": 3}}})
    red, blue = team_shares(run)
    half = len(red.fair.values) // 2
    assert red.fair.values == pytest.approx(np.repeat([1.0, 0.25], half))
    assert blue.fair.values == pytest.approx(np.repeat([0.0, 0.75], half))
    assert red.held.values == pytest.approx(np.repeat([1.0, 1.0, 1.0, 0.0], half // 2))


def test_a_team_is_not_due_more_than_its_jobs_can_use() -> None:
    # Four workers: red wants one, blue all four, so blue is due the three that red leaves.
    columns = jobs(ids="ab", entities=["red", "blue"], finish=[100, 100], scale_factor=[1, 4])
    held = leases([(0, 0, 0, 100, [0])])
    red, blue = team_shares(record(columns, held, workers={"v100": 4}, makespan=100))
    assert red.fair.values.mean() == pytest.approx(0.25)
    assert blue.fair.values.mean() == pytest.approx(0.75)


def test_a_team_below_another_divides_what_that_one_has() -> None:
    entities = {"labs": {"weight": 1}, "red": {"parent": "labs"}, "blue": {"parent": "labs"}, "green": {"weight": 1}}
    columns = jobs(ids="abc", entities=["red", "blue", "green"], finish=[100, 100, 100], scale_factor=[4, 4, 4])
    run = record(columns, leases([(0, 0, 0, 100, [0])]), workers={"v100": 4}, makespan=100)
    shares = team_shares(replace(run, settings={"entities": entities}))
    assert {share.team: float(share.fair.values.mean()) for share in shares} == pytest.approx(
        {"red": 0.25, "blue": 0.25, "green": 0.5}
    )


def test_jobs_without_a_team_stand_beside_the_teams() -> None:
    columns = jobs(ids="ab", entities=["red", None], finish=[100, 100])
    shares = team_shares(record(columns, leases([(0, 0, 0, 100, [0])]), workers={"v100": 1}, makespan=100))
    assert [share.team for share in shares] == ["red", "no team"]


def test_shares_of_many_leases_take_little_time_and_stay_below_all() -> None:
    band = share_band(many_leases(20_000))
    assert band is not None
    assert np.nanmin(band.p5) >= 0
