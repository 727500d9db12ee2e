"""When requests arrive: as drawn by others, and with the rates and bursts asked for."""

from __future__ import annotations

import numpy as np
import pytest

from fairway.sim import arrivals


def test_clients_draw_as_the_reference_simulation_does() -> None:
    """For client c: t = c·I/4, then 1,000 times {emit (t, c); t += exponential(I)}; sorted; then the ingresses."""
    draws, interval, found = np.random.RandomState(42), 2.0, []
    for client in range(4):
        time = client * interval / 4
        for _ in range(1000):
            found.append((time, client))
            time += draws.exponential(interval)
    expected = sorted(found)[:1000]
    part = draws.random_sample(1000)
    made = arrivals.from_clients(1000, 2.0, 4, 42)
    assert made.time.tolist() == pytest.approx([time for time, _ in expected])
    assert made.workflow.tolist() == [client for _, client in expected]
    assert made.ingress.tolist() == part.tolist()


def test_gaps_have_the_mean_and_the_variation_asked_for() -> None:
    shares = np.array([3.0, 1.0])
    for made, variation in (
        (arrivals.uniform(4000, 8.0, shares, 0), 0.0),
        (arrivals.poisson(20000, 8.0, shares, 0), 1.0),
        (arrivals.gamma(20000, 8.0, 4.0, shares, 0), 4.0),
    ):
        gaps = np.diff(made.time)
        assert gaps.mean() == pytest.approx(1 / 8, rel=0.1)
        assert gaps.std() / gaps.mean() == pytest.approx(variation, rel=0.1, abs=1e-9)
        assert (made.workflow == 0).mean() == pytest.approx(0.75, abs=0.03)
        assert ((made.ingress >= 0) & (made.ingress < 1)).all()


def test_a_seed_gives_the_same_arrivals_and_another_gives_others() -> None:
    first, second, other = (arrivals.poisson(50, 1.0, np.ones(2), seed) for seed in (1, 1, 2))
    assert first.time.tolist() == second.time.tolist()
    assert first.time.tolist() != other.time.tolist()


def test_a_trace_keeps_its_own_pace_or_takes_the_one_asked_for() -> None:
    time, workflow, work = np.array([10.0, 12.0, 20.0]), np.array([0, 1, 0]), np.array([1.0, 2.0, 3.0])
    own = arrivals.replayed(time, workflow, work, None, 0)
    assert own.time.tolist() == [0.0, 2.0, 10.0]
    fast = arrivals.replayed(time, workflow, work, 2.0, 0)
    assert fast.time.tolist() == pytest.approx([0.0, 0.2, 1.0])
    assert fast.work.tolist() == [1.0, 2.0, 3.0]
