"""Decisions from numbers that are wrong or missing: a policy goes by what it knows, and no job starves for it.

Lengths that are wrong by a factor of 100, pairs whose rates were never measured, and far more jobs than the workers can
take: what a decision guarantees then follows from its goal, by hand.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway import Problem, policy_of
from tests.allocate.problems import random_problem

seeds = st.integers(0, 10_000)
WRONG = 100.0
LEVELS = ("max-min-fairness", "makespan", "finish-time-fairness")


def with_wrong_lengths(problem: Problem, seed: int) -> Problem:
    """Some of the jobs say that they have 100 times as many steps left as they have, others a hundredth."""
    factor = np.random.default_rng(seed).choice([1.0 / WRONG, 1.0, WRONG], len(problem))
    return replace(problem, steps_left=problem.steps_left * factor)


@given(seeds, st.booleans())
def test_max_min_fairness_does_not_go_by_lengths_at_all(seed: int, sharing: bool) -> None:
    problem = random_problem(seed, jobs=8, pairs=True, gangs=(1, 2), weights=(0.5, 2.0))
    policy = policy_of("max-min-fairness:space-sharing" if sharing else "max-min-fairness")
    right, wrong = policy.allocate(problem), policy.allocate(with_wrong_lengths(problem, seed))
    assert np.array_equal(right.shares, wrong.shares)


@given(seeds, st.booleans())
def test_with_wrong_lengths_the_makespan_is_at_most_the_square_of_the_error_longer(seed: int, sharing: bool) -> None:
    # With lengths at most 100 times too large, 100 times the least time is enough; with lengths at most 100 times too
    # small, a job gets at least a hundredth of the rate that this asks for.
    problem = random_problem(seed, jobs=8, pairs=True, gangs=(1, 2))
    policy = policy_of("makespan:space-sharing" if sharing else "makespan")
    least = policy.allocate(problem).objective
    decision = policy.allocate(with_wrong_lengths(problem, seed))
    runs = problem.can_run
    seconds = problem.steps_left[runs] / decision.throughputs[runs]
    assert seconds.max() <= WRONG**2 * least * (1 + 1e-6)


@given(seeds, st.booleans())
def test_with_wrong_lengths_every_job_keeps_making_progress_under_finish_time_fairness(
    seed: int, sharing: bool
) -> None:
    problem = with_wrong_lengths(random_problem(seed, jobs=8, pairs=True, gangs=(1, 2)), seed)
    decision = policy_of("finish-time-fairness:space-sharing" if sharing else "finish-time-fairness").allocate(problem)
    assert (decision.throughputs[problem.can_run] > 0).all()
    # t + r / E <= rho * (C + r / I): where t >= rho * C, a job has at least its rate on an equal part, divided by rho.
    least = problem.isolated_throughputs / decision.objective
    late = problem.elapsed >= decision.objective * problem.isolated_elapsed
    assert (decision.throughputs[late] >= least[late] * (1 - 1e-6)).all()


@given(seeds, st.sampled_from(LEVELS))
def test_pairs_that_were_never_measured_leave_the_decision_of_jobs_alone(seed: int, name: str) -> None:
    problem = random_problem(seed, jobs=8, pairs=True, gangs=(1, 2))
    assert problem.pairs is not None
    unknown = replace(problem, pairs=replace(problem.pairs, rates=np.zeros_like(problem.pairs.rates)))
    alone = policy_of(name).allocate(problem)
    options = "space-sharing" if name != "finish-time-fairness" else "space-sharing,weighted"
    for missing in (unknown, replace(problem, pairs=None)):
        shared = policy_of(f"{name}:{options}").allocate(missing)
        assert (shared.second < 0).all()
        assert shared.objective == pytest.approx(alone.objective, rel=1e-6)
        assert shared.throughputs == pytest.approx(alone.throughputs, rel=1e-6)


@given(seeds)
def test_the_fewer_pairs_are_measured_the_less_sharing_gains_but_never_less_than_nothing(seed: int) -> None:
    problem = random_problem(seed, jobs=8, pairs=True, gangs=(1, 2))
    assert problem.pairs is not None
    measured = np.random.default_rng(seed).random(len(problem.pairs)) < 0.3
    policy = policy_of("max-min-fairness:space-sharing")
    none = policy_of("max-min-fairness").allocate(problem).objective
    some = policy.allocate(replace(problem, pairs=problem.pairs.where(measured))).objective
    assert none * (1 - 1e-6) <= some <= policy.allocate(problem).objective * (1 + 1e-6)


@given(seeds, st.sampled_from(LEVELS), st.booleans())
def test_in_an_overloaded_cluster_every_job_that_can_run_makes_progress(seed: int, name: str, sharing: bool) -> None:
    problem = random_problem(seed, jobs=40, pairs=sharing, gangs=(1, 2), zeros=0.2, workers=(1, 2))
    decision = policy_of(f"{name}:space-sharing" if sharing else name).allocate(problem)
    runs = problem.can_run
    assert (decision.throughputs[runs] > 0).all()
    if name == "max-min-fairness":  # an equal part of every type for each job is one of the choices
        level = (problem.scale_factors / problem.weights)[runs] / problem.proportional_throughputs[runs]
        equal = (level * problem.isolated_throughputs[runs]).min()
        assert (level * decision.throughputs[runs]).min() >= equal * (1 - 1e-6)
