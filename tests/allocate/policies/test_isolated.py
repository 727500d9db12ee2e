from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from fairway.allocate.policies.isolated import Isolated
from fairway.allocate.problem import Problem
from tests.allocate.policies.small_problems import NOWHERE, assert_feasible, golden, problems, shares_of


def test_two_jobs_split_every_type_in_half():
    decision = Isolated().allocate(Problem.of_arrays({"v100": 1, "k80": 1}, [[4.0, 2.0], [3.0, 1.0]]))
    half = {"v100": 0.5, "k80": 0.5}
    assert shares_of(decision) == {"0": half, "1": half}
    # Both run at their proportional rate: level 1.
    assert (decision.objective, decision.sense, decision.gap) == (1.0, "max", None)


def test_a_gang_gets_less_time_and_nobody_more_than_all_of_it():
    decision = Isolated().allocate(Problem.of_arrays({"v100": 4}, [[1.0], [1.0]], scale_factors=[1, 4]))
    # Two workers each: more than the first can use, half of what the second needs.
    assert shares_of(decision) == {"0": {"v100": 1.0}, "1": {"v100": 0.5}}
    assert decision.objective == 1.0


@pytest.mark.parametrize("problem", NOWHERE)
def test_without_work_or_workers_nothing_is_given(problem):
    decision = Isolated().allocate(problem)
    assert not decision.shares.any()
    assert decision.objective == 0.0


@given(problems())
def test_shares_fit(problem):
    assert_feasible(Isolated().allocate(problem))


def test_shares_are_those_of_the_original_where_jobs_can_run():
    for problem, result in golden("isolated"):
        decision = Isolated().allocate(problem)
        original = np.array([[result["allocation"][name][kind] for kind in problem.types] for name in problem.ids])
        assert decision.shares == pytest.approx(np.where(problem.runnable, original, 0.0), abs=1e-9)
        assert decision.objective == pytest.approx(result["objective"])
