"""The search for the rate that a scheduler holds: close to the edge, and honest where there is none."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.sim.held_rate import PRECISION, RateSearch, capacity, held_rate
from fairway.sim.scenarios import SCENARIOS
from fairway.sim.serving import ServingOptions
from fairway.sim.serving_workload import ServingRun, ServingWorkload


@given(edge=st.floats(0.05, 2000), guess=st.floats(1, 100))
def test_the_edge_is_between_what_is_held_and_what_is_not(edge: float, guess: float) -> None:
    tried = []

    def in_time(rate: float) -> float:
        tried.append(rate)
        return 1.0 if rate <= edge else 0.9

    held, lost = held_rate(in_time, 0.99, guess)
    assert held <= edge < lost <= held * (1 + PRECISION)
    assert len(tried) == len(set(tried)) < 24


def test_a_rate_that_is_always_or_never_held_is_told() -> None:
    assert held_rate(lambda _: 1.0, 0.99, 1.0) == (2.0**11, math.inf)
    assert held_rate(lambda _: 0.5, 0.99, 1.0).rate == 0.0


def test_the_capacity_is_that_of_the_batches_that_save_most() -> None:
    # By hand: 8 workers over the least times per request of the three stages, 484.31/32 + 106.852/32 + 66.642/32 ms.
    assert capacity(SCENARIOS["loki-traffic"]()) == pytest.approx(8 / (0.48431 / 32 + 0.106852 / 32 + 0.066642 / 32))
    # Without batches there is one time for each stage: 0.996 s of work for a request of the four workflows.
    assert capacity(SCENARIOS["compass-edge"]()) == pytest.approx(5.02, abs=0.01)


def test_a_search_holds_the_rate_that_it_finds_and_not_the_next_one() -> None:
    run = ServingRun(ServingWorkload("loki-traffic", requests=120), "front", ServingOptions(seed=1))
    found = RateSearch(run, 0.9)()
    assert found.rate is not None
    assert found.tried[found.rate] >= 0.9
    above = min(rate for rate, hits in found.tried.items() if hits < 0.9)
    assert found.rate < above <= found.rate * (1 + PRECISION)
    assert (found.scheduler, found.seed) == ("front", 1)
