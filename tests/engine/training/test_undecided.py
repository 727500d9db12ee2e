"""A policy that does not decide: the engine goes by its last decision, names the newcomers and tries again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from fairway.allocate.allocation import Allocation
from fairway.allocate.policies.max_min_fairness import MaxMinFairness
from fairway.allocate.policy import Policy, UndecidedError
from fairway.allocate.problem import Problem
from fairway.cluster import Cluster
from fairway.engine.protocol import like
from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.messages import (
    BeginRound,
    Extend,
    JobArrived,
    JobCancelled,
    JobResumed,
    RoundBegan,
    Undecided,
)
from fairway.engine.training.options import EngineOptions
from fairway.jobs import Job


@dataclass
class Moody(Policy):
    """Decides unless it does not feel like it."""

    name: ClassVar[str] = "moody"
    decides: bool = True
    asked: list[tuple[str, ...]] = field(default_factory=list)

    def allocate(self, problem: Problem) -> Allocation:
        self.asked.append(problem.ids)
        if not self.decides:
            raise UndecidedError("not today")
        return MaxMinFairness().allocate(problem)


def job(name: str) -> Job:
    return Job(name, {"v100": 1.0}, steps_left=1e6)


def engine_of(policy: Moody) -> TrainingEngine:
    return TrainingEngine(Cluster({"v100": 1}), policy, EngineOptions(round_seconds=10.0))


def test_the_last_decision_stays_in_force_and_the_jobs_that_came_since_are_named() -> None:
    policy = Moody()
    engine = engine_of(policy)
    engine.handle(0.0, [JobArrived(job("a")), RoundBegan()])
    before = engine.allocation
    policy.decides = False
    engine.handle(5.0, [JobArrived(job("b")), JobArrived(job("c"))])
    said = engine.handle(10.0, [RoundBegan()])
    assert said == [Undecided("not today", ("b", "c")), Extend(20.0), BeginRound(20.0)]
    assert engine.allocation is before
    assert engine.solves == 1
    engine.validate()


def test_the_next_round_tries_again_without_the_jobs_that_were_taken_out() -> None:
    policy = Moody(decides=False)
    engine = engine_of(policy)
    said = engine.handle(0.0, [JobArrived(job("a")), JobArrived(job("b")), RoundBegan()])
    assert like(Undecided, newcomers=("a", "b")) in said
    policy.decides = True
    engine.handle(20.0, [JobCancelled("b"), RoundBegan()])
    assert policy.asked[-1] == ("a",)
    assert engine.solves == 1
    assert engine.allocation is not None


def test_a_job_that_another_engine_has_decided_about_is_no_newcomer() -> None:
    policy = Moody(decides=False)
    engine = engine_of(policy)
    known = JobResumed(job("a"), 0.0, shares={"v100": 0.5})
    said = engine.handle(1.0, [known, JobArrived(job("b")), RoundBegan()])
    assert like(Undecided, newcomers=("b",)) in said
