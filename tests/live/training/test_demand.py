"""What the queue asks of the machines."""

from __future__ import annotations

from fairway.allocate.policies.max_min_fairness import MaxMinFairness
from fairway.cluster import Cluster
from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.messages import JobArrived, RoundBegan
from fairway.jobs import Job
from fairway.live.backend.demand import JobDemand
from fairway.live.training.demand import demand_of


def test_jobs_that_run_come_first_with_the_type_that_they_run_on() -> None:
    engine = TrainingEngine(Cluster({"v100": 1, "k80": 1}), MaxMinFairness())
    engine.handle(0.0, [
        JobArrived(Job("long", {"v100": 2.0}, steps_left=1e6, preemptible=False), None),
        JobArrived(Job("other", {"v100": 2.0}, steps_left=1e6, cpus=3.0, memory_bytes=1e9), None),
        JobArrived(Job("any", {"v100": 2.0, "k80": 0.5}, steps_left=1e6), None),
        RoundBegan(),
    ])  # fmt: skip
    (first, second, third) = demand_of(engine, {})
    assert (first.types, second.types) == (("v100",), ("k80",)), "of a job that runs, the type that it has"
    assert third == JobDemand(("v100",), workers=1, nodes=0, cpus=3.0, memory_bytes=1e9)


def test_a_job_for_which_too_few_workers_are_there_asks_as_well() -> None:
    engine = TrainingEngine(Cluster({"v100": 1}), MaxMinFairness())
    gang = Job("gang", {"v100": 8.0, "k80": 0.0}, scale_factor=8, steps_left=1.0, nodes=2)
    assert demand_of(engine, {"gang": gang}) == (JobDemand(("v100",), workers=8, nodes=2),)


def test_an_empty_queue_asks_for_nothing() -> None:
    assert demand_of(TrainingEngine(Cluster({"v100": 1}), MaxMinFairness()), {}) == ()
