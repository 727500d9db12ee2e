"""The linear programs against plain ones over single jobs, and their two ways to cope with many pairs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.allocate.arrays import FloatArray
from fairway.allocate.kernels import program as program_module
from fairway.allocate.kernels.classes import Classes
from fairway.allocate.kernels.program import Optimum, Program
from fairway.allocate.problem import Problem
from tests.allocate.problems import random_problem
from tests.allocate.references import Reference

seeds = st.integers(0, 10_000)


def sharing_problem(seed: int, *, copies: int = 1) -> Problem:
    return random_problem(
        seed, jobs=6, pairs=True, gangs=(1, 2), zeros=0.1, weights=(0.5, 2.0), copies=copies, workers=(0, 4)
    )


def demand_of(problem: Problem) -> FloatArray:
    return problem.weights * problem.proportional_throughputs / problem.scale_factors


def level_of(classes: Classes, **limits: int) -> Optimum:
    demand = classes.of_jobs(demand_of(classes.problem))
    return Program(classes, **limits).maximise_level(np.zeros(len(classes)), demand)


def sum_of(classes: Classes, base: FloatArray | None = None, **limits: int) -> Optimum | None:
    assert classes.pairs is not None
    values, pair_values = classes.rates, classes.pairs.rates.sum(axis=2)
    return Program(classes, **limits).maximise_sum(values, pair_values, base)


@given(seeds, st.sampled_from([1, 3]))
def test_the_highest_level_is_that_of_the_plain_program(seed: int, copies: int) -> None:
    problem = sharing_problem(seed, copies=copies)
    if not problem.can_run.any():
        return
    classes = Classes.of(problem, [demand_of(problem)], space_sharing=True)
    best = Reference(problem, sharing=True).highest_level(np.zeros(len(problem)), demand_of(problem))
    assert level_of(classes).value == pytest.approx(best, rel=1e-7)


@given(seeds, st.sampled_from([1, 3]))
def test_the_highest_sum_is_that_of_the_plain_program(seed: int, copies: int) -> None:
    problem = sharing_problem(seed, copies=copies)
    classes = Classes.of(problem, [], space_sharing=True)
    if classes.pairs is None:
        return
    reference = Reference(problem, sharing=True)
    base = 0.3 * problem.isolated_throughputs
    for minimum in (None, base, 20 * base):
        found = sum_of(classes, None if minimum is None else classes.of_jobs(minimum))
        best = reference.highest_sum(reference.rate.sum(axis=0), minimum)
        assert (found is None) == (best is None)
        if found is not None:
            assert found.value == pytest.approx(best, rel=1e-7)


@given(seeds)
def test_bringing_in_pairs_as_they_pay_is_the_same_as_all_at_once(seed: int) -> None:
    problem = sharing_problem(seed)
    classes = Classes.of(problem, [], space_sharing=True, merge=False)
    if classes.pairs is None:
        return
    at_once, one_by_one = level_of(classes), level_of(classes, whole=0)
    assert one_by_one.value == pytest.approx(at_once.value, rel=1e-8)
    assert one_by_one.bound == pytest.approx(one_by_one.value, rel=1e-7)
    base = classes.of_jobs(0.5 * problem.isolated_throughputs)
    for minimum in (None, base, 30 * base):
        all_pairs, some_pairs = sum_of(classes, minimum), sum_of(classes, minimum, whole=0)
        assert (all_pairs is None) == (some_pairs is None)
        if all_pairs is not None and some_pairs is not None:
            assert some_pairs.value == pytest.approx(all_pairs.value, rel=1e-8)


@given(seeds)
def test_pruning_reports_a_bound_that_holds(seed: int) -> None:
    problem = random_problem(seed, jobs=9, pairs=True, workers=(1, 2))
    classes = Classes.of(problem, [demand_of(problem)], space_sharing=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(program_module, "PARTNERS", 1)
        pruned, pruned_sum = level_of(classes, prune=0, whole=0), sum_of(classes, prune=0)
    best, best_sum = level_of(classes), sum_of(classes)
    assert pruned_sum is not None
    assert best_sum is not None
    for some, every in ((pruned, best), (pruned_sum, best_sum)):
        assert some.value <= every.value * (1 + 1e-8)
        assert some.bound >= every.value * (1 - 1e-8)


def test_pruning_leaves_something_out_and_says_so() -> None:
    gaps = []
    for seed in range(20):
        problem = random_problem(seed, jobs=9, pairs=True, workers=(1, 2))
        classes = Classes.of(problem, [demand_of(problem)], space_sharing=True)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(program_module, "PARTNERS", 1)
            pruned = level_of(classes, prune=0)
        gaps.append(level_of(classes).value - pruned.value)
    assert max(gaps) > 1e-3  # otherwise the test above would show nothing


def test_a_program_is_solved_again_with_other_demands() -> None:
    problem = sharing_problem(7)
    classes = Classes.of(problem, [demand_of(problem)], space_sharing=True)
    program = Program(classes)
    demand, none = classes.of_jobs(demand_of(problem)), np.zeros(len(classes))
    first = program.maximise_level(none, demand)
    assert program.maximise_level(none, 2 * demand).value == pytest.approx(first.value / 2, rel=1e-9)
    assert program.maximise_level(0.5 * first.value * demand, demand).value == pytest.approx(first.value / 2, rel=1e-7)
    total = program.maximise_sum(classes.rates, None)
    assert total is not None
    assert program.maximise_level(none, demand).value == pytest.approx(first.value, rel=1e-9)


def test_rates_that_cannot_be_had_are_no_error() -> None:
    problem = sharing_problem(7)
    classes = Classes.of(problem, [], space_sharing=True)
    assert Program(classes).maximise_sum(classes.rates, None, 2 * classes.fastest) is None


@given(seeds)
def test_prices_and_worths_prove_the_optimum(seed: int) -> None:
    problem = random_problem(seed, jobs=6, gangs=(1, 2), weights=(0.5, 2.0))
    demand = demand_of(problem)
    classes = Classes.of(problem, [demand], space_sharing=False)
    needed = classes.of_jobs(demand)
    optimum = Program(classes).maximise_level(np.zeros(len(classes)), needed)
    # One unit of the level is worth what all jobs' demands for it are worth.
    assert (classes.counts * optimum.worth) @ needed == pytest.approx(1.0, rel=1e-6)
    # Each job takes what pays best: value of its rate less the price of its workers; what is left prices its time.
    profit = optimum.worth[:, None] * classes.rates - classes.scale_factors[:, None] * optimum.prices
    bound = classes.counts @ np.maximum(profit.max(axis=1), 0.0) + optimum.prices @ classes.capacity
    assert bound == pytest.approx(optimum.value, rel=1e-6)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("sharing", [False, True])
def test_prices_are_what_one_more_worker_adds(seed: int, sharing: bool) -> None:
    problem = random_problem(seed, jobs=20, pairs=True, workers=(1, 2))
    classes = Classes.of(problem, [demand_of(problem)], space_sharing=sharing)

    def best(workers: FloatArray) -> tuple[float, float]:
        other = replace(classes, capacity=workers)
        values = None if other.pairs is None else other.pairs.rates.sum(axis=2)
        total = Program(other).maximise_sum(other.rates, values)
        assert total is not None
        return level_of(other).value, total.value

    level = level_of(classes)
    total = Program(classes).maximise_sum(
        classes.rates, None if classes.pairs is None else classes.pairs.rates.sum(axis=2)
    )
    assert total is not None
    assert level.prices.any()
    assert total.prices.any()
    for column in range(3):
        step = np.zeros(3)
        step[column] = 1e-3
        higher, lower = best(classes.capacity + step), best(classes.capacity - step)
        for found, more, less in zip((level, total), higher, lower, strict=True):
            assert (more - found.value) / 1e-3 - 1e-5 <= found.prices[column] <= (found.value - less) / 1e-3 + 1e-5
