from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from fairway.allocate.policies.proportional import Proportional
from fairway.allocate.problem import Problem
from tests.allocate.policies.small_problems import NOWHERE, assert_feasible, problems, shares_of


def test_a_job_that_fits_runs_all_the_time_in_proportion_to_the_counts():
    decision = Proportional().allocate(Problem.of_arrays({"v100": 1, "k80": 3}, [[4.0, 2.0]]))
    assert shares_of(decision) == {"0": {"v100": 0.25, "k80": 0.75}}
    assert (decision.objective, decision.sense, decision.gap) == (1.0, "max", None)


def test_three_jobs_on_two_workers_shrink_by_the_same_factor():
    decision = Proportional().allocate(Problem.of_arrays({"v100": 1, "k80": 1}, [[4.0, 2.0], [1.0, 1.0], [3.0, 0.0]]))
    third = pytest.approx(1 / 3)
    both = {"v100": third, "k80": third}
    assert shares_of(decision) == {"0": both, "1": both, "2": {"v100": third}}
    assert decision.objective == pytest.approx(2 / 3)


@pytest.mark.parametrize("problem", NOWHERE)
def test_without_work_or_workers_nothing_is_given(problem):
    decision = Proportional().allocate(problem)
    assert not decision.shares.any()
    assert decision.objective == 0.0


@given(problems())
def test_shares_fit_and_keep_the_proportions(problem):
    decision = Proportional().allocate(problem)
    assert_feasible(decision)
    per_worker = decision.shares / np.maximum(problem.workers, 1)
    given_shares = per_worker[problem.runnable]
    assert given_shares == pytest.approx(np.full_like(given_shares, given_shares.max(initial=0.0)))
    # Somebody is limited, by time or by a type: the common factor is as large as it can be.
    everywhere = problem.can_run & problem.runnable[:, problem.workers > 0].all(axis=1)
    if everywhere.any():
        full = (decision.used >= problem.workers * (1 - 1e-9)) & (problem.workers > 0)
        assert full.any() or decision.shares[everywhere].sum(axis=1) == pytest.approx(1.0)
