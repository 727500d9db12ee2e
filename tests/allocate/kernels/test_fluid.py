"""Prices of the fluid model, against duals worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from fairway.allocate.demand import Demand
from fairway.allocate.kernels.fluid import fluid_prices


def demand(rates: list[list[float]], work: list[float], pairs: object = None, scale: float = 1.0) -> Demand:
    together = None if pairs is None else np.array(pairs, dtype=float)
    return Demand(np.array(rates), np.full(len(rates), scale), np.array(work), together)


def test_where_workers_are_left_a_step_costs_its_own_time_and_a_worker_nothing() -> None:
    found = fluid_prices(demand([[2.0, 1.0]], [4.0]), np.array([10.0, 10.0]))
    assert found is not None
    assert found.steps == pytest.approx([0.5])
    assert found.workers == pytest.approx([0.0, 0.0])


def test_a_worker_of_a_type_that_is_full_costs_what_the_next_best_type_takes_longer() -> None:
    # 0.97 fast workers do 1.94 of the 10 steps; the rest runs at 1 step per second: a second on a fast worker saves
    # another job 2 seconds on a slow one, less the second itself.
    found = fluid_prices(demand([[2.0, 1.0]], [10.0]), np.array([1.0, 100.0]))
    assert found is not None
    assert found.steps == pytest.approx([1.0])
    assert found.workers == pytest.approx([1.0, 0.0])


def test_two_that_share_do_more_than_fits_alone_and_the_prices_make_both_worth_it() -> None:
    # Alone: k = 1 + p. In pairs: 2 * 0.8 k = 2 + p. So p = 2/3 and k = 5/3.
    found = fluid_prices(demand([[1.0]], [12.0], [[[[0.8, 0.8]]]]), np.array([10.0]))
    assert found is not None
    assert found.steps == pytest.approx([5 / 3])
    assert found.workers == pytest.approx([2 / 3])
    assert found.load == pytest.approx(12 / (9.7 * 1.6))


def test_more_work_than_can_be_done_has_the_prices_of_the_most_that_can() -> None:
    much, most = (fluid_prices(demand([[2.0, 1.0]], [work]), np.array([1.0, 1.0])) for work in (50.0, 2.9))
    assert much is not None
    assert most is not None
    assert much.load > 1 > most.load
    assert much.workers == pytest.approx(most.workers)


def test_nothing_that_can_run_has_no_prices() -> None:
    assert fluid_prices(demand([[1.0]], [1.0], scale=4.0), np.array([2.0])) is None
    assert fluid_prices(demand([[1.0]], [0.0]), np.array([2.0])) is None
