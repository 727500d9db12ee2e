"""The decision as a policy sees it: the engine's clock turned into what every job has waited, done and has left."""

from __future__ import annotations

import numpy as np
import pytest

from fairway.allocate.allocation import Allocation
from fairway.allocate.policies.finish_time_fairness import FinishTimeFairness
from fairway.allocate.policies.max_min_fairness import MaxMinFairness
from fairway.allocate.policy import Policy
from fairway.allocate.problem import Problem
from fairway.cluster import Cluster
from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.messages import JobArrived, RoundBegan
from fairway.engine.training.options import EngineOptions
from fairway.jobs import Job


class Seen(Policy):
    """A policy that keeps what it was asked."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def allocate(self, problem: Problem) -> Allocation:
        self.problems.append(problem)
        return MaxMinFairness().allocate(problem)


def test_a_policy_is_told_how_long_each_job_has_been_there_and_what_is_left_to_its_deadline() -> None:
    policy = Seen()
    engine = TrainingEngine(Cluster({"v100": 1}), policy, EngineOptions(round_seconds=100.0))
    engine.handle(1000.0, [JobArrived(Job("first", {"v100": 1.0}, steps_left=1e6), deadline=5000.0)])
    engine.handle(1000.0, [RoundBegan()])
    engine.handle(1040.0, [JobArrived(Job("second", {"v100": 1.0}, steps_left=1e6))])
    engine.handle(1100.0, [RoundBegan()])
    first, second = policy.problems
    assert first.elapsed.tolist() == [0.0]
    assert second.elapsed.tolist() == [100.0, 60.0]
    assert first.slo_seconds[0] == 4000.0
    assert second.slo_seconds[0] == 3900.0
    assert np.isnan(second.slo_seconds[1])
    # What it did in 40 s alone, and in 60 s in which its share would have been half of the worker; the other did none.
    assert second.isolated_elapsed.tolist() == pytest.approx([40.0 + 60.0 * 2, 0.0])


def test_finish_time_fairness_lets_the_job_run_that_has_waited_longer() -> None:
    """Both have as much to do, and the time that the first has waited makes it later than the second."""
    policy = FinishTimeFairness()
    engine = TrainingEngine(Cluster({"v100": 1}), policy, EngineOptions(round_seconds=100.0))
    engine.handle(0.0, [JobArrived(Job("runs", {"v100": 1.0}, steps_left=1e6))])
    engine.handle(0.0, [RoundBegan(), JobArrived(Job("waited", {"v100": 1.0}, steps_left=1000.0))])
    engine.handle(99.0, [JobArrived(Job("new", {"v100": 1.0}, steps_left=1000.0))])
    engine.handle(100.0, [RoundBegan()])
    assert engine.allocation is not None
    problem, shares = engine.allocation.problem, engine.allocation.throughputs
    assert problem.ids == ("runs", "waited", "new")
    assert problem.elapsed.tolist() == [100.0, 100.0, 1.0]
    assert shares[1] > shares[2] * 1.01
