from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from fairway.allocate.arrays import FloatArray
from fairway.allocate.kernels.interior.alone import highest_level, highest_sum, middle
from fairway.allocate.kernels.interior.pairs import highest_level_with_pairs
from fairway.allocate.pairs import Pairs
from tests.allocate.problems import NASTY, random_problem
from tests.figures import policy_cases

ONE_OF_EACH = np.array([1.0, 1.0])


def fits(shares: FloatArray, scale_factors: FloatArray, workers: FloatArray) -> bool:
    busy = scale_factors @ shares
    return bool((shares >= 0).all() and (shares.sum(axis=1) <= 1 + 1e-5).all() and (busy <= workers * (1 + 1e-5)).all())


def exact_level(rates: FloatArray, demand: FloatArray, scale_factors: FloatArray, workers: FloatArray) -> float:
    """The same program by HiGHS."""
    n, types = rates.shape
    matrix = np.zeros((2 * n + types, n * types + 1))
    for i in range(n):
        for j in range(types):
            matrix[i, i * types + j] = -rates[i, j] / demand[i]
            matrix[n + i, i * types + j] = 1.0
            matrix[2 * n + j, i * types + j] = scale_factors[i]
        matrix[i, -1] = 1.0
    limits = np.concatenate([np.zeros(n), np.ones(n), workers])
    cost = np.zeros(n * types + 1)
    cost[-1] = -1.0
    return -float(linprog(cost, matrix, limits, bounds=[(0, None)] * (n * types) + [(None, None)]).fun)


@given(
    seed=st.integers(0, 10_000),
    jobs=st.integers(1, 12),
    types=st.integers(1, 5),
    rates=st.sampled_from(sorted(set(NASTY) - {"wide rates"})),
)
def test_the_highest_level_is_that_of_an_exact_solver(seed: int, jobs: int, types: int, rates: str) -> None:
    problem = random_problem(seed, jobs=jobs, types=types, rates=rates, zeros=0.2, gangs=(1, 2, 4), weights=(0.2, 5.0))
    runs = problem.throughputs.any(axis=1)
    if not runs.any():
        return
    own, size = problem.throughputs[runs], problem.scale_factors[runs]
    demand = problem.weights[runs] * own.max(axis=1) / size
    shares, level = highest_level(own, demand, size, problem.workers)
    best = exact_level(own, demand, size, problem.workers)
    assert level == pytest.approx(best, rel=1e-4)
    assert fits(shares, size, problem.workers)
    assert ((own * shares).sum(axis=1) >= demand * best * (1 - 1e-4)).all()


def test_one_job_on_one_type_gets_all_of_it() -> None:
    shares, level = highest_level(np.array([[3.0]]), np.array([1.0]), np.array([1.0]), np.array([2.0]))
    assert shares == pytest.approx(np.ones((1, 1)), abs=1e-5)
    assert level == pytest.approx(3.0, rel=1e-5)


def test_one_job_before_many_types_takes_the_fastest() -> None:
    rates = np.array([[1.0, 5.0, 2.0, 3.0]])
    shares, level = highest_level(rates, np.ones(1), np.ones(1), np.ones(4))
    assert level == pytest.approx(5.0, rel=1e-5)
    assert shares[0] == pytest.approx([0, 1, 0, 0], abs=1e-4)


def test_equal_jobs_get_equal_shares_of_equal_types() -> None:
    shares, level = highest_level(np.ones((4, 2)), np.ones(4), np.ones(4), ONE_OF_EACH)
    assert level == pytest.approx(0.5, rel=1e-5)
    assert shares == pytest.approx(np.full((4, 2), 0.25), abs=1e-5)


def test_a_type_on_which_a_job_cannot_run_does_not_count_for_it() -> None:
    rates = np.array([[1.0, 0.0], [1.0, 1.0]])
    _, level = highest_level(rates, np.ones(2), np.ones(2), ONE_OF_EACH)
    assert level == pytest.approx(1.0, rel=1e-5)


def test_what_costs_nothing_is_spread_and_not_at_a_corner() -> None:
    # One job can do no better than its full time on the only type that suits it; the other has both types to spare.
    rates = np.array([[1.0, 0.0], [4.0, 4.0]])
    shares, _ = highest_level(rates, np.ones(2), np.ones(2), np.array([2.0, 2.0]))
    assert shares[0, 0] == pytest.approx(1.0, abs=1e-4)
    assert (shares[1] > 0.05).all()
    assert shares[1].sum() < 0.99


def test_the_middle_of_all_shares_is_their_analytic_centre_by_symmetry() -> None:
    shares = middle(np.ones((2, 2)), np.full(2, 0.5), np.ones(2), ONE_OF_EACH)
    assert shares is not None
    assert shares == pytest.approx(np.full((2, 2), shares[0, 0]), abs=1e-6)
    assert 0.25 < shares[0, 0] < 0.5


@given(seed=st.integers(0, 10_000), jobs=st.integers(1, 10), types=st.integers(1, 4))
def test_the_middle_meets_demands_that_fit(seed: int, jobs: int, types: int) -> None:
    problem = random_problem(seed, jobs=jobs, types=types, gangs=(1, 2))
    size, workers = problem.scale_factors, problem.workers
    demand = problem.throughputs.max(axis=1)
    best = exact_level(problem.throughputs, demand, size, workers)
    shares = middle(problem.throughputs, 0.97 * best * demand, size, workers)
    assert shares is not None
    assert fits(shares, size, workers)
    assert ((problem.throughputs * shares).sum(axis=1) >= 0.97 * best * demand * (1 - 1e-5)).all()


def test_there_is_no_middle_of_demands_that_do_not_fit() -> None:
    assert middle(np.ones((3, 1)), np.ones(3), np.ones(3), np.array([1.0])) is None


@given(seed=st.integers(0, 10_000), jobs=st.integers(1, 12), types=st.integers(1, 4))
def test_the_highest_sum_is_that_of_an_exact_solver(seed: int, jobs: int, types: int) -> None:
    problem = random_problem(seed, jobs=jobs, types=types, zeros=0.2, gangs=(1, 2, 4))
    gains, size, workers = problem.throughputs, problem.scale_factors, problem.workers
    shares = highest_sum(gains, size, workers)
    time = np.kron(np.eye(jobs), np.ones((1, types)))
    busy = np.kron(size[None, :], np.eye(types))
    best = -float(linprog(-gains.ravel(), np.vstack([time, busy]), np.concatenate([np.ones(jobs), workers])).fun)
    assert fits(shares, size, workers)
    assert float((gains * shares).sum()) == pytest.approx(best, rel=1e-4, abs=1e-9)


def test_two_that_do_not_slow_each_other_down_share() -> None:
    rates = np.ones((2, 1))
    pairs = Pairs(np.array([0]), np.array([1]), np.ones((1, 1, 2)))
    shares, level = highest_level_with_pairs(rates, np.ones(2), np.ones(2), np.array([1.0]), pairs)
    assert level == pytest.approx(1.0, rel=1e-4)
    assert shares[2, 0] == pytest.approx(1.0, abs=1e-3)


def test_pairs_that_cannot_share_change_nothing() -> None:
    problem = random_problem(3, jobs=6, types=3)
    demand = problem.throughputs.max(axis=1)
    pairs = Pairs(np.array([0, 2]), np.array([1, 4]), np.zeros((2, 3, 2)))
    _, with_pairs = highest_level_with_pairs(problem.throughputs, demand, problem.scale_factors, problem.workers, pairs)
    _, alone = highest_level(problem.throughputs, demand, problem.scale_factors, problem.workers)
    assert with_pairs == pytest.approx(alone, rel=1e-4)


def test_answers_are_those_of_the_original_on_recorded_cases() -> None:
    for case in policy_cases():
        workers, rates = case.workers, case.rates
        size, weight = case.column("scale_factor"), case.column("priority_weight")
        mean = rates @ workers / workers.sum()
        answers = {
            "max_min_fairness_perf": highest_level(rates, weight * mean / size, size, workers)[0],
            "max_min_fairness": highest_level(np.ones_like(rates), weight / size, size, workers)[0],
            "max_sum_throughput_perf": highest_sum(rates, size, workers),
        }
        for policy, shares in answers.items():
            given = case.results[policy]["allocation"]
            theirs = np.array([[given[str(i)][name] for name in case.types] for i in range(len(rates))])
            assert shares == pytest.approx(theirs, abs=1e-2), (case.id, policy)
