"""The price kernel against linear programs, on ordinary and on nasty problems."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.allocate.arrays import FloatArray
from fairway.allocate.kernels.classes import Classes
from fairway.allocate.kernels.curves import Multiple
from fairway.allocate.kernels.market import Market
from fairway.allocate.problem import Problem
from tests.allocate.problems import NASTY, random_problem
from tests.allocate.references import Reference


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    problem = random_problem(
        draw(st.integers(0, 10_000)),
        jobs=draw(st.sampled_from([1, 2, 5, 20])),
        types=draw(st.sampled_from([1, 2, 3, 8, 12])),
        rates=draw(st.sampled_from(NASTY)),
        zeros=draw(st.sampled_from([0.0, 0.4])),
        gangs=draw(st.sampled_from([(1,), (1, 2, 4, 8)])),
        weights=draw(st.sampled_from([(1.0, 1.0), (1e-6, 1e6)])),
        workers=draw(st.sampled_from([(1, 1), (0, 3), (1, 100_000)])),
        copies=draw(st.sampled_from([1, 1, 4])),
    )
    return problem.agnostic() if draw(st.booleans()) else problem


def market_of(problem: Problem, demand: FloatArray) -> tuple[Market, FloatArray]:
    classes = Classes.of(problem, [demand], space_sharing=False)
    return Market(classes), classes.of_jobs(demand)


def fair_demand(problem: Problem) -> FloatArray:
    return problem.weights * problem.proportional_throughputs / problem.scale_factors


@given(problems())
def test_the_stretch_is_the_optimum_of_the_linear_program(problem: Problem) -> None:
    if not problem.can_run.any():
        return
    market, demand = market_of(problem, fair_demand(problem))
    stretched = market.stretch(demand)
    best = Reference(problem).highest_level(np.zeros(len(problem)), fair_demand(problem))
    assert stretched.level == pytest.approx(best, rel=1e-6)
    assert stretched.level <= stretched.bound <= stretched.level * (1 + 1e-8)


@given(problems())
def test_the_shares_fit_and_give_everyone_the_stretched_demand(problem: Problem) -> None:
    if not problem.can_run.any():
        return
    market, demand = market_of(problem, fair_demand(problem))
    stretched = market.stretch(demand)
    shares, classes = market.shares(stretched), market.classes
    assert (shares >= 0).all()
    assert (shares.sum(axis=1) <= 1 + 1e-9).all()
    assert (shares[classes.rates == 0] == 0).all()
    assert (classes.counts * classes.scale_factors @ shares <= classes.capacity * (1 + 1e-8)).all()
    assert ((classes.rates * shares).sum(axis=1) >= stretched.level * demand * (1 - 1e-8)).all()


@given(problems())
def test_the_budgets_prove_the_bound(problem: Problem) -> None:
    if not problem.can_run.any():
        return
    market, demand = market_of(problem, fair_demand(problem))
    stretched = market.stretch(demand)
    if stretched.budgets is None:
        assert stretched.bound == pytest.approx((market.classes.fastest / demand).min())
    else:
        assert stretched.budgets.sum() == pytest.approx(1.0)
        assert (stretched.budgets >= 0).all()
        assert market.cost(stretched.budgets, demand * stretched.bound) >= 1 - 1e-9


@given(problems(), st.sampled_from([0.3, 0.999, 1.001, 3.0]))
def test_with_enough_the_search_may_stop_early_but_never_misjudges(problem: Problem, part: float) -> None:
    if not problem.can_run.any():
        return
    market, demand = market_of(problem, fair_demand(problem))
    best = market.stretch(demand).level
    early = market.stretch(demand * best, enough=part)
    assert early.level <= 1 + 1e-8
    assert early.bound >= 1 - 1e-8
    assert (early.level >= part * (1 - 1e-8)) == (part < 1)


@given(problems(), st.integers(0, 100))
def test_the_prices_of_other_demands_are_only_a_start(problem: Problem, seed: int) -> None:
    if not problem.can_run.any():
        return
    market, demand = market_of(problem, fair_demand(problem))
    fresh = market.stretch(demand).level
    market.stretch(demand * np.random.default_rng(seed).uniform(0.1, 10.0, len(demand)))
    assert market.stretch(demand).level == pytest.approx(fresh, rel=1e-8)


@pytest.mark.parametrize("seed", range(8))
def test_prices_are_what_one_more_worker_adds(seed: int) -> None:
    problem = random_problem(seed, jobs=16, types=4, gangs=(1, 2), weights=(0.8, 1.2), workers=(2, 3))
    demand = fair_demand(problem)
    classes = Classes.of(problem, [demand], space_sharing=False)
    market, needed = Market(classes), classes.of_jobs(demand)
    stretched = market.stretch(needed)
    prices = market.prices(stretched.budgets, Multiple(needed), stretched.level)
    assert prices.any()

    def level(workers: FloatArray) -> float:
        return Market(replace(classes, capacity=workers)).stretch(needed).level

    for column in range(4):
        step = np.zeros(4)
        step[column] = 1e-3
        more = (level(classes.capacity + step) - stretched.level) / 1e-3
        less = (stretched.level - level(classes.capacity - step)) / 1e-3
        # The level is concave in the workers: at a kink, any price between the two slopes is one.
        assert more - 1e-5 <= prices[column] <= less + 1e-5


def test_jobs_that_demand_nothing_take_nothing() -> None:
    problem = random_problem(3, jobs=6)
    demand = np.array([1.0, 0.0, 1.0, 0.0, 0.0, 2.0])
    market, needed = market_of(problem, demand)
    shares = market.classes.expand(market.shares(market.stretch(needed)))
    assert (shares[demand == 0] == 0).all()
    assert (shares[demand > 0].sum(axis=1) > 0).all()


def test_the_prices_of_a_similar_decision_save_questions() -> None:
    asked = {"cold": 0, "warm": 0}
    for seed in range(12):
        problem = random_problem(seed, jobs=400, workers=(20, 60), weights=(0.5, 2.0))
        market, demand = market_of(problem, fair_demand(problem))
        raised = market.stretch(demand)
        prices = market.prices(raised.budgets, Multiple(demand), raised.bound)
        for start, known in (("cold", None), ("warm", prices)):
            classes = market.classes
            one_left = Market(replace(classes, counts=np.where(np.arange(len(classes)) == 0, 0.0, 1.0)), known)
            one_left.stretch(demand)
            asked[start] += len(one_left._asked)
    assert asked["warm"] < asked["cold"]
