"""Raising a level along a curve: finish-time fairness against bisection, and the kernel of prices against programs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.allocate.arrays import FloatArray
from fairway.allocate.kernels.classes import Classes
from fairway.allocate.kernels.curves import Multiple
from fairway.allocate.kernels.levels import raise_level
from fairway.allocate.kernels.solution import Solution
from fairway.allocate.policies.finish_time_fairness import FinishTimeFairness
from fairway.allocate.problem import Problem
from tests.allocate.problems import random_problem
from tests.allocate.references import Reference

seeds = st.integers(0, 10_000)


@dataclass(frozen=True)
class Power:
    """Everyone's demand is a convex power of the level."""

    needed: FloatArray
    exponent: float

    def at(self, level: float) -> tuple[FloatArray, FloatArray]:
        return self.needed * level**self.exponent, self.needed * self.exponent * level ** (self.exponent - 1)

    def reached(self, rates: FloatArray) -> float:
        return float((rates / self.needed).min()) ** (1 / self.exponent)


def demand_of(problem: Problem) -> FloatArray:
    return problem.weights * problem.proportional_throughputs / problem.scale_factors


@given(seeds, st.booleans(), st.booleans(), st.sampled_from([1, 3]))
def test_finish_time_fairness_finds_the_least_ratio(seed: int, sharing: bool, weighted: bool, copies: int) -> None:
    problem = random_problem(
        seed, jobs=4, copies=copies, pairs=True, gangs=(1, 2), zeros=0.2, weights=(0.5, 2.0), workers=(0, 4)
    )
    if not problem.can_run.any():
        return
    decision = FinishTimeFairness(space_sharing=sharing, weighted=weighted).allocate(problem)
    work = problem.steps_left * (problem.weights if sharing or weighted else 1.0)
    with np.errstate(divide="ignore"):
        alone = problem.isolated_elapsed + problem.steps_left / problem.isolated_throughputs
    best = Reference(problem, sharing=sharing).lowest_ratio(work, problem.elapsed, alone)
    assert decision.objective == pytest.approx(best, rel=1e-6)
    assert decision.optimal
    runs = problem.can_run
    ratios = (problem.elapsed + work / np.where(runs, decision.throughputs, np.nan)) / alone
    assert ratios[runs].max() == pytest.approx(decision.objective, rel=1e-9)


@given(seeds)
def test_jobs_with_nothing_left_do_not_count(seed: int) -> None:
    problem = random_problem(seed, jobs=6)
    done = np.arange(6) % 2 == 0
    decision = FinishTimeFairness().allocate(replace(problem, steps_left=np.where(done, 0.0, problem.steps_left)))
    assert (decision.job_shares[done] == 0).all()
    assert decision.optimal


@given(seeds, st.booleans(), st.sampled_from([1.0, 2.0, 5.0]))
def test_along_a_power_the_level_is_the_root_of_the_straight_one(seed: int, sharing: bool, exponent: float) -> None:
    problem = random_problem(seed, jobs=6, pairs=True, gangs=(1, 2), weights=(0.5, 2.0))
    classes = Classes.of(problem, [demand_of(problem)], space_sharing=sharing)
    needed = classes.of_jobs(demand_of(problem))
    straight = raise_level(classes, Multiple(needed))
    along = raise_level(classes, Power(needed, exponent))
    assert along.value**exponent == pytest.approx(straight.value, rel=1e-7)
    assert (along.rates(classes) >= straight.value * needed * (1 - 1e-6)).all()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("sharing", [False, True])
def test_prices_along_a_curve_are_what_one_more_worker_adds(seed: int, sharing: bool) -> None:
    problem = random_problem(seed, jobs=20, pairs=True, workers=(1, 2))
    classes = Classes.of(problem, [demand_of(problem)], space_sharing=sharing)
    needed = classes.of_jobs(demand_of(problem))

    def solve(workers: FloatArray) -> Solution:
        return raise_level(replace(classes, capacity=workers), Power(needed, 2.0))

    here = solve(classes.capacity)
    assert here.prices.any()
    for column in range(3):
        step = np.zeros(3)
        step[column] = 1e-3
        more = (solve(classes.capacity + step).value - here.value) / 1e-3
        less = (here.value - solve(classes.capacity - step).value) / 1e-3
        assert more - 1e-4 <= here.prices[column] <= less + 1e-4


@pytest.mark.parametrize("seed", range(6))
def test_prices_of_finish_time_fairness_are_what_one_more_worker_takes_off(seed: int) -> None:
    problem = random_problem(seed, jobs=12, workers=(1, 3))
    problem = replace(problem, elapsed=np.zeros(12), isolated_elapsed=np.zeros(12))
    decision = FinishTimeFairness().allocate(problem)
    assert decision.prices is not None
    assert decision.prices.any()
    alone = problem.isolated_elapsed + problem.steps_left / problem.isolated_throughputs
    for column in range(3):
        ratios = []
        for change in (1e-3, -1e-3):
            workers = problem.workers.copy()
            workers[column] += change  # the yardstick `alone` stays what it was
            reference = Reference(problem, workers=workers)
            ratios.append(reference.lowest_ratio(problem.steps_left, problem.elapsed, alone))
        more, less = (decision.objective - ratios[0]) / 1e-3, (ratios[1] - decision.objective) / 1e-3
        assert more - 1e-4 <= decision.prices[column] <= less + 1e-4
