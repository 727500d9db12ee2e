from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from fairway.allocate.pairs import Pairs
from fairway.allocate.policies.gandiva import Gandiva
from fairway.allocate.problem import Problem
from tests.allocate.policies.small_problems import (
    NOWHERE,
    after,
    assert_feasible,
    golden,
    keys_of,
    problems,
    same,
    shares_of,
)


def _all_pairs(jobs: int, types: int, kept: float = 0.7) -> Pairs:
    first, second = np.triu_indices(jobs, 1)
    return Pairs(first.astype(np.int64), second.astype(np.int64), np.full((len(first), types, 2), kept))


def test_while_all_jobs_fit_nobody_shares():
    problem = Problem.of_arrays({"v100": 2, "k80": 2}, np.ones((4, 2)), pairs=_all_pairs(4, 2))
    decision = Gandiva().allocate(problem)
    assert shares_of(decision) == {str(job): {"v100": 0.5, "k80": 0.5} for job in range(4)}
    assert (decision.objective, decision.sense, decision.gap) == (1.0, "max", None)


def test_under_load_the_jobs_drawn_together_share():
    problem = Problem.of_arrays({"v100": 2}, np.ones((4, 1)), pairs=_all_pairs(4, 1), seed=3)
    first = sorted(random.Random(3).sample(range(4), 2))
    others = sorted({0, 1, 2, 3} - {*first})
    decision = Gandiva().allocate(problem)
    assert shares_of(decision) == {f"{a},{b}": {"v100": 1.0} for a, b in (first, others)}
    assert decision.objective == pytest.approx(0.7)


def test_time_is_equal_for_all_combinations():
    problem = Problem.of_arrays({"v100": 2}, np.ones((3, 1)), pairs=_all_pairs(3, 1))
    (one, other) = shares_of(Gandiva().allocate(problem)).values()
    assert one == other == {"v100": 1.0}
    narrow = Problem.of_arrays({"v100": 1}, np.ones((3, 1)), pairs=_all_pairs(3, 1))
    assert set(map(str, shares_of(Gandiva().allocate(narrow)).values())) == {"{'v100': 0.5}"}


def test_jobs_of_different_scale_factors_never_share():
    problem = Problem.of_arrays({"v100": 2}, np.ones((2, 1)), scale_factors=[1, 2], pairs=_all_pairs(2, 1))
    assert shares_of(Gandiva().allocate(problem)) == {"0": {"v100": 1.0}, "1": {"v100": 0.5}}


def test_two_drawn_together_who_cannot_share_run_alone():
    problem = Problem.of_arrays({"v100": 1}, np.ones((2, 1)))
    assert shares_of(Gandiva().allocate(problem)) == {"0": {"v100": 0.5}, "1": {"v100": 0.5}}


def test_pairs_stay_together_whatever_the_seed_draws():
    problem = Problem.of_arrays({"v100": 3}, np.ones((6, 1)), pairs=_all_pairs(6, 1))
    first = Gandiva().allocate(problem)
    for seed in range(10):
        assert shares_of(Gandiva().allocate(replace(problem, previous=first, seed=seed))) == shares_of(first)


def test_a_pair_that_loses_by_sharing_is_drawn_anew():
    problem = Problem.of_arrays({"v100": 3}, np.ones((6, 1)), pairs=_all_pairs(6, 1, kept=0.4))
    first = Gandiva().allocate(problem)
    later = [Gandiva().allocate(replace(problem, previous=first, seed=seed)) for seed in range(10)]
    assert any(shares_of(decision) != shares_of(first) for decision in later)


def test_a_pair_is_remembered_while_there_is_room_for_all():
    crowded = Problem.of_arrays({"v100": 3}, np.ones((6, 1)), pairs=_all_pairs(6, 1), seed=1)
    first = Gandiva().allocate(crowded)
    roomy = replace(crowded, workers=np.array([6.0]), previous=first)
    second = Gandiva().allocate(roomy)
    assert shares_of(second) == {str(job): {"v100": 1.0} for job in range(6)}
    third = Gandiva().allocate(replace(crowded, previous=second, seed=2))
    assert shares_of(third) == shares_of(first)


@pytest.mark.parametrize("problem", NOWHERE)
def test_without_work_or_workers_nothing_is_given(problem):
    decision = Gandiva().allocate(problem)
    assert not decision.shares.any()
    assert decision.objective == 0.0


@given(problems(with_pairs=True), problems(with_pairs=True))
def test_shares_fit_and_nobody_shares_twice(problem, later):
    first = Gandiva().allocate(problem)
    second = Gandiva().allocate(after(first, later))
    for decision in (first, second):
        assert_feasible(decision)
        rows = np.concatenate([decision.first[decision.second >= 0], decision.second[decision.second >= 0]])
        assert len(rows) == len(set(rows.tolist()))


@given(problems(with_pairs=True))
def test_the_same_problem_has_the_same_answer(problem):
    assert same(Gandiva().allocate(problem), Gandiva().allocate(replace(problem)))


def test_draws_the_pairs_that_the_original_draws():
    drawn = 0
    for problem, result in golden("gandiva"):
        together = problem.shareable
        possible = set() if together is None else {*keys_of(together)}
        original = {tuple(pair) for pair in result["pairs"]}
        decision = Gandiva().allocate(problem)
        ours = {(a, b) for a, b in zip(decision.first.tolist(), decision.second.tolist(), strict=True) if b >= 0}
        assert ours == original & possible
        assert decision.objective >= result["objective"] - 1e-9
        drawn += len(ours)
    assert drawn > 100
