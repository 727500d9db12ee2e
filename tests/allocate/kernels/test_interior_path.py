"""How the interior-point searches come to their answers: where they stop short of the optimum, to seven digits.

A search that takes other steps ends at another point within its tolerance, so these numbers show whether the scaling,
the start and the steps are what they were: slower steps find the same optimum and nobody would notice but the clock.
"""

from __future__ import annotations

import numpy as np
import pytest

from fairway.allocate.arrays import FloatArray
from fairway.allocate.kernels.interior import highest_level, highest_sum, middle
from fairway.allocate.kernels.interior_pairs import highest_level_with_pairs
from fairway.allocate.problem import Problem
from tests.allocate.problems import random_problem

SEEDS = range(8)


def _problem(seed: int) -> tuple[Problem, FloatArray]:
    problem = random_problem(
        seed, jobs=3 + seed % 5, types=2 + seed % 3, gangs=(1, 2, 4), weights=(0.2, 5.0), pairs=True
    )
    return problem, problem.weights * problem.throughputs.max(axis=1) / problem.scale_factors


def _mark(shares: FloatArray) -> float:
    """One number in which every share counts with another weight."""
    return float((shares.ravel() * np.sqrt(np.arange(2.0, shares.size + 2.0))).sum())


def _levels() -> list[float]:
    found = []
    for seed in SEEDS:
        problem, demand = _problem(seed)
        shares, level = highest_level(problem.throughputs, demand, problem.scale_factors, problem.workers)
        found += [_mark(shares), level]
    return found


def _middles() -> list[float]:
    found = []
    for seed in SEEDS:
        problem, demand = _problem(seed)
        _, level = highest_level(problem.throughputs, demand, problem.scale_factors, problem.workers)
        base = 0.5 * level * demand
        shares = middle(problem.throughputs, base, problem.scale_factors, problem.workers)
        assert shares is not None
        found.append(_mark(shares))
    return found


def _sums() -> list[float]:
    found = []
    for seed in SEEDS:
        problem, _ = _problem(seed)
        gains = problem.throughputs / problem.throughputs.max()
        found.append(_mark(highest_sum(gains, problem.scale_factors, problem.workers)))
    return found


def _with_pairs() -> list[float]:
    found = []
    for seed in SEEDS:
        problem, demand = _problem(seed)
        assert problem.pairs is not None
        shares, level = highest_level_with_pairs(
            problem.throughputs, demand, problem.scale_factors, problem.workers, problem.pairs
        )
        found += [_mark(shares), level]
    return found


ENDS = {
    "levels": [
        4.605357361, 1.417457789, 8.197483906, 1.49464141, 10.61409504, 0.9815744231, 7.984710226, 0.2370959769,
        16.4223631, 0.3742379122, 5.479601454, 0.4983726622, 4.673720752, 0.469845752, 7.586778581, 0.9667319299,
    ],
    "middles": [
        3.669531982, 7.377577603, 9.761837646, 6.561578446, 14.36207386, 4.098512484, 3.870379096, 7.632458835,
    ],
    "sums": [
        5.31551511, 9.970897552, 14.86696514, 9.376589662, 21.30162805, 4.753252194, 4.931542168, 10.31908258,
    ],
    "with pairs": [
        4.733941764, 1.41745776, 8.920890044, 1.494641495, 14.28081711, 0.9815744303, 13.30062899, 0.2370959778,
        21.8114431, 0.374237914, 6.014501846, 0.503359536, 5.747335409, 0.5774018876, 10.75164716, 0.9667319155,
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", list(ENDS))
def test_searches_end_where_they_did(name: str) -> None:
    found = {"levels": _levels, "middles": _middles, "sums": _sums, "with pairs": _with_pairs}[name]()
    assert found == pytest.approx(ENDS[name], rel=1e-7, abs=1e-9)
