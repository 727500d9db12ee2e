"""What jobs have done since, and how long that would have taken on an equal share of the cluster; by hand."""

from __future__ import annotations

import numpy as np
import pytest

from fairway.allocate.registry import policy_of
from fairway.cluster import Cluster
from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.messages import JobArrived, JobFinished, RoundBegan
from fairway.engine.training.options import EngineOptions
from fairway.engine.training.progress import advance
from fairway.jobs import Job


def test_steps_and_the_time_of_an_equal_share_are_counted() -> None:
    left = np.array([100.0, 3.0, 50.0, 8.0, 9.0])
    since = np.array([10.0, 10.0, 16.0, 20.0, 25.0])
    rate = np.array([2.0, 1.0, 0.0, 5.0, 5.0])
    scale = np.array([1, 2, 1, 1, 1])
    pooled = np.array([4.0, 2.0, 1.0, 1.0, 1.0])
    isolated = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    done = np.array([1.0, 2.0, 0.0, 0.0, 7.0])
    advance(20.0, left, done, since, rate, scale, pooled, isolated, 6)
    # The first does 20 steps, the second the 3 that it said it has left; the third does not run, and for the others no
    # time passes.
    assert left.tolist() == [80.0, 0.0, 50.0, 8.0, 9.0]
    assert done.tolist() == [21.0, 5.0, 0.0, 0.0, 7.0]
    assert since.tolist() == [20.0, 20.0, 20.0, 20.0, 25.0]
    # 20 steps at 4 / max(5 jobs, 6 workers), and 3 at 2 / max(5 gangs of 2, 6 workers).
    assert isolated.tolist() == [1.0 + 20 * 6 / 4, 2.0 + 3 * 10 / 2, 3.0, 4.0, 5.0]
    advance(21.0, left, done, since, rate, scale, pooled, isolated, 6)
    assert (left[1], done[1], isolated[1]) == (0.0, 6.0, 2.0 + 4 * 10 / 2), "it runs on: it said too few"


@pytest.mark.parametrize("policy", ["min-jct", "max-min-fairness"])
def test_a_job_that_has_more_to_do_than_it_said_still_moves_to_a_faster_type(policy: str) -> None:
    engine = TrainingEngine(Cluster({"fast": 1, "slow": 1}), policy_of(policy), EngineOptions(10.0))
    jobs = [Job("first", {"fast": 2.0}, steps_left=1e4), Job("short", {"fast": 2.0, "slow": 1.0}, steps_left=5.0)]
    engine.handle(0.0, [*map(JobArrived, jobs), RoundBegan()])
    assert engine.jobs.on.tolist() == [0, 1]
    engine.handle(10.0, [RoundBegan()])
    assert engine.jobs.left[1] == 0.0
    engine.handle(15.0, [JobFinished("first")])
    engine.handle(20.0, [RoundBegan()])
    assert engine.jobs.on.tolist() == [0]
