"""What an allocation tells about itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway import Allocation, Binding, Pairs, Problem, allocate
from tests.allocate.problems import random_problem


def paired_problem() -> Problem:
    pairs = Pairs(np.array([1, 0]), np.array([2, 2]), np.array([[[2.0, 3.0], [0.5, 0.6]], [[1.0, 1.5], [0.0, 0.0]]]))
    rates = [[4.0, 1.0], [5.0, 2.0], [6.0, 3.0]]
    return Problem.of_arrays({"v100": 2, "k80": 4}, rates, ids=["a", "b", "c"], pairs=pairs)


def paired_allocation() -> Allocation:
    return Allocation(
        policy="by hand",
        problem=paired_problem(),
        first=np.array([0, 1, 2, 1, 0]),
        second=np.array([-1, -1, -1, 2, 2]),
        shares=np.array([[0.5, 0.0], [0.0, 0.25], [0.0, 0.0], [0.25, 0.5], [0.25, 0.0]]),
        objective=1.5,
        sense="max",
    )


def test_a_rate_is_the_sum_over_what_a_job_does_alone_and_in_pairs() -> None:
    allocation = paired_allocation()
    a = 0.5 * 4.0 + 0.25 * 1.0
    b = 0.25 * 2.0 + 0.25 * 2.0 + 0.5 * 0.5
    c = 0.25 * 3.0 + 0.5 * 0.6 + 0.25 * 1.5
    assert allocation.throughputs == pytest.approx([a, b, c])


def test_a_pair_takes_the_time_of_both_and_the_workers_of_one() -> None:
    allocation = paired_allocation()
    assert allocation.job_shares.tolist() == [[0.75, 0.0], [0.25, 0.75], [0.5, 0.5]]
    assert allocation.used.tolist() == [1.0, 0.75]


def test_workers_in_use_count_the_whole_gang() -> None:
    problem = Problem.of_arrays({"v100": 8}, [[1.0], [1.0]], scale_factors=[4, 1])
    allocation = Allocation.of_jobs("by hand", problem, np.array([[0.5], [1.0]]), objective=0.0)
    assert allocation.used.tolist() == [3.0]


def test_bindings_say_what_holds_each_job_back() -> None:
    problem = Problem.of_arrays(
        {"v100": 2, "k80": 2, "old": 1},
        [[4.0, 1.0, 0.0], [4.0, 1.0, 0.0], [4.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 2.0]],
    )
    shares = np.zeros((6, 3))
    shares[0, 0] = 1.0  # all of the time on the best type
    shares[1, 0] = shares[2, 0] = 0.5  # the V100s are all taken
    shares[2, 1] = 0.5
    shares[3, 1] = 0.25  # K80s are free, but the goal does not ask for more
    shares[5, 2] = 0.5
    allocation = Allocation.of_jobs("by hand", problem, shares, objective=0.0)
    assert allocation.bindings == (
        Binding("time"),
        Binding("objective"),  # idle half of the time, and K80s are free
        Binding("capacity", "v100"),
        Binding("objective"),
        Binding("unrunnable"),
        Binding("objective"),
    )


def test_an_idle_job_is_bound_by_the_fastest_of_the_types_that_are_taken() -> None:
    problem = Problem.of_arrays({"v100": 1, "k80": 1}, [[1.0, 5.0], [5.0, 1.0], [4.0, 3.0]])
    allocation = Allocation.of_jobs("by hand", problem, np.array([[0, 1.0], [1.0, 0], [0, 0]]), objective=0.0)
    assert allocation.bindings == (Binding("time"), Binding("time"), Binding("capacity", "v100"))


@given(st.integers(0, 10_000), st.sampled_from(["water-filling", "max-min-fairness", "max-throughput"]))
def test_bindings_are_true(seed: int, policy: str) -> None:
    problem = random_problem(seed, jobs=6, zeros=0.3, gangs=(1, 2), workers=(0, 3))
    allocation = allocate(policy, problem)
    free = problem.workers - allocation.used > 1e-6
    for job, (kind, accelerator) in enumerate(allocation.bindings):
        if kind == "unrunnable":
            assert not problem.can_run[job]
        elif kind == "time":
            assert allocation.throughputs[job] == pytest.approx(problem.fastest[job])
        elif kind == "capacity":
            column = problem.types.index(accelerator or "")
            assert problem.runnable[job, column]
            assert not free[column]
        else:
            assert (problem.runnable[job] & free).any()


def test_water_filling_leaves_nobody_with_the_objective_as_the_only_bound() -> None:
    for seed in range(10):
        allocation = allocate("water-filling", random_problem(seed, jobs=6, weights=(0.5, 2.0)))
        assert {binding.kind for binding in allocation.bindings} <= {"time", "capacity"}


def test_as_a_dictionary_it_names_jobs_and_types_and_leaves_out_what_is_empty() -> None:
    assert paired_allocation().to_dict() == {
        "policy": "by hand",
        "objective": 1.5,
        "sense": "max",
        "allocation": [
            {"jobs": ["a"], "shares": {"v100": 0.5}},
            {"jobs": ["b"], "shares": {"k80": 0.25}},
            {"jobs": ["b", "c"], "shares": {"v100": 0.25, "k80": 0.5}},
            {"jobs": ["a", "c"], "shares": {"v100": 0.25}},
        ],
    }


def test_it_is_optimal_only_with_a_proof() -> None:
    allocation = paired_allocation()
    assert not allocation.optimal
    assert replace(allocation, gap=1e-7).optimal
    assert not replace(allocation, gap=1e-5).optimal


def test_decisions_do_not_keep_all_earlier_ones_alive() -> None:
    problem = random_problem(0)
    first = allocate("max-min-fairness", problem)
    second = allocate("max-min-fairness", replace(problem, previous=first))
    assert second.problem.previous is None
    assert second.objective == pytest.approx(first.objective)


def test_without_any_type_no_job_can_run() -> None:
    problem = Problem.of_arrays({}, np.zeros((2, 0)))
    allocation = Allocation.of_jobs("by hand", problem, np.zeros((2, 0)), objective=0.0)
    assert allocation.bindings == (Binding("unrunnable"), Binding("unrunnable"))
