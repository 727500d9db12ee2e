"""Jobs that ask for parts of workers, under every policy: nothing is overbooked, and parts count as parts."""

from __future__ import annotations

import numpy as np
import pytest

from fairway.allocate.policies import POLICIES
from fairway.allocate.problem import Problem
from fairway.allocate.registry import policy_of
from fairway.cluster import Cluster
from fairway.jobs import Job

NAMES = sorted(POLICIES)


def random_problem(seed: int) -> Problem:
    draw = np.random.default_rng(seed)
    jobs = [
        Job(
            f"j{number}",
            {"a100": float(draw.uniform(1, 4)), "v100": float(draw.uniform(0.5, 2))},
            scale_factor=int(draw.integers(1, 3)),
            steps_left=float(draw.uniform(10, 1000)),
            elapsed=float(draw.uniform(0, 100)),
            slo_seconds=float(draw.uniform(100, 5000)),
            part=float(draw.choice([1.0, 0.5, 0.1, 0.333, 0.75])),
        )
        for number in range(int(draw.integers(1, 12)))
    ]
    return Problem.of(Cluster({"a100": 2, "v100": 3}, {"a100": 3.0, "v100": 1.0}), jobs)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_overbooked(name: str) -> None:
    for seed in range(12):
        problem = random_problem(seed)
        decided = policy_of(name).allocate(problem)
        assert (decided.shares >= -1e-9).all()
        held = problem.scale_factors[decided.first] @ decided.shares
        assert (held <= problem.workers + 1e-6).all(), (name, seed)
        assert (decided.job_shares.sum(axis=1) <= 1 + 1e-6).all(), (name, seed)


@pytest.mark.parametrize("name", ["max-min-fairness", "water-filling", "proportional", "isolated", "nash-welfare"])
def test_four_halves_have_all_of_the_time_of_two_workers(name: str) -> None:
    jobs = [Job(f"j{number}", {"a100": 1.0}, steps_left=10.0, part=0.5) for number in range(4)]
    decided = policy_of(name).allocate(Problem.of(Cluster({"a100": 2}), jobs))
    assert decided.job_shares.sum(axis=1) == pytest.approx(np.ones(4), abs=1e-4)


def test_the_same_in_whole_workers_is_the_same_decision() -> None:
    """A cluster of halves, and jobs that ask for halves, is one of whole workers with another unit."""
    draw = np.random.default_rng(5)
    rates = draw.uniform(1, 4, (6, 2))
    shares = []
    for workers, part in ((4, 1.0), (2, 0.5)):
        jobs = [Job(f"j{n}", {"a": float(a), "b": float(b)}, part=part) for n, (a, b) in enumerate(rates)]
        problem = Problem.of(Cluster({"a": workers // 2, "b": workers}), jobs)
        shares.append(policy_of("max-min-fairness").allocate(problem).throughputs)
    assert shares[0] == pytest.approx(shares[1], rel=1e-6)
