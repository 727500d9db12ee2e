"""What is left when the level can rise no further: spent on the most work, so that no job can have more for nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway import Problem, policy_of
from fairway.allocate.arrays import FloatArray
from fairway.allocate.check_left_over import left_over
from tests.allocate.problems import NASTY, random_problem
from tests.allocate.references import Reference

seeds = st.integers(0, 10_000)
LEVELS = ("max-min-fairness", "makespan", "finish-time-fairness")


def demands(name: str, problem: Problem, sharing: bool, slack: float) -> FloatArray:
    """The rates that a level a little below that of a bare decision asks for, by the formulas of the policies."""
    bare = policy_of(f"{name}:space-sharing,bare" if sharing else f"{name}:bare").allocate(problem)
    objective = bare.objective * (1 - slack if bare.sense == "max" else 1 + slack)
    if name == "max-min-fairness":
        return objective * problem.weights * problem.proportional_throughputs / problem.scale_factors
    if name == "makespan":
        return problem.steps_left / objective
    work = problem.steps_left * (problem.weights if sharing else 1.0)
    alone = problem.isolated_elapsed + problem.steps_left / problem.isolated_throughputs
    return work / (objective * alone - problem.elapsed)


def test_an_example_by_hand() -> None:
    problem = Problem.of_arrays({"a": 1, "b": 2}, [[1.0, 0.0], [1.0, 4.0], [0.0, 2.0]])
    decision = policy_of("max-min-fairness").allocate(problem)
    # P = 1/3, 3 and 4/3, so that the jobs can have levels of at most 3, 4/3 and 3/2: the second holds the level down,
    # and there are workers for the others to have their most.
    assert decision.objective == pytest.approx(4 / 3)
    assert decision.throughputs == pytest.approx([1.0, 4.0, 2.0])
    bare = policy_of("max-min-fairness:bare").allocate(problem)
    assert bare.objective == pytest.approx(4 / 3)
    assert bare.throughputs[0] < 0.999
    assert policy_of("max-min-fairness").efficient  # type: ignore[attr-defined]
    assert not policy_of("max-min-fairness:bare").efficient  # type: ignore[attr-defined]


@given(seeds, st.sampled_from(LEVELS), st.booleans(), st.sampled_from([1, 3]))
def test_the_level_stands_and_the_work_beyond_it_is_the_most(seed: int, name: str, sharing: bool, copies: int) -> None:
    problem = random_problem(
        seed, jobs=4, copies=copies, pairs=True, gangs=(1, 2), zeros=0.2, weights=(0.5, 2.0), workers=(1, 4)
    )
    if not problem.can_run.all():
        return
    asked = demands(name, problem, sharing, slack=1e-7)
    decision = policy_of(f"{name}:space-sharing" if sharing else name).allocate(problem)
    assert (decision.throughputs >= asked).all()
    reference = Reference(problem, sharing=sharing)
    worth = 1.0 / np.maximum(asked, reference.rate.max(axis=1) / 1e3)
    kept = np.minimum(demands(name, problem, sharing, slack=0.0), decision.throughputs)
    most = reference.highest_sum(worth @ reference.rate, kept * (1 - 1e-9))
    assert most is not None
    assert worth @ decision.throughputs == pytest.approx(most, rel=1e-4)


@given(seeds, st.sampled_from(LEVELS), st.sampled_from(NASTY), st.booleans())
def test_no_job_can_have_more_without_another_having_less(seed: int, name: str, rates: str, sharing: bool) -> None:
    problem = random_problem(
        seed, jobs=6, rates=rates, pairs=True, gangs=(1, 1, 2), zeros=0.1, weights=(0.2, 5.0), workers=(0, 5)
    )
    decision = policy_of(f"{name}:space-sharing" if sharing else name).allocate(problem)
    seen = problem if sharing else replace(problem, pairs=None)
    gains, part = left_over(seen, decision.throughputs)
    assert part <= 1e-6, gains


@pytest.mark.parametrize("name", LEVELS)
def test_a_job_with_nothing_left_to_do_gets_nothing_of_what_is_left(name: str) -> None:
    problem = Problem.of_arrays({"a": 1, "b": 4}, [[1.0, 2.0], [1.0, 2.0]], steps_left=[10.0, 0.0])
    decision = policy_of(name).allocate(problem)
    if name != "max-min-fairness":
        assert decision.throughputs == pytest.approx([2.0, 0.0])


def test_what_is_left_over_is_found() -> None:
    problem = Problem.of_arrays({"a": 2, "b": 1}, [[1.0, 4.0], [2.0, 1.0]])
    gains, part = left_over(problem, np.array([1.0, 1.0]))
    # The first job may have all of b, 4, and the second all of its time on a, 2.
    assert gains == pytest.approx([3 / 4, 1 / 2])
    assert part == pytest.approx(1.25 / (1 / 4 + 1 / 2))
    assert left_over(problem, np.array([4.0, 2.0]))[1] == pytest.approx(0.0, abs=1e-9)
