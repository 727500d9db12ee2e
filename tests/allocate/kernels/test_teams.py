"""How a level is divided over teams: by hand, and water filling over trees against an independent iteration."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway import allocate
from fairway.allocate.arrays import FloatArray
from fairway.allocate.kernels.classes import Classes
from fairway.allocate.kernels.filling import _fill_by_prices, _fill_by_programs, fill
from fairway.allocate.kernels.program import Program
from fairway.allocate.kernels.teams import Teams, team_features
from fairway.allocate.problem import Problem
from fairway.jobs import Entity
from tests.allocate.problems import random_problem, with_teams
from tests.allocate.references import filled_amounts, team_growth

NO_CAPS = 1e9


def tree_of(problem: Problem) -> tuple[Classes, Teams]:
    features = [problem.proportional_throughputs, *team_features(problem)]
    classes = Classes.of(problem, features, space_sharing=False)
    return classes, Teams(classes, flat=False)


def divided(problem: Problem, level: float, caps: dict[int, float] | None = None) -> FloatArray:
    """What each job holds at a level, with caps for some of them."""
    classes, teams = tree_of(problem)
    limits = np.full(len(problem), NO_CAPS)
    for job, cap in (caps or {}).items():
        limits[job] = cap
    return teams.amounts(level, classes.of_jobs(limits))[classes.member]


def jobs_in(teams: list[int], entities: dict[str, Entity], weights: list[float] | None = None) -> Problem:
    # Every job is different, so that each is a class of its own.
    problem = Problem.of_arrays({"a": 10}, 1.0 + np.arange(len(teams))[:, None], weights=weights)
    return replace(problem, team=np.array(teams), entities=entities)


def test_teams_and_jobs_without_one_share_by_weight() -> None:
    problem = jobs_in([-1, 0, 0, 1], {"a": Entity(weight=2.0), "b": Entity(weight=3.0)}, weights=[5.0, 1.0, 3.0, 7.0])
    assert divided(problem, 2.0) == pytest.approx([10.0, 1.0, 3.0, 6.0])


def test_in_a_fifo_team_the_first_job_comes_first() -> None:
    problem = jobs_in([0, 0, 0], {"a": Entity(weight=2.0, policy="fifo")})
    assert divided(problem, 2.0) == pytest.approx([4.0, 0.0, 0.0])
    assert divided(problem, 2.0, {0: 1.0}) == pytest.approx([1.0, 3.0, 0.0])
    assert divided(problem, 2.0, {0: 1.0, 1: 1.5}) == pytest.approx([1.0, 1.5, 1.5])


def test_what_a_job_cannot_take_flows_to_its_siblings_by_weight() -> None:
    problem = jobs_in([0, 0, 0, -1], {"a": Entity(weight=6.0)}, weights=[1.0, 2.0, 3.0, 1.0])
    assert divided(problem, 1.0) == pytest.approx([1.0, 2.0, 3.0, 1.0])
    assert divided(problem, 1.0, {2: 1.5}) == pytest.approx([1.5, 3.0, 1.5, 1.0])
    assert divided(problem, 1.0, {0: 0.1, 2: 1.0}) == pytest.approx([0.1, 4.9, 1.0, 1.0])


def test_a_team_in_a_team_divides_its_part() -> None:
    entities = {"a": Entity(weight=4.0), "b": Entity(weight=3.0, policy="fifo", parent="a")}
    problem = jobs_in([0, 1, 1], entities)  # a: job 0 (weight 1) and team b (weight 3)
    assert divided(problem, 1.0) == pytest.approx([1.0, 3.0, 0.0])
    assert divided(problem, 1.0, {1: 1.0}) == pytest.approx([1.0, 1.0, 2.0])
    assert divided(problem, 1.0, {1: 1.0, 2: 1.0}) == pytest.approx([2.0, 1.0, 1.0])


def test_a_fifo_team_serves_the_team_whose_first_job_came_first() -> None:
    entities = {"a": Entity(policy="fifo"), "b": Entity(parent="a"), "c": Entity(parent="a")}
    problem = jobs_in([2, 1, 2, 1], entities)
    assert divided(problem, 1.0) == pytest.approx([0.5, 0.0, 0.5, 0.0])
    assert divided(problem, 1.0, {0: 0.1, 2: 0.1}) == pytest.approx([0.1, 0.4, 0.1, 0.4])


def test_teams_without_jobs_do_not_count() -> None:
    entities = {"a": Entity(), "empty": Entity(weight=9.0), "inside": Entity(parent="empty")}
    classes, teams = tree_of(jobs_in([0, 0], entities))
    amounts = teams.amounts(3.0, np.full(len(classes), NO_CAPS))
    assert amounts.sum() == pytest.approx(3.0)
    assert teams.root_level(amounts) == pytest.approx(3.0)


def test_identical_jobs_of_a_team_hold_the_same_and_together_its_amount() -> None:
    problem = replace(Problem.of_arrays({"a": 4}, np.ones((5, 1))), team=np.zeros(5, dtype=np.int64))
    problem = replace(problem, entities={"a": Entity(weight=2.0)})
    classes, teams = tree_of(problem)
    assert len(classes) == 1
    assert teams.amounts(1.0, np.array([NO_CAPS])) == pytest.approx([0.4])
    assert teams.full_level(np.array([0.6])) == pytest.approx(1.5)


@given(st.integers(0, 10_000), st.integers(1, 3), st.floats(0.01, 100.0), st.floats(1.0, 3.0))
def test_amounts_grow_with_the_level_and_stay_below_their_caps(
    seed: int, depth: int, level: float, factor: float
) -> None:
    problem = with_teams(random_problem(seed, jobs=8, weights=(0.2, 5.0)), seed, depth=depth)
    classes, teams = tree_of(problem)
    caps = np.random.default_rng(seed).uniform(0.0, 3.0, len(classes))
    low, high = teams.amounts(level, caps), teams.amounts(level * factor, caps)
    assert (low <= high + 1e-12).all()
    assert (high <= caps).all()
    assert teams.amounts(teams.full_level(caps), caps) == pytest.approx(caps)


@given(
    st.integers(0, 10_000),
    st.integers(1, 3),
    st.sampled_from([(1,), (1, 2, 4)]),
    st.sampled_from([0.0, 0.3]),
    st.sampled_from([1, 1, 2]),
    st.booleans(),
)
def test_filling_a_tree_agrees_with_the_reference(
    seed: int, depth: int, gangs: tuple[int, ...], zeros: float, copies: int, agnostic: bool
) -> None:
    problem = random_problem(seed, jobs=5, gangs=gangs, zeros=zeros, weights=(0.2, 5.0), workers=(0, 4), copies=copies)
    problem = with_teams(problem.agnostic() if agnostic else problem, seed, depth=depth)
    if not problem.can_run.any():
        return
    expected = filled_amounts(problem, team_growth(problem))
    classes, teams = tree_of(problem)
    unit = classes.of_jobs(problem.proportional_throughputs) / classes.scale_factors
    by_prices = _fill_by_prices(classes, teams, unit)
    assert by_prices is not None
    for solution, amounts in (by_prices, _fill_by_programs(Program(classes, unit), teams, unit)):
        for found in (amounts, solution.rates(classes) / unit):
            each = np.where(classes.member >= 0, found[classes.member], 0.0)
            assert each == pytest.approx(expected, rel=2e-5, abs=2e-6)
        assert solution.gap <= 1e-6


@given(st.integers(0, 10_000), st.integers(1, 2))
def test_filling_a_tree_with_pairs_agrees_with_the_reference(seed: int, depth: int) -> None:
    problem = with_teams(random_problem(seed, jobs=5, pairs=True, gangs=(1, 2), weights=(0.2, 5.0)), seed, depth=depth)
    expected = filled_amounts(problem, team_growth(problem), sharing=True)
    features = [problem.proportional_throughputs, *team_features(problem)]
    classes = Classes.of(problem, features, space_sharing=True)
    _, amounts = fill(classes, Teams(classes, flat=False))
    assert amounts[classes.member] == pytest.approx(expected, rel=2e-5, abs=2e-6)


@given(st.integers(0, 10_000), st.integers(1, 3), st.booleans())
def test_the_objective_is_the_lowest_amount_per_weight_at_the_top_of_the_tree(
    seed: int, depth: int, sharing: bool
) -> None:
    problem = random_problem(seed, jobs=6, zeros=0.2, pairs=True, weights=(0.2, 5.0), workers=(0, 4))
    problem = with_teams(problem, seed, depth=depth)
    if not problem.can_run.any():
        return
    decision = allocate("hierarchical:space-sharing" if sharing else "hierarchical", problem)
    names = list(problem.entities)
    held: dict[str | int, float] = {}
    for job in np.flatnonzero(problem.can_run).tolist():
        amount = problem.scale_factors[job] * decision.throughputs[job] / problem.proportional_throughputs[job]
        if problem.team[job] < 0:
            held[job] = amount / problem.weights[job]
        else:
            top = names[problem.team[job]]
            while (parent := problem.entities[top].parent) is not None:
                top = parent
            held[top] = held.get(top, 0.0) + amount / problem.entities[top].weight
    assert decision.objective == pytest.approx(min(held.values()), rel=1e-5)
