"""Identical jobs as one class: nothing changes but the size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.allocate.arrays import FloatArray
from fairway.allocate.check_problems import reordered
from fairway.allocate.kernels.classes import Classes
from fairway.allocate.kernels.curves import Multiple
from fairway.allocate.kernels.levels import raise_level
from fairway.allocate.kernels.solution import Solution
from fairway.allocate.pairs import Pairs
from fairway.allocate.problem import Problem
from tests.allocate.problems import random_problem

seeds = st.integers(0, 10_000)


def demand_of(problem: Problem) -> FloatArray:
    return problem.weights * problem.proportional_throughputs / problem.scale_factors


def solve(problem: Problem, *, sharing: bool, merge: bool = True) -> tuple[Classes, Solution]:
    demand = demand_of(problem)
    classes = Classes.of(problem, [demand], space_sharing=sharing, merge=merge)
    return classes, raise_level(classes, Multiple(classes.of_jobs(demand)))


def test_each_class_holds_the_jobs_that_are_identical() -> None:
    problem = random_problem(1, jobs=5, copies=4)
    classes = Classes.of(problem, [problem.weights], space_sharing=False)
    assert len(classes) == 5
    assert classes.counts.tolist() == [4.0] * 5
    for job in range(len(problem)):
        assert classes.member[job] == classes.member[job % 5]
        assert (classes.rates[classes.member[job]] == problem.rates[job]).all()


def test_a_feature_sets_jobs_apart() -> None:
    problem = random_problem(1, jobs=5, copies=4)
    different = np.arange(len(problem), dtype=float)
    assert len(Classes.of(problem, [different], space_sharing=False)) == 20


def test_without_merging_each_job_is_a_class() -> None:
    problem = random_problem(1, jobs=5, copies=4, pairs=True)
    assert len(Classes.of(problem, [], space_sharing=True, merge=False)) == 20


def test_jobs_that_can_run_nowhere_are_in_no_class() -> None:
    problem = Problem.of_arrays({"a": 1, "b": 0}, [[0.0, 1.0], [1.0, 1.0], [2.0, 0.0]], scale_factors=[1, 1, 4])
    classes = Classes.of(problem, [], space_sharing=False)
    assert classes.member.tolist() == [-1, 0, -1]
    assert classes.expand(np.array([[1.0, 0.0]])).tolist() == [[0.0, 0.0], [1.0, 0.0], [0.0, 0.0]]


def test_identical_jobs_with_different_partners_are_not_merged() -> None:
    pairs = Pairs(np.array([0, 1]), np.array([2, 2]), np.array([[[0.9, 0.9]], [[0.4, 0.4]]]))
    problem = Problem.of_arrays({"a": 2}, np.ones((3, 1)), pairs=pairs)
    assert len(Classes.of(problem, [], space_sharing=False)) == 1
    assert len(Classes.of(problem, [], space_sharing=True)) == 3


def test_identical_jobs_that_share_in_a_ring_only_are_not_merged() -> None:
    pairs = Pairs(np.array([0, 1, 2, 0]), np.array([1, 2, 3, 3]), np.full((4, 1, 2), 0.9))
    problem = Problem.of_arrays({"a": 2}, np.ones((4, 1)), pairs=pairs)  # all look alike, but 0 and 2 cannot share
    assert len(Classes.of(problem, [], space_sharing=True)) == 4


@given(seeds, st.booleans())
def test_merging_changes_no_objective(seed: int, sharing: bool) -> None:
    problem = random_problem(seed, jobs=3, copies=3, pairs=True, gangs=(1, 2), zeros=0.2, weights=(0.5, 2.0))
    if not problem.can_run.any():
        return
    _, merged = solve(problem, sharing=sharing)
    _, apart = solve(problem, sharing=sharing, merge=False)
    assert merged.value == pytest.approx(apart.value, rel=1e-7)


@given(seeds)
def test_expanding_keeps_totals_and_gives_members_the_same(seed: int) -> None:
    problem = random_problem(seed, jobs=3, copies=int(seed % 4) + 2, pairs=True, gangs=(1, 2), weights=(0.5, 2.0))
    classes, solution = solve(problem, sharing=True)
    assert solution.together is not None
    decision = solution.allocation("any", problem, classes, objective=solution.value)
    alone = decision.second < 0
    assert decision.shares[alone].sum() == pytest.approx((classes.counts @ solution.alone).sum())
    assert decision.shares[~alone].sum(axis=0) == pytest.approx(solution.together.sum(axis=0), abs=1e-12)
    assert decision.throughputs == pytest.approx(solution.rates(classes)[classes.member], rel=1e-9)
    for member in range(len(classes)):
        shares = decision.job_shares[classes.member == member]
        assert shares == pytest.approx(np.broadcast_to(shares[0], shares.shape), abs=1e-12)


@pytest.mark.parametrize("copies", [2, 3, 4, 7])
def test_within_a_class_a_ring_of_pairs_gives_everyone_the_same(copies: int) -> None:
    pairs = _all_pairs(copies, 0.9)
    problem = Problem.of_arrays({"a": 1}, np.ones((copies, 1)), pairs=pairs)
    classes = Classes.of(problem, [], space_sharing=True)
    first, second, shares = classes.expand_pairs(np.array([[0.8]]))
    assert shares.sum() == pytest.approx(0.8)
    assert (first < second).all()
    time = np.bincount(first, shares[:, 0], copies) + np.bincount(second, shares[:, 0], copies)
    assert time == pytest.approx(np.full(copies, 1.6 / copies))


@pytest.mark.parametrize(("left", "right"), [(1, 1), (1, 5), (2, 3), (4, 6), (5, 5)])
def test_between_classes_a_walk_over_few_pairs_gives_everyone_the_same(left: int, right: int) -> None:
    jobs = left + right
    rates = np.where(np.arange(jobs) < left, 1.0, 2.0)
    a, b = np.triu_indices(jobs, 1)
    pairs = Pairs(a, b, 0.8 * np.stack([rates[a], rates[b]], axis=1)[:, None, :])
    problem = Problem.of_arrays({"a": 1}, rates[:, None], pairs=pairs)
    classes = Classes.of(problem, [], space_sharing=True)
    assert classes.pairs is not None
    together = np.zeros((len(classes.pairs), 1))
    together[classes.pairs.first != classes.pairs.second] = 0.7
    first, second, shares = classes.expand_pairs(together)
    assert len(first) <= left + right - 1
    time = np.bincount(first, shares[:, 0], jobs) + np.bincount(second, shares[:, 0], jobs)
    assert time == pytest.approx(np.where(np.arange(jobs) < left, 0.7 / left, 0.7 / right))


@given(seeds, st.booleans())
def test_jobs_in_another_order_get_the_same_shares_to_the_last_digit(seed: int, sharing: bool) -> None:
    problem = random_problem(seed, jobs=6, pairs=True, gangs=(1, 2), zeros=0.1, weights=(0.5, 2.0))
    if not problem.can_run.any():
        return
    order = np.random.default_rng(seed).permutation(len(problem))
    other = reordered(problem, order)
    classes, solution = solve(problem, sharing=sharing)
    other_classes, other_solution = solve(other, sharing=sharing)
    shares = solution.allocation("any", problem, classes, objective=0.0).job_shares
    other_shares = other_solution.allocation("any", other, other_classes, objective=0.0).job_shares
    assert other_shares == pytest.approx(shares[order], abs=1e-14)  # sums over pairs may be added up in another order


def _all_pairs(jobs: int, rate: float) -> Pairs:
    first, second = np.triu_indices(jobs, 1)
    return Pairs(first, second, np.full((len(first), 1, 2), rate))
