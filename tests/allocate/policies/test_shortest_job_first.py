from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from fairway.allocate.pairs import Pairs
from fairway.allocate.policies.shortest_job_first import ShortestJobFirst
from fairway.allocate.problem import Problem
from fairway.errors import InputError
from tests.allocate.policies.small_problems import problems, shares_of

VARIANTS = [ShortestJobFirst(agnostic, sharing) for agnostic in (False, True) for sharing in (False, True)]


def test_the_shortest_job_gets_the_type_where_it_is_done_first():
    problem = Problem.of_arrays({"v100": 1, "k80": 1}, [[2.0, 1.0], [2.0, 1.0], [1.0, 2.0]], steps_left=[10, 8, 9])
    decision = ShortestJobFirst().allocate(problem)
    # 8 / 2 = 4 s on a v100, then 9 / 2 = 4.5 s on a k80.
    assert shares_of(decision) == {"1": {"v100": 1.0}, "2": {"k80": 1.0}}
    assert (decision.objective, decision.sense, decision.gap) == (8.5, "min", None)


def test_a_job_without_room_is_skipped():
    problem = Problem.of_arrays({"v100": 2}, [[1.0]] * 3, scale_factors=[1, 2, 1], steps_left=[1, 2, 3])
    assert shares_of(ShortestJobFirst().allocate(problem)) == {"0": {"v100": 1.0}, "2": {"v100": 1.0}}


def test_of_equally_long_jobs_the_first_to_arrive_runs():
    problem = Problem.of_arrays({"v100": 1}, [[1.0], [1.0]], steps_left=[5, 5])
    assert shares_of(ShortestJobFirst().allocate(problem)) == {"0": {"v100": 1.0}}


def test_the_agnostic_variant_goes_by_the_mean_rate():
    # On the mean of the workers: 12 / 2 = 6 s and 10 / 1 = 10 s; on the best type it would be 4 s and 2 s.
    problem = Problem.of_arrays({"v100": 1, "k80": 9}, [[3.0, 17 / 9], [5.0, 5 / 9]], steps_left=[12, 10])
    only_one = replace(problem, workers=np.array([1.0, 9.0]), scale_factors=np.array([1.0, 9.0]))
    assert "0" in shares_of(ShortestJobFirst(agnostic=True).allocate(only_one))
    assert "1" in shares_of(ShortestJobFirst().allocate(problem))
    drawn = {
        kind
        for seed in range(30)
        for kind in shares_of(ShortestJobFirst(agnostic=True).allocate(replace(problem, seed=seed)))["0"]
    }
    assert drawn == {"v100", "k80"}


def test_the_agnostic_variant_lets_a_running_job_stay_on_its_type():
    problem = Problem.of_arrays({"v100": 3, "k80": 3}, np.ones((3, 2)), steps_left=[1, 2, 3])
    first = ShortestJobFirst(agnostic=True).allocate(problem)
    for seed in range(10):
        later = replace(problem, previous=first, seed=seed)
        assert shares_of(ShortestJobFirst(agnostic=True).allocate(later)) == shares_of(first)


def test_jobs_without_room_join_running_ones_shortest_first():
    pairs = Pairs(np.array([0, 0]), np.array([1, 2]), np.full((2, 1, 2), 0.8))
    problem = Problem.of_arrays({"v100": 1}, [[1.0]] * 3, steps_left=[1, 4, 2], pairs=pairs)
    decision = ShortestJobFirst(space_sharing=True).allocate(problem)
    assert shares_of(decision) == {"0,2": {"v100": 1.0}}
    assert decision.objective == pytest.approx((1 + 2) / 0.8)


def test_a_job_that_does_not_say_how_long_it_is_is_refused():
    with pytest.raises(InputError, match="'0' has no steps_left, which policy 'shortest-job-first' needs"):
        ShortestJobFirst().allocate(Problem.of_arrays({"v100": 1}, [[1.0]]))


@given(st.sampled_from(VARIANTS), problems(with_pairs=True))
def test_nobody_waits_who_would_fit(policy, problem):
    decision = policy.allocate(problem)
    waits = decision.job_shares.sum(axis=1) == 0
    fits = problem.runnable & (problem.scale_factors[:, None] <= problem.workers - decision.used)
    assert not fits[waits].any()


@given(problems())
def test_a_waiting_job_could_not_be_done_sooner_than_an_equally_wide_one_that_runs(problem):
    decision = ShortestJobFirst().allocate(problem)
    with np.errstate(divide="ignore", invalid="ignore"):
        seconds = np.where(problem.runnable, problem.steps_left[:, None] / problem.rates, np.inf)
    soonest = seconds.min(axis=1, initial=np.inf)
    for waiting in np.flatnonzero(decision.job_shares.sum(axis=1) == 0):
        for running, _ in np.argwhere(decision.job_shares > 0):
            able = problem.runnable[waiting][problem.runnable[running]].all()
            if able and problem.scale_factors[running] >= problem.scale_factors[waiting]:
                assert soonest[waiting] >= soonest[running]


def test_a_job_that_is_as_fast_anywhere_leaves_the_fast_type_to_one_that_needs_it():
    problem = Problem.of_arrays({"v100": 1, "k80": 1}, [[1.0, 1.0], [5.0, 1.0]], steps_left=[1, 100])
    assert shares_of(ShortestJobFirst().allocate(problem)) == {"0": {"k80": 1.0}, "1": {"v100": 1.0}}


@given(problems())
def test_jobs_of_one_worker_are_placed_with_the_least_sum_of_slow_downs(problem):
    problem = replace(problem, scale_factors=np.ones(len(problem)))
    decision = ShortestJobFirst().allocate(problem)
    runs = np.flatnonzero(decision.job_shares.any(axis=1))
    rates, size = problem.rates, len(problem) * 100.0
    slower = np.divide(problem.fastest[:, None], rates, out=np.full_like(rates, size), where=rates > 0)
    places = np.repeat(np.arange(len(problem.types)), problem.workers.astype(int))
    costs = slower[np.ix_(runs, places)]
    rows, columns = linear_sum_assignment(costs)
    assert (decision.job_shares * slower).sum() == pytest.approx(costs[rows, columns].sum())
