"""What classes of jobs become with a part of their time, and whether shares are enough, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from fairway.allocate.kernels.classes import Classes
from fairway.allocate.kernels.curves import Multiple
from fairway.allocate.kernels.levels import meets
from fairway.allocate.problem import Problem

PROBLEM = Problem.of_arrays({"a": 4, "b": 2}, [[4.0, 2.0], [1.0, 0.0]], scale_factors=[2.0, 1.0])
CLASSES = Classes.of(PROBLEM, [], space_sharing=False)


def test_shares_meet_a_demand_to_what_counts_as_exact() -> None:
    shares = np.array([[0.5, 0.25], [0.5, 0.5]])  # rates 2.5 and 0.5, in the order of the classes
    rates = np.einsum("ij,ij->i", CLASSES.rates, shares)
    assert sorted(rates.tolist()) == [0.5, 2.5]
    assert meets(CLASSES, shares, rates)
    assert meets(CLASSES, shares, rates * (1 + 1e-12))
    assert not meets(CLASSES, shares, rates + np.array([0.0, 1e-3]))
    assert not meets(CLASSES, shares, rates + np.array([1e-3, 0.0]))


def test_a_job_with_half_of_its_time_makes_half_the_rate_on_half_the_workers() -> None:
    half = CLASSES.within(np.array([0.5, 0.25]), np.array([True, False]))
    np.testing.assert_allclose(half.rates, CLASSES.rates * [[0.5, 0.0], [0.25, 0.0]])
    np.testing.assert_allclose(half.scale_factors, CLASSES.scale_factors * [0.5, 0.25])
    assert half.capacity.tolist() == [4.0, 0.0]


def test_a_multiple_of_the_level_is_reached_by_the_slowest() -> None:
    curve = Multiple(np.array([2.0, 0.0, 4.0]))
    rates, rise = curve.at(3.0)
    assert (rates.tolist(), rise.tolist()) == ([6.0, 0.0, 12.0], [2.0, 0.0, 4.0])
    assert curve.reached(np.array([6.0, 0.0, 4.0])) == pytest.approx(1.0)
