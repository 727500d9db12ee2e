from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.allocate.pairs import Pairs
from fairway.allocate.policies.fifo import Fifo
from fairway.allocate.problem import Problem
from tests.allocate.policies.small_problems import (
    after,
    assert_whole,
    golden,
    problems,
    same,
    shares_of,
    without,
)

VARIANTS = [Fifo(agnostic, space_sharing) for agnostic in (False, True) for space_sharing in (False, True)]


def test_each_job_takes_the_fastest_type_with_room():
    problem = Problem.of_arrays({"v100": 1, "p100": 1, "k80": 1}, [[4.0, 3.0, 1.0]] * 4)
    decision = Fifo().allocate(problem)
    assert shares_of(decision) == {"0": {"v100": 1.0}, "1": {"p100": 1.0}, "2": {"k80": 1.0}}
    # sum (n - i) * rate / fastest = 4 * 1 + 3 * 3/4 + 2 * 1/4
    assert decision.objective == pytest.approx(4 + 9 / 4 + 2 / 4)
    assert (decision.sense, decision.gap) == ("max", None)


def test_equally_fast_types_are_taken_in_the_order_of_the_cluster():
    problem = Problem.of_arrays({"v100": 1, "p100": 1}, [[2.0, 2.0], [2.0, 2.0]])
    assert shares_of(Fifo().allocate(problem)) == {"0": {"v100": 1.0}, "1": {"p100": 1.0}}


def test_the_first_job_without_room_stops_the_queue():
    problem = Problem.of_arrays({"v100": 4}, [[1.0]] * 3, scale_factors=[2, 4, 1])
    assert shares_of(Fifo().allocate(problem)) == {"0": {"v100": 1.0}}


def test_a_job_that_waits_for_the_only_type_it_runs_on_stops_the_queue():
    problem = Problem.of_arrays({"v100": 1, "k80": 1}, [[1.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    assert shares_of(Fifo().allocate(problem)) == {"0": {"v100": 1.0}}


def test_a_job_that_can_run_nowhere_is_passed_over():
    problem = Problem.of_arrays({"v100": 2}, [[0.0], [1.0], [1.0]], scale_factors=[1, 4, 1])
    assert shares_of(Fifo().allocate(problem)) == {"2": {"v100": 1.0}}


def test_the_agnostic_variant_draws_from_all_types_with_room():
    drawn = set()
    for seed in range(40):
        problem = Problem.of_arrays({"v100": 1, "p100": 1, "k80": 1}, [[4.0, 3.0, 0.0]], seed=seed)
        drawn |= {*shares_of(Fifo(agnostic=True).allocate(problem))["0"]}
    assert drawn == {"v100", "p100"}


def test_the_agnostic_variant_leaves_running_jobs_where_they_are():
    problem = Problem.of_arrays({"v100": 2, "p100": 2, "k80": 2}, np.ones((8, 3)), seed=1)
    first = Fifo(agnostic=True).allocate(problem)
    for gone in range(6):
        later = replace(without(problem, gone), previous=first, seed=2)
        second = shares_of(Fifo(agnostic=True).allocate(later))
        for job, shares in shares_of(first).items():
            assert job == str(gone) or second[job] == shares
        assert second["6"] == shares_of(first)[str(gone)]


def test_a_running_job_moves_when_its_type_is_gone():
    first = Fifo(agnostic=True).allocate(Problem.of_arrays({"v100": 1, "k80": 0}, [[1.0, 1.0]]))
    later = Problem.of_arrays({"k80": 1}, [[1.0]])
    assert shares_of(Fifo(agnostic=True).allocate(after(first, later))) == {"0": {"k80": 1.0}}


def test_the_decision_of_another_policy_is_not_kept():
    problem = Problem.of_arrays({"v100": 1, "k80": 1}, [[1.0, 1.0]], seed=3)
    for column in ((1.0, 0.0), (0.0, 1.0)):
        other = replace(Fifo(agnostic=True).allocate(problem), policy="allox", shares=np.array([column]))
        assert same(Fifo(agnostic=True).allocate(after(other, problem)), Fifo(agnostic=True).allocate(problem))


def _three_jobs(gain: float, **others: object) -> Problem:
    """One worker, three jobs; the last two of them each keep half of `gain` beside the first."""
    pairs = Pairs(np.array([0, 0]), np.array([1, 2]), np.full((2, 1, 2), gain / 2))
    return replace(Problem.of_arrays({"v100": 1}, [[1.0]] * 3, pairs=pairs), **others)


@pytest.mark.parametrize("agnostic", [False, True])
def test_a_job_without_room_joins_a_running_one_when_that_is_worth_it(agnostic):
    policy = Fifo(agnostic=agnostic, space_sharing=True)
    assert shares_of(policy.allocate(_three_jobs(1.6))) == {"0,1": {"v100": 1.0}}
    assert shares_of(policy.allocate(_three_jobs(1.5))) == {"0": {"v100": 1.0}}
    assert shares_of(Fifo(agnostic=agnostic).allocate(_three_jobs(1.6))) == {"0": {"v100": 1.0}}


def test_nobody_overtakes_by_sharing():
    pairs = Pairs(np.array([0]), np.array([2]), np.ones((1, 1, 2)))
    problem = Problem.of_arrays({"v100": 1}, [[1.0]] * 3, pairs=pairs)
    assert shares_of(Fifo(space_sharing=True).allocate(problem)) == {"0": {"v100": 1.0}}


def test_two_that_share_go_on_and_the_one_left_over_keeps_the_workers():
    policy = Fifo(agnostic=True, space_sharing=True)
    first = policy.allocate(_three_jobs(1.6))
    assert shares_of(policy.allocate(_three_jobs(1.2, previous=first))) == {"0,1": {"v100": 1.0}}
    alone = Problem.of_arrays({"v100": 1}, [[1.0]] * 2, ids=["2", "1"])
    assert shares_of(policy.allocate(after(first, alone))) == {"1": {"v100": 1.0}}
    assert shares_of(Fifo(agnostic=True).allocate(_three_jobs(1.6, previous=first))) == {"0": {"v100": 1.0}}


@given(st.sampled_from(VARIANTS), problems(with_pairs=True))
def test_the_jobs_that_run_are_the_first_that_can(policy, problem):
    runs = policy.allocate(problem).job_shares.sum(axis=1)[problem.can_run]
    assert (np.diff(runs) <= 0).all()


@given(problems())
def test_the_agnostic_variant_changes_nothing_while_nothing_changes(problem):
    policy = Fifo(agnostic=True)
    first = policy.allocate(problem)
    assert same(policy.allocate(replace(problem, previous=first, seed=problem.seed + 1)), first)


@pytest.mark.parametrize(("name", "policy"), [("fifo_perf", Fifo()), ("fifo_packed", Fifo(space_sharing=True))])
def test_decides_as_the_original_does_unless_that_lets_a_job_overtake(name, policy):
    alike = 0
    for problem, result in golden(name):
        original = {
            job: {kind: share for kind, share in shares.items() if share > 0}
            for job, shares in result["allocation"].items()
            if any(shares.values())
        }
        runs = {int(job) for jobs in original for job in jobs.split(",")}
        if runs == set(range(len(runs))):
            assert shares_of(policy.allocate(problem)) == original
            alike += 1
    assert alike > 50


def test_never_overbooks_where_the_original_does():
    for problem, _ in golden("isolated"):
        assert_whole(Fifo(agnostic=True).allocate(problem))
