"""The compiled simplex against the general solver, on problems drawn by chance and on those that are hard."""

from __future__ import annotations

import numpy as np
import pytest

from fairway.allocate.arrays import FloatArray
from fairway.allocate.kernels.classes import Classes
from fairway.allocate.kernels.program import Program
from fairway.allocate.kernels.simplex import MOST_ROWS, raise_and_spend
from fairway.allocate.kernels.surplus import spend_by_program
from fairway.allocate.pairs import Pairs, PairsOfKinds
from fairway.allocate.problem import Problem


def classes_of(seed: int, *, jobs: int = 40, kinds: int = 8, types: int = 3, gangs: bool = False) -> Classes:
    """Jobs of some kinds, of which every two share with losses drawn by chance."""
    draw = np.random.default_rng(seed)
    kind = draw.integers(1, kinds + 1, jobs)
    rates = draw.uniform(0.1, 10.0, (kinds + 1, types)) * (draw.random((kinds + 1, types)) > 0.2)
    rates[:, 0] = np.maximum(rates[:, 0], 0.5)
    size = np.where(draw.random(kinds + 1) < 0.3, 2, 1) if gangs else np.ones(kinds + 1, dtype=np.int64)
    kept = draw.uniform(0.2, 1.0, (kinds + 1, kinds + 1, types))
    table = np.zeros((kinds + 1, kinds + 1, types, 2))
    for a in range(1, kinds + 1):
        for b in range(1, kinds + 1):
            if size[a] == size[b]:
                table[a, b, :, 0], table[a, b, :, 1] = kept[a, b] * rates[a], kept[b, a] * rates[b]
    problem = Problem.of_arrays(
        dict.fromkeys("abcdef"[:types], 8), rates[kind], scale_factors=size[kind], pairs=PairsOfKinds(kind, table)
    )
    return Classes.of(problem, [], space_sharing=True)


def work(classes: Classes, alone: FloatArray, together: FloatArray) -> FloatArray:
    rates: FloatArray = np.einsum("ij,ij->i", classes.rates, alone)
    assert classes.pairs is not None
    for side, member in enumerate((classes.pairs.first, classes.pairs.second)):
        earned = np.einsum("ij,ij->i", classes.pairs.rates[:, :, side], together)
        np.add.at(rates, member, earned / classes.counts[member])
    return rates


@pytest.mark.parametrize("seed", range(25))
def test_it_finds_the_level_and_the_work_of_the_general_solver(seed: int) -> None:
    classes = classes_of(seed, jobs=5 + 7 * seed, kinds=3 + seed % 12, types=1 + seed % 4, gangs=seed % 2 == 1)
    demand = np.random.default_rng(seed).uniform(0.1, 3.0, len(classes)) if seed % 3 else classes.fastest.copy()
    found = raise_and_spend(classes, demand, spends=True)
    assert found is not None
    program = Program(classes, demand)
    best = program.maximise_level(np.zeros_like(demand), demand)
    assert found.level == pytest.approx(best.value, rel=1e-7)
    assert found.bound == pytest.approx(found.level, rel=1e-7)
    rates = work(classes, found.alone, found.together)
    assert (rates >= found.level * demand * (1 - 1e-7)).all()
    spent = spend_by_program(program, best.value * demand)
    assert spent is not None
    assert spent.together is not None
    least = np.maximum(demand * best.value, classes.fastest / 1e3)
    mine, theirs = (classes.counts @ (each / least) for each in (rates, work(classes, spent.alone, spent.together)))
    assert mine == pytest.approx(theirs, rel=1e-6)


@pytest.mark.parametrize("seed", range(25))
def test_nothing_is_overbooked(seed: int) -> None:
    classes = classes_of(seed, jobs=60, gangs=True)
    found = raise_and_spend(classes, classes.fastest, spends=seed % 2 == 0)
    assert found is not None
    assert classes.pairs is not None
    pairs, gang = classes.pairs, classes.scale_factors
    used = (classes.counts * gang) @ found.alone + gang[pairs.first] @ found.together
    assert (used <= classes.capacity * (1 + 1e-9)).all()
    time = classes.counts * found.alone.sum(axis=1)
    np.add.at(time, pairs.first, found.together.sum(axis=1))
    np.add.at(time, pairs.second, found.together.sum(axis=1))
    assert (time <= classes.counts * (1 + 1e-9)).all()
    assert min(found.alone.min(), found.together.min()) >= 0.0


def test_a_class_that_asks_for_nothing_gets_nothing_of_what_is_left() -> None:
    classes = classes_of(3)
    demand = classes.fastest.copy()
    demand[0] = 0.0
    found = raise_and_spend(classes, demand, spends=True)
    assert found is not None
    assert found.alone[0].max() == 0.0


def test_prices_are_what_one_more_worker_adds_to_the_level() -> None:
    classes = classes_of(5, jobs=80)
    found = raise_and_spend(classes, classes.fastest, spends=True)
    assert found is not None
    for column in range(len(classes.capacity)):
        more = classes_of(5, jobs=80)
        more.capacity[column] += 1e-3
        raised = raise_and_spend(more, classes.fastest, spends=False)
        assert raised is not None
        assert (raised.level - found.level) / 1e-3 == pytest.approx(found.prices[column], rel=1e-3, abs=1e-9)


def test_too_many_classes_are_left_to_the_general_solver() -> None:
    classes = classes_of(0, jobs=400, kinds=MOST_ROWS)
    assert raise_and_spend(classes, classes.fastest, spends=True) is None


def test_kinds_make_the_same_classes_as_all_their_pairs_written_out() -> None:
    problem = classes_of(7, jobs=50, gangs=True).problem
    assert problem.pairs is not None
    written = Pairs(problem.pairs.first, problem.pairs.second, problem.pairs.rates)
    other = Problem.of_arrays(
        dict(zip(problem.types, problem.workers, strict=True)), problem.throughputs,
        scale_factors=problem.scale_factors, pairs=written,
    )  # fmt: skip
    one, two = (Classes.of(each, [], space_sharing=True) for each in (problem, other))
    assert one.pairs is not None
    assert two.pairs is not None
    assert len(one) == len(two)
    assert len(one.pairs) == len(two.pairs)
    assert (one.member[:, None] == one.member).tolist() == (two.member[:, None] == two.member).tolist()
    assert problem.pairs.between(np.array([0, 1]), np.array([5, 9]), 50).shape == (2, 3, 2)
