from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.allocate.policies.allox import AlloX
from fairway.allocate.problem import Problem
from fairway.errors import InputError
from tests.allocate.policies.small_problems import (
    NOWHERE,
    after,
    assert_whole,
    golden,
    problems,
    same,
    shares_of,
    without,
)


def test_on_one_worker_the_shortest_job_runs_first():
    problem = Problem.of_arrays({"v100": 1}, [[1.0], [1.0], [2.0]], steps_left=[5, 3, 2], elapsed=[7, 0, 0])
    decision = AlloX().allocate(problem)
    assert shares_of(decision) == {"2": {"v100": 1.0}}
    # Done after 1, 1 + 3 and 1 + 3 + 5 seconds, and the first has waited for 7.
    assert (decision.objective, decision.sense, decision.gap) == (1 + 4 + 9 + 7, "min", 0.0)
    assert decision.details["assignment"] == [["0", "v100", 1], ["1", "v100", 2], ["2", "v100", 3]]
    assert decision.details["workers"] == [["0", 0, 1], ["1", 0, 2], ["2", 0, 3]]


def test_a_job_may_rather_wait_for_a_fast_type_than_run_on_a_slow_one():
    problem = Problem.of_arrays({"v100": 1, "k80": 1}, [[10.0, 1.0], [10.0, 1.0]], steps_left=[10, 20])
    decision = AlloX().allocate(problem)
    assert shares_of(decision) == {"0": {"v100": 1.0}}
    assert decision.objective == 1 + 3


def test_workers_are_counted_through_the_types_in_the_order_of_their_names():
    problem = Problem.of_arrays({"v100": 1, "k80": 2}, [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], steps_left=[1, 1, 1])
    assert sorted(AlloX().allocate(problem).details["workers"]) == [["0", 2, 1], ["1", 0, 1], ["2", 1, 1]]


def test_running_jobs_hold_their_workers():
    problem = Problem.of_arrays({"v100": 1, "k80": 1}, [[1.0, 0.4]] * 4, steps_left=[5, 6, 8, 1])
    first = AlloX().allocate(without(problem, 3))
    # 5 / 0.4 s on the k80; 6 s before 8 s on the v100.
    assert shares_of(first) == {"0": {"k80": 1.0}, "1": {"v100": 1.0}}
    assert first.objective == pytest.approx(12.5 + 2 * 6 + 8)
    second = AlloX().allocate(after(first, problem))
    # Job 3 is the shortest by far, but came too late.
    assert shares_of(second) == shares_of(first)
    assert {row[0] for row in second.details["assignment"]} == {*shares_of(first)}


def test_when_a_job_leaves_the_next_one_takes_its_worker():
    problem = Problem.of_arrays({"v100": 2}, [[1.0]] * 4, steps_left=[5, 6, 9, 8])
    first = AlloX().allocate(problem)
    assert shares_of(first) == {"0": {"v100": 1.0}, "1": {"v100": 1.0}}
    second = AlloX().allocate(after(first, without(problem, 0)))
    assert shares_of(second) == {"1": {"v100": 1.0}, "3": {"v100": 1.0}}
    # 6 s in place 1 of its worker; 8 s before 9 s on the other.
    assert second.objective == 6 + 8 * 2 + 9


def test_gangs_of_one_layer_start_together():
    problem = Problem.of_arrays({"v100": 4}, [[1.0]] * 3, scale_factors=[2, 2, 4], steps_left=[3, 3, 10])
    decision = AlloX().allocate(problem)
    assert shares_of(decision) == {"0": {"v100": 1.0}, "1": {"v100": 1.0}}
    assert decision.objective == 2 * 3 + 2 * 3 + 10
    assert decision.gap == pytest.approx(0.0, abs=1e-6)


def test_the_agnostic_variant_sees_one_rate_per_job():
    problem = Problem.of_arrays({"v100": 1, "k80": 1}, [[10.0, 2.0], [10.0, 2.0]], steps_left=[12, 12])
    decision = AlloX(agnostic=True).allocate(problem)
    assert len(shares_of(decision)) == 2
    assert decision.objective == pytest.approx(2 + 2)


def test_a_job_that_does_not_say_how_long_it_is_is_refused():
    with pytest.raises(InputError, match="'0' has no steps_left, which policy 'allox' needs"):
        AlloX().allocate(Problem.of_arrays({"v100": 1}, [[1.0]]))


@pytest.mark.parametrize("agnostic", [False, True])
@pytest.mark.parametrize("problem", NOWHERE)
def test_without_work_or_workers_nothing_is_given(agnostic, problem):
    decision = AlloX(agnostic).allocate(problem)
    assert not decision.shares.any()
    assert decision.objective == 0.0


@given(st.booleans(), problems(), problems())
def test_gangs_are_whole_and_nothing_is_overbooked(agnostic, problem, later):
    first = AlloX(agnostic).allocate(problem)
    assert_whole(first)
    assert_whole(AlloX(agnostic).allocate(after(first, later)))


@given(st.booleans(), problems(), problems())
def test_every_job_has_its_own_workers_in_one_position(agnostic, problem, later):
    first = AlloX(agnostic).allocate(problem)
    for decision in (first, AlloX(agnostic).allocate(after(first, later))):
        places = decision.details["workers"]
        assert len({(worker, position) for _, worker, position in places}) == len(places)
        assert len({(job, worker) for job, worker, _ in places}) == len(places)
        sizes = Counter(job for job, _, _ in places)
        sizes_wanted = dict(zip(decision.ids, decision.problem.scale_factors.tolist(), strict=True))
        assert all(count == sizes_wanted[job] for job, count in sizes.items())
        assert {job for job, _, _ in decision.details["assignment"]} == {*sizes}


@given(st.booleans(), problems())
def test_exactly_the_jobs_at_the_front_of_all_their_queues_run(agnostic, problem):
    decision = AlloX(agnostic).allocate(problem)
    front: dict[int, int] = {}
    for _, worker, position in decision.details["workers"]:
        front[worker] = max(front.get(worker, 0), position)
    waiting = {job for job, worker, position in decision.details["workers"] if position < front[worker]}
    everyone = {job for job, _, _ in decision.details["workers"]}
    assert {*shares_of(decision)} == everyone - waiting


@given(st.booleans(), problems())
def test_a_running_job_is_never_preempted(agnostic, problem):
    first = AlloX(agnostic).allocate(problem)
    second = AlloX(agnostic).allocate(after(first, problem))
    assert shares_of(first).items() <= shares_of(second).items()


@given(st.booleans(), problems())
def test_the_same_problem_has_the_same_answer(agnostic, problem):
    assert same(AlloX(agnostic).allocate(problem), AlloX(agnostic).allocate(replace(problem)))


def test_the_sum_is_the_known_optimum():
    known = 0
    for problem, result in golden("allox"):
        decision = AlloX().allocate(problem)
        assert decision.objective == pytest.approx(result["optimum"], rel=1e-9)
        assert decision.gap == 0.0
        assert_whole(decision)
        known += 1
    assert known >= 20


def _many(jobs: int, scale_factors: np.ndarray) -> Problem:
    draw = np.random.default_rng(0)
    speeds = draw.choice([[1.0, 0.6, 0.2], [1.0, 1.2, 0.3], [1.0, 2.2, 1.3], [1.0, 0.5, 0.1]], jobs)
    return Problem.of_arrays(
        {"v100": 36, "p100": 36, "k80": 36},
        speeds * draw.uniform(0.9, 1.1, (jobs, 3)),
        scale_factors=scale_factors,
        steps_left=draw.lognormal(8.0, 1.5, jobs),
    )


@pytest.mark.parametrize("gangs", [False, True])
def test_a_thousand_jobs_take_no_time_to_speak_of(gangs):
    sizes = np.random.default_rng(1).choice([1, 1, 1, 1, 2, 4, 8], 1000) if gangs else np.ones(1000)
    AlloX().allocate(_many(5, sizes[:5]))  # compiled before the clock starts
    problem = _many(1000, sizes)
    start = time.perf_counter()
    decision = AlloX().allocate(problem)
    assert time.perf_counter() - start < 5.0  # 0.05 s and 0.1 s when nothing else runs
    assert decision.gap is not None
    assert decision.gap <= (2e-3 if gangs else 0.0)
    assert_whole(decision)
