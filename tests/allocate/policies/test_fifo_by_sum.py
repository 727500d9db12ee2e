"""First in, first out as a sum (Gavel, section 4.2), and what nothing is said of, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from fairway import Prices
from fairway.allocate.policies.fifo import Fifo
from fairway.allocate.problem import Pairs, Problem


@pytest.mark.parametrize("relaxed", [False, True])
def test_the_first_to_come_have_the_workers_they_are_fastest_on(relaxed: bool) -> None:
    """Of three jobs on two workers of a type each, the first counts 3, then 2, then 1 of what it has of its fastest."""
    problem = Problem.of_arrays({"a": 1, "b": 1}, [[4.0, 1.0], [2.0, 2.0], [5.0, 5.0]])
    found = Fifo(relaxed=relaxed).allocate(problem)
    np.testing.assert_allclose(found.throughputs, [4.0, 2.0, 0.0], atol=1e-6)
    assert found.objective == pytest.approx(3.0 + 2.0)


@pytest.mark.parametrize("relaxed", [False, True])
def test_jobs_that_may_share_do_if_that_is_worth_more(relaxed: bool) -> None:
    """Both at nine tenths of their rate count (2 + 1) * 0.9 on one worker; the first alone counts 2."""
    pairs = Pairs(np.array([0]), np.array([1]), np.array([[[3.6, 1.8]]]))
    problem = Problem.of_arrays({"a": 1}, [[4.0], [2.0]], pairs=pairs)
    found = Fifo(space_sharing=True, relaxed=relaxed).allocate(problem)
    np.testing.assert_allclose(found.throughputs, [3.6, 1.8], rtol=1e-6)
    alone = Fifo(relaxed=relaxed).allocate(problem)
    np.testing.assert_allclose(alone.throughputs, [4.0, 0.0], atol=1e-6)


def test_prices_are_those_of_the_documentation() -> None:
    assert Prices() == Prices(cpu=0.034, gpu=0.67)
