"""The objective and the discounts of Nash welfare, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from fairway.allocate.policies.nash_welfare import NashWelfare
from fairway.allocate.problem import Problem


def test_gangs_that_all_run_all_the_time_are_as_many_times_better_off_as_they_are_large() -> None:
    """A gang of two makes its rate, and in proportion one worker would make half of it: both are at level 2."""
    problem = Problem.of_arrays({"a": 4}, [[3.0], [5.0]], scale_factors=[2.0, 2.0])
    found = NashWelfare(undiscounted=True).allocate(problem)
    np.testing.assert_allclose(found.throughputs, [3.0, 5.0], rtol=1e-6)
    assert found.objective == pytest.approx(2.0, rel=1e-6)


def test_the_objective_is_the_weighted_geometric_mean() -> None:
    """Weights share one worker in proportion: 3/4 and 1/4 of what each would have alone, so 0.75^0.75 0.25^0.25."""
    problem = Problem.of_arrays({"a": 1}, [[8.0], [2.0]], weights=[3.0, 1.0])
    found = NashWelfare(undiscounted=True).allocate(problem)
    np.testing.assert_allclose(found.throughputs, [6.0, 0.5], rtol=1e-5)
    assert found.objective == pytest.approx(0.75**0.75 * 0.25**0.25, rel=1e-6)
    assert found.prices is not None


def test_each_pays_for_what_its_presence_takes_from_the_others() -> None:
    """Without either of two equal jobs, the other would have all instead of half: each keeps half of its half."""
    problem = Problem.of_arrays({"a": 1}, [[8.0], [2.0]], ids=["x", "y"])
    found = NashWelfare().allocate(problem)
    assert found.details["discounts"] == {"x": pytest.approx(0.5, rel=1e-4), "y": pytest.approx(0.5, rel=1e-4)}
    np.testing.assert_allclose(found.throughputs, [2.0, 0.5], rtol=1e-4)
    assert found.prices is None


def test_one_that_is_alone_pays_nothing() -> None:
    found = NashWelfare().allocate(Problem.of_arrays({"a": 2}, [[8.0]], ids=["x"]))
    assert found.details["discounts"] == {"x": 1.0}
    np.testing.assert_allclose(found.throughputs, [8.0], rtol=1e-6)
