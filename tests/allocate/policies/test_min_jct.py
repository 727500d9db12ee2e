"""min-jct: what it runs, from prices and values worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fairway.allocate.demand import Demand
from fairway.allocate.pairs import Pairs
from fairway.allocate.policies.min_jct import MinJct, due_shares
from fairway.allocate.problem import Problem
from fairway.jobs import Entity
from tests.allocate.policies.small_problems import shares_of


def test_the_fast_type_goes_to_the_job_that_gains_most_by_it() -> None:
    problem = Problem.of_arrays({"v100": 1, "k80": 1}, [[2.0, 1.9], [2.0, 0.5]], steps_left=[100, 100])
    assert shares_of(MinJct().allocate(problem)) == {"0": {"k80": 1.0}, "1": {"v100": 1.0}}


def test_among_equals_the_job_with_least_to_do_runs_and_without_lengths_the_one_that_has_done_least() -> None:
    problem = Problem.of_arrays({"v100": 1}, [[1.0]] * 2, steps_left=[9000, 8000])
    assert shares_of(MinJct().allocate(problem)) == {"1": {"v100": 1.0}}
    unknown = replace(problem, steps_left=np.full(2, np.nan), done=np.array([500.0, 700.0]))
    assert shares_of(MinJct().allocate(unknown)) == {"0": {"v100": 1.0}}


def test_a_job_that_is_behind_its_equal_share_goes_first_unless_there_is_no_floor() -> None:
    problem = Problem.of_arrays(
        {"v100": 1}, [[1.0]] * 2, steps_left=[9000, 100], elapsed=[1000, 1000], isolated_elapsed=[899, 901]
    )
    assert shares_of(MinJct().allocate(problem)) == {"0": {"v100": 1.0}}
    assert shares_of(MinJct(floor=0.0).allocate(problem)) == {"1": {"v100": 1.0}}


def test_two_share_where_that_is_worth_more_than_one_alone() -> None:
    for kept, rows in ((0.7, 1), (0.4, 0)):
        pairs = Pairs(np.array([0]), np.array([1]), np.full((1, 1, 2), kept))
        problem = Problem.of_arrays({"v100": 1}, [[1.0]] * 2, steps_left=[100, 100], pairs=pairs)
        decision = MinJct(space_sharing=True).allocate(problem)
        assert np.count_nonzero(decision.second >= 0) == rows
        assert np.count_nonzero(MinJct().allocate(problem).second >= 0) == 0


def test_its_prices_are_those_of_the_work_that_keeps_coming() -> None:
    # A second on the only fast worker saves another job two seconds on a slow one, less the second itself.
    coming = Demand(np.array([[2.0, 1.0]]), np.ones(1), np.array([50.0]))
    problem = Problem.of_arrays({"v100": 1, "k80": 100}, [[2.0, 1.0]], steps_left=[100])
    decision = MinJct(edge=0.0).allocate(replace(problem, demand=coming, classes=np.zeros(1, np.int64)))
    assert decision.prices == pytest.approx([1.0, 0.0])
    assert MinJct().allocate(problem).prices is None


def test_a_class_that_is_too_new_to_have_a_price_goes_by_the_prices_of_the_types() -> None:
    coming = Demand(np.array([[2.0, 1.0]]), np.ones(1), np.array([50.0]))
    problem = Problem.of_arrays({"v100": 1, "k80": 1}, [[2.0, 1.0], [2.0, 1.9]], steps_left=[100, 100])
    decision = MinJct().allocate(replace(problem, demand=coming, classes=np.array([0, 1])))
    assert shares_of(decision) == {"0": {"v100": 1.0}, "1": {"k80": 1.0}}


def test_a_job_goes_first_that_would_miss_its_deadline_on_an_equal_share_unless_it_cannot_keep_it() -> None:
    # Of two jobs on one worker each has half of the time: 6,000 steps take 12,000 s there, and 6,000 s at best.
    for seconds, runs in ((100.0, "0"), (130.0, "1"), (50.0, "1")):
        problem = Problem.of_arrays(
            {"v100": 1}, [[1.0]] * 2, steps_left=[6000, 3000], slo_seconds=[100 * seconds, np.nan]
        )
        assert shares_of(MinJct().allocate(problem)) == {runs: {"v100": 1.0}}


def test_what_a_job_is_due_is_its_part_of_what_its_team_is_due() -> None:
    # Four jobs on one worker, all ahead of an equal share so far. The first team is due three quarters of the
    # cluster, 1.5 equal shares for each of two jobs; the second a quarter, 0.5 for each of the others.
    problem = Problem.of_arrays(
        {"v100": 1}, [[1.0]] * 4, steps_left=[9000, 9000, 9000, 100], elapsed=[1000] * 4, isolated_elapsed=[1300] * 4
    )
    in_teams = replace(
        problem, team=np.array([0, 0, 1, 1]), entities={"a": Entity(weight=3.0), "b": Entity(weight=1.0)}
    )
    assert shares_of(MinJct().allocate(problem)) == {"3": {"v100": 1.0}}
    assert shares_of(MinJct().allocate(in_teams)) == {"0": {"v100": 1.0}}
    assert shares_of(MinJct(floor=0.0).allocate(in_teams)) == {"3": {"v100": 1.0}}
    first_come = {"a": Entity(weight=3.0, policy="fifo"), "b": Entity()}
    ahead = replace(in_teams, isolated_elapsed=np.array([2800.0, 0.0, 1300.0, 1300.0]), entities=first_come)
    assert shares_of(MinJct().allocate(ahead)) == {"3": {"v100": 1.0}}


def test_a_team_with_one_small_job_leaves_what_that_cannot_use_to_the_others() -> None:
    # On four workers one job of one worker can use a quarter of the cluster, though its team is due half.
    problem = replace(
        Problem.of_arrays(
            {"v100": 4}, [[1.0]] * 5, scale_factors=[1, 4, 4, 4, 4], steps_left=[100.0] * 5, elapsed=[1000.0] * 5,
        ),
        team=np.array([0, 1, 1, 1, 1]), entities={"a": Entity(), "b": Entity()},
    )  # fmt: skip
    assert due_shares(problem).tolist() == pytest.approx([1.25, 0.9375, 0.9375, 0.9375, 0.9375])
