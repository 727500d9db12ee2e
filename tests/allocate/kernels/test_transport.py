from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from fairway.allocate.kernels.transport import cheapest_transport


@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(1, 5))
def test_the_cost_is_that_of_the_best_assignment_unit_by_unit(seed, sources, places):
    draw = np.random.default_rng(seed)
    units = draw.integers(1, 5, sources)
    room = draw.integers(1, 5, places)
    room[0] = units.sum()  # there is room for everything
    costs = draw.integers(0, 20, (sources, places)).astype(float)
    costs[:, 1:][draw.random((sources, places - 1)) < 0.3] = np.inf
    sent, prices = cheapest_transport(costs, units, room)

    assert (sent >= 0).all()
    assert (sent.sum(axis=1) == units).all()
    assert (sent.sum(axis=0) <= room).all()
    assert np.isfinite(costs[sent > 0]).all()
    total = costs[sent > 0] @ sent[sent > 0]
    single = costs[np.ix_(np.repeat(np.arange(sources), units), np.repeat(np.arange(places), room))]
    rows, columns = linear_sum_assignment(single)
    assert total == pytest.approx(single[rows, columns].sum())

    # The prices prove it: each unit is where it is cheapest, and room that is left costs nothing.
    assert (prices <= 0).all()
    assert (prices[sent.sum(axis=0) < room] == 0).all()
    least = (costs - prices).min(axis=1)
    assert total == pytest.approx(units @ least + prices @ room)
