"""Water filling, by prices and by programs, against an iteration with a program per job to see if it is saturated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.allocate.arrays import FloatArray
from fairway.allocate.kernels.classes import Classes
from fairway.allocate.kernels.filling import _fill_by_prices, _fill_by_programs, fill
from fairway.allocate.kernels.program import Program
from fairway.allocate.kernels.teams import Teams
from fairway.allocate.problem import Problem
from tests.allocate.problems import NASTY, random_problem
from tests.allocate.references import filled_amounts, flat_growth

TAME = [kind for kind in NASTY if kind != "wide rates"]


@st.composite
def problems(draw: st.DrawFn, *, pairs: bool = False) -> Problem:
    problem = random_problem(
        draw(st.integers(0, 10_000)),
        jobs=draw(st.integers(1, 6)),
        types=draw(st.integers(1, 4)),
        rates=draw(st.sampled_from(TAME)),
        zeros=draw(st.sampled_from([0.0, 0.3])),
        gangs=draw(st.sampled_from([(1,), (1, 2, 4)])),
        weights=draw(st.sampled_from([(1.0, 1.0), (0.2, 5.0)])),
        workers=draw(st.sampled_from([(1, 4), (0, 3), (1, 20)])),
        copies=draw(st.sampled_from([1, 1, 3])),
        pairs=pairs,
    )
    return problem.agnostic() if draw(st.booleans()) else problem


def classes_of(problem: Problem, *, sharing: bool = False) -> tuple[Classes, Teams, FloatArray]:
    classes = Classes.of(problem, [problem.proportional_throughputs, problem.weights], space_sharing=sharing)
    unit = classes.of_jobs(problem.proportional_throughputs) / classes.scale_factors
    return classes, Teams(classes, flat=True), unit


def of_each_job(classes: Classes, amounts: FloatArray) -> FloatArray:
    return np.where(classes.member >= 0, amounts[classes.member], 0.0)


@given(problems())
def test_prices_programs_and_the_reference_agree(problem: Problem) -> None:
    if not problem.can_run.any():
        return
    expected = filled_amounts(problem, flat_growth(problem))
    classes, teams, unit = classes_of(problem)
    by_prices = _fill_by_prices(classes, teams, unit)
    assert by_prices is not None
    for solution, amounts in (by_prices, _fill_by_programs(Program(classes, unit), teams, unit)):
        assert of_each_job(classes, amounts) == pytest.approx(expected, rel=2e-5, abs=2e-8)
        assert of_each_job(classes, solution.rates(classes) / unit) == pytest.approx(expected, rel=2e-5, abs=2e-8)
        level = (of_each_job(classes, amounts) / problem.weights)[problem.can_run].min()
        assert solution.value == pytest.approx(level, rel=1e-6)
        assert solution.gap <= 1e-6


@given(problems(pairs=True))
def test_with_pairs_the_programs_agree_with_the_reference(problem: Problem) -> None:
    if not problem.can_run.any():
        return
    expected = filled_amounts(problem, flat_growth(problem), sharing=True)
    classes, teams, unit = classes_of(problem, sharing=True)
    solution, amounts = fill(classes, teams)
    assert of_each_job(classes, amounts) == pytest.approx(expected, rel=2e-5, abs=2e-8)
    assert (of_each_job(classes, solution.rates(classes) / unit) >= expected * (1 - 2e-5) - 2e-8).all()


@given(problems())
def test_the_shares_fit(problem: Problem) -> None:
    if not problem.can_run.any():
        return
    classes, teams, _ = classes_of(problem)
    solution, _ = fill(classes, teams)
    assert (solution.alone >= 0).all()
    assert (solution.alone.sum(axis=1) <= 1 + 1e-8).all()
    assert (classes.counts * classes.scale_factors @ solution.alone <= classes.capacity * (1 + 1e-7)).all()


@given(problems(), st.integers(0, 100))
def test_other_prices_to_start_from_change_nothing(problem: Problem, seed: int) -> None:
    if not problem.can_run.any():
        return
    classes, teams, _ = classes_of(problem)
    start = np.random.default_rng(seed).uniform(0.0, 1.0, len(problem.types))
    cold, warm = fill(classes, teams)[1], fill(classes, teams, start)[1]
    assert warm == pytest.approx(cold, rel=1e-6, abs=1e-9)


def test_what_max_min_fairness_leaves_unused_is_filled_in() -> None:
    # Job 0 can use only the one slow worker, which bounds the lowest level; jobs 1 and 2 share the two fast ones.
    problem = Problem.of_arrays({"slow": 1, "fast": 2}, [[1.0, 0.0], [1.0, 4.0], [1.0, 4.0]], scale_factors=[1, 2, 1])
    classes, teams, _ = classes_of(problem)
    solution, _ = fill(classes, teams)
    used = classes.counts * classes.scale_factors @ solution.alone
    assert used == pytest.approx([1.0, 2.0])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("scarce", [False, True])
def test_prices_are_what_one_more_worker_adds_to_the_lowest_level(seed: int, scarce: bool) -> None:
    # With few workers they bound the lowest level, with many it is what some job can reach at most.
    workers = (2, 3) if scarce else (3, 6)
    problem = random_problem(seed, jobs=16 if scarce else 8, types=4, gangs=(1, 2), weights=(0.8, 1.2), workers=workers)
    classes, teams, _ = classes_of(problem)
    solution, _ = fill(classes, teams)
    assert solution.prices.any() or not scarce
    for column in range(4):
        step = np.zeros(4)
        step[column] = 1e-3
        more = fill(replace(classes, capacity=classes.capacity + step), teams)[0].value - solution.value
        less = solution.value - fill(replace(classes, capacity=classes.capacity - step), teams)[0].value
        assert more / 1e-3 - 1e-4 <= solution.prices[column] <= less / 1e-3 + 1e-4
