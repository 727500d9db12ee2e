"""Policies that choose whole jobs: what they chose runs until they choose again, and no job takes turns."""

from __future__ import annotations

import pytest

from fairway.allocate.policies import POLICIES
from fairway.allocate.policies.fifo import Fifo
from fairway.allocate.registry import policy_of
from fairway.cluster import Cluster
from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.messages import Grant, JobArrived, JobFinished, Revoke, RoundBegan
from fairway.engine.training.options import EngineOptions
from fairway.jobs import Job


def job(name: str, steps: float) -> Job:
    return Job(name, {"v100": 1.0}, steps_left=steps)


def engine_of(policy: str) -> TrainingEngine:
    return TrainingEngine(Cluster({"v100": 1}), policy_of(policy), EngineOptions(round_seconds=10.0))


def test_policies_say_whether_they_choose_whole_jobs() -> None:
    chosen = {name for name, policy in POLICIES.items() if policy().whole_jobs}
    assert chosen == {"fifo", "shortest-job-first", "allox", "min-jct"}
    assert not Fifo(relaxed=True).whole_jobs


def test_a_shorter_job_takes_the_worker_and_keeps_it_to_its_end() -> None:
    engine = engine_of("shortest-job-first")
    engine.handle(0.0, [JobArrived(job("long", 1000.0)), RoundBegan()])
    engine.handle(5.0, [JobArrived(job("short", 100.0))])
    stops = []
    for second in range(10, 111, 10):
        said = engine.handle(float(second), [RoundBegan()])
        stops += [(second, command.jobs) for command in said if isinstance(command, Revoke)]
    assert stops == [(10, ("long",))]
    said = engine.handle(110.0, [JobFinished("short")])
    assert [command.jobs for command in said if isinstance(command, Grant)] == [("long",)]
    assert not engine.jobs.owed.any()


@pytest.mark.parametrize(
    ("policy", "next_one"), [("shortest-job-first", "short"), ("allox", "short"), ("fifo", "first")]
)
def test_a_worker_that_becomes_free_goes_at_once_to_the_job_that_the_policy_chooses(policy: str, next_one: str) -> None:
    engine = engine_of(policy)
    engine.handle(0.0, [JobArrived(job("running", 12.0)), RoundBegan()])
    engine.handle(1.0, [JobArrived(job("first", 900.0)), JobArrived(job("short", 300.0))])
    engine.handle(10.0, [RoundBegan()])
    said = engine.handle(12.0, [JobFinished("running")])
    assert [command for command in said if isinstance(command, Grant)] == [Grant(2, (next_one,), "v100", (0,), 20.0)]
