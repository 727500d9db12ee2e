"""The decision in one loop against the linear program, and where it leaves the decision to others."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from fairway.allocate.arrays import FloatArray
from fairway.allocate.kernels.raising import raise_alone

GAP = 1e-8


def drawn(seed: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Rates, how many jobs, sizes of gangs, workers and demands, drawn by chance."""
    draw = np.random.default_rng(seed)
    jobs, types = int(draw.integers(1, 30)), int(draw.integers(1, 5))
    rates = draw.uniform(0.1, 10.0, (jobs, types)) * (draw.random((jobs, types)) > 0.2)
    rates[:, 0] = np.maximum(rates[:, 0], 0.5)
    capacity = draw.integers(8, 20, types).astype(float)
    counts, scale = draw.integers(1, 4, jobs).astype(float), draw.choice([1.0, 1.0, 2.0, 4.0], jobs)
    return rates, counts, scale, capacity, draw.uniform(0.1, 3.0, jobs)


def limits(counts: FloatArray, scale: FloatArray, types: int) -> FloatArray:
    """The left side of the time of each job and the workers of each type, columns job by job and a last one of 0."""
    jobs = len(counts)
    rows = np.zeros((jobs + types, jobs * types + 1))
    for i in range(jobs):
        rows[i, i * types : (i + 1) * types] = 1.0
        for j in range(types):
            rows[jobs + j, i * types + j] = counts[i] * scale[i]
    return rows


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("warm", [False, True])
def test_the_level_and_the_most_work_at_it_are_those_of_linear_programs(seed: int, warm: bool) -> None:
    rates, counts, scale, capacity, demand = drawn(seed)
    jobs, types = rates.shape
    before: FloatArray = np.zeros(types)
    if warm:
        before += np.random.default_rng(seed).uniform(0.0, 2.0, types)
    found, level, bound, shares, prices = raise_alone(rates, counts, scale, capacity, demand, before, GAP, False)
    if seed == 22 and not warm:  # the search for the prices comes to its end before the bounds have met
        assert not found
        assert bound > level * (1 + 1e-6)
        return
    assert found

    rows, most = limits(counts, scale, types), np.concatenate([np.ones(jobs), capacity])
    gained = np.zeros((jobs, jobs * types + 1))
    for i in range(jobs):
        gained[i, i * types : (i + 1) * types] = -rates[i]
    gained[:, -1] = demand
    objective = np.zeros(jobs * types + 1)
    objective[-1] = -1.0
    best = linprog(objective, np.vstack([rows, gained]), np.concatenate([most, np.zeros(jobs)]))
    assert level == pytest.approx(-best.fun, rel=1e-6)
    assert level <= bound <= level * (1 + 1e-6)
    assert (prices >= 0).all()

    have = np.einsum("ij,ij->i", rates, shares)
    assert (have >= level * demand * (1 - 1e-6)).all()
    assert (shares >= 0).all()
    assert (shares.sum(axis=1) <= 1 + 1e-9).all()
    assert ((counts * scale) @ shares <= capacity * (1 + 1e-9)).all()
    least = np.maximum(level * demand, rates.max(axis=1) / 1e3)
    work = np.concatenate([((counts / least)[:, None] * rates).ravel(), [0.0]])
    kept = np.concatenate([most, -level * demand * (1 - 1e-9)])
    spent = linprog(-work, np.vstack([rows, gained * (np.arange(jobs * types + 1) < jobs * types)]), kept)
    assert (counts / least) @ have == pytest.approx(-spent.fun, rel=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_bare_it_ends_at_the_level(seed: int) -> None:
    rates, counts, scale, capacity, demand = drawn(seed)
    none = np.zeros(len(capacity))
    bare, spent = (raise_alone(rates, counts, scale, capacity, demand, none, GAP, each) for each in (True, False))
    assert bare[:3] == spent[:3]
    assert counts @ np.einsum("ij,ij->i", rates, bare[3]) <= counts @ np.einsum("ij,ij->i", rates, spent[3]) * (
        1 + 1e-6
    )


def test_without_workers_or_demands_others_decide() -> None:
    rates, one = np.ones((2, 1)), np.ones(2)
    for capacity, demand in ((np.zeros(1), one), (np.ones(1), np.zeros(2))):
        assert not raise_alone(rates, one, one, capacity, demand, np.zeros(1), GAP, False)[0]


def test_types_without_workers_have_no_price_and_no_shares() -> None:
    found, level, _, shares, prices = raise_alone(
        np.array([[5.0, 1.0], [5.0, 2.0]]),
        np.ones(2),
        np.ones(2),
        np.array([0.0, 1.0]),
        np.ones(2),
        np.zeros(2),
        GAP,
        True,
    )
    assert found
    # With t of the time for the first, t = 2 (1 - t).
    assert level == pytest.approx(2 / 3)
    assert shares == pytest.approx(np.array([[0.0, 2 / 3], [0.0, 1 / 3]]))
    assert prices == pytest.approx([0.0, 2 / 3])
