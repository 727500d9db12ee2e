"""Priority classes: a higher one comes first under every policy, and within a class the policy decides."""

from __future__ import annotations

import numpy as np
import pytest

from fairway.allocate.policies import POLICIES
from fairway.cluster import Cluster
from fairway.engine.training.explanation import explain
from fairway.engine.training.messages import Grant, JobArrived, JobFinished, Revoke
from fairway.engine.training.precedence import precedence
from fairway.jobs import Job
from tests.engine.training.test_fitting import Watched

CLUSTER = Cluster({"v100": 2, "k80": 1}, prices={"v100": 2.0, "k80": 1.0})


def job(name: str, priority: int = 0, scale: int = 1, **fields: object) -> Job:
    fields.setdefault("throughputs", {"v100": 4.0, "k80": 1.0})
    return Job(name, scale_factor=scale, steps_left=1e6, priority=priority, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("policy", sorted(set(POLICIES) - {"min-cost-slo"}))
def test_jobs_of_a_higher_class_take_the_workers_as_a_round_begins_under_every_policy(policy: str) -> None:
    world = Watched(CLUSTER, policy)
    world.handle(*(JobArrived(job(f"usual-{number}")) for number in range(4)))
    world.rounds(3)
    world.handle(*(JobArrived(job(f"urgent-{number}", 10)) for number in range(3)))
    for _ in range(12):
        world.rounds(1)
        assert world.running == {"urgent-0", "urgent-1", "urgent-2"}


@pytest.mark.parametrize("policy", ["max-min-fairness", "fifo", "shortest-job-first"])
def test_a_class_below_the_usual_one_gets_what_is_left(policy: str) -> None:
    world = Watched(CLUSTER, policy)
    world.handle(JobArrived(job("later", -5)), *(JobArrived(job(f"usual-{number}")) for number in range(2)))
    world.rounds(1)
    assert world.running == {"later", "usual-0", "usual-1"}
    world.handle(JobArrived(job("usual-2")))
    world.rounds(1)
    assert world.running == {"usual-0", "usual-1", "usual-2"}


def test_a_class_that_does_not_preempt_goes_before_those_that_wait_only() -> None:
    world = Watched(Cluster({"v100": 1}), "fifo")
    rates = {"v100": 1.0}
    world.handle(*(JobArrived(job(name, throughputs=rates)) for name in "ab"))
    world.rounds(1)
    assert world.running == {"a"}
    world.handle(JobArrived(job("patient", 5, preempts=False, throughputs=rates)))
    world.rounds(20)
    assert world.running == {"a"}, "fifo lets it run to its end"
    world.handle(JobFinished("a"))
    world.rounds(1)
    assert world.running == {"patient"}
    world.handle(JobArrived(job("urgent", 1, throughputs=rates)))
    world.rounds(3)
    assert world.running == {"patient"}, "of a higher class than the one that preempts"


def test_a_job_that_is_not_to_be_preempted_keeps_its_workers() -> None:
    world = Watched(Cluster({"v100": 1}))
    world.handle(JobArrived(job("fixed", preemptible=False)))
    world.rounds(1)
    world.handle(JobArrived(job("urgent", 10)))
    assert not [one for one in world.handle() if isinstance(one, Revoke | Grant)]
    world.rounds(5)
    assert world.running == {"fixed"}


def test_within_a_class_the_policy_decides() -> None:
    world = Watched(Cluster({"v100": 1}))
    rates = {"v100": 1.0}
    world.handle(
        *(JobArrived(job(name, 3, throughputs=rates)) for name in "ab"), JobArrived(job("c", throughputs=rates))
    )
    assert world.rounds(60) == {"a", "b"}


def test_explain_says_how_many_of_a_higher_class_run() -> None:
    world = Watched(CLUSTER)
    world.handle(JobArrived(job("usual")), *(JobArrived(job(f"urgent-{number}", 10)) for number in range(3)))
    world.rounds(1)
    assert "3 of a higher priority class run" in explain(world.engine, "usual").reason


def test_where_all_are_of_one_class_nothing_is_ahead() -> None:
    world = Watched(CLUSTER)
    world.handle(JobArrived(job("a", 7)), JobArrived(job("b", 7)))
    assert np.array_equal(precedence(world.engine.jobs), [0.0, 0.0])
