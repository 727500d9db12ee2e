"""Details of the training engine that its large tests pass by: who starts first, what is refused and how it is told."""

from __future__ import annotations

from typing import ClassVar

import pytest

from fairway.allocate.allocation import Allocation
from fairway.allocate.policy import Policy, UndecidedError
from fairway.allocate.problem import Problem
from fairway.allocate.registry import policy_of
from fairway.cluster import Cluster
from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.messages import Grant, JobArrived, JobResumed, Refuse, RoundBegan, WorkersLeft
from fairway.engine.training.options import EngineOptions
from fairway.engine.training.smallest_change import Trials
from fairway.engine.training.what_if import refusal
from fairway.jobs import Job


def engine_of(cluster: Cluster, policy: str = "max-min-fairness") -> TrainingEngine:
    return TrainingEngine(cluster, policy_of(policy), EngineOptions(100.0))


def gang(name: str, scale: int = 1, **rates: float) -> Job:
    return Job(name, rates or {"v100": 1.0}, scale_factor=scale, steps_left=1e6)


def test_of_two_gangs_that_start_together_the_larger_takes_its_node_first() -> None:
    engine = engine_of(Cluster({"v100": 8}, workers_per_node={"v100": 4}))
    engine.handle(0.0, [JobArrived(gang("small", 2)), JobArrived(gang("large", 4))])
    started = [command for command in engine.handle(0.0, [RoundBegan()]) if isinstance(command, Grant)]
    assert [grant.jobs for grant in started] == [("large",), ("small",)]


def test_equal_gangs_start_in_the_order_in_which_they_came() -> None:
    engine = engine_of(Cluster({"v100": 6}))
    engine.handle(0.0, [JobArrived(gang(name, 2)) for name in ("b", "c", "a")])
    started = [command for command in engine.handle(0.0, [RoundBegan()]) if isinstance(command, Grant)]
    assert [grant.jobs for grant in started] == [("b",), ("c",), ("a",)]


def test_a_gang_that_is_too_large_is_told_the_most_that_there_are_of_a_type_it_runs_on() -> None:
    engine = engine_of(Cluster({"v100": 2, "p100": 5, "k80": 9}))
    (refused,) = engine.handle(0.0, [JobArrived(gang("huge", 7, v100=1.0, p100=1.0))])
    assert refused == Refuse("huge", "job 'huge' asks for 7 workers of one type, but there are at most 5")


def test_a_job_that_comes_back_without_its_accounts_has_done_nothing_on_an_equal_share() -> None:
    engine = engine_of(Cluster({"v100": 1}))
    engine.handle(50.0, [JobResumed(gang("back"), arrived=20.0)])
    position = engine.jobs.position("back")
    assert engine.jobs.arrival[position] == 20.0
    assert engine.jobs.isolated[position] == 0.0
    assert not engine.jobs.shares[position].any()
    assert not engine.jobs.owed[position].any()


def test_decisions_are_counted() -> None:
    engine = engine_of(Cluster({"v100": 1}))
    engine.handle(0.0, [JobArrived(gang("a"))])
    engine.handle(0.0, [RoundBegan()])
    assert engine.solves == 1
    engine.handle(100.0, [RoundBegan()])
    assert engine.solves == 1, "nothing has changed"
    engine.handle(150.0, [JobArrived(gang("b"))])
    engine.handle(200.0, [RoundBegan()])
    assert engine.solves == 2


class Undecided(Policy):
    """A policy that never knows."""

    name: ClassVar[str] = "undecided"

    def allocate(self, problem: Problem) -> Allocation:
        raise UndecidedError(f"no answer for {', '.join(problem.ids)}")


def test_why_a_policy_cannot_decide_about_a_job_is_known_beforehand() -> None:
    engine = TrainingEngine(Cluster({"v100": 1}), Undecided(), EngineOptions(100.0))
    assert refusal(engine, gang("a"), None) == "no answer for a"
    assert refusal(engine_of(Cluster({"v100": 1})), gang("a"), None) is None


@pytest.mark.parametrize("most", [1, 2, 3])
def test_no_more_changes_are_tried_than_allowed(most: int) -> None:
    engine = engine_of(Cluster({"v100": 1}))
    engine.handle(0.0, [JobArrived(gang("a")), JobArrived(gang("b"))])
    engine.handle(0.0, [RoundBegan()])
    tried: list[int] = []
    trials = Trials(engine, "b", most=most, at_once_only=True, enough=lambda: False)
    for number in range(5):
        assert trials.starts(lambda _, number=number: tried.append(number)) is None
    assert tried == list(range(most))


def test_the_least_change_that_starts_a_job_is_found_by_halves() -> None:
    engine = engine_of(Cluster({"v100": 4}))
    engine.handle(0.0, [JobArrived(gang("a", 4)), JobArrived(gang("b", 3))])
    engine.handle(0.0, [RoundBegan()])
    (waits,) = [name for name in ("a", "b") if engine.jobs.on[engine.jobs.position(name)] < 0]
    runs = "ab".replace(waits, "")
    sizes: list[int] = []

    def with_room(trial: TrainingEngine, count: int) -> None:
        sizes.append(count)
        if count >= 5:
            trial.handle(trial.now, [WorkersLeft("v100", (0, 1, 2, 3))])
        assert trial is not engine

    trials = Trials(engine, waits, most=20, at_once_only=True, enough=lambda: False)
    assert trials.least(0, with_room) is None
    assert trials.least(8, with_room) is None
    assert sizes == [8], "if the most does not help, less does not"
    assert engine.jobs.on[engine.jobs.position(runs)] >= 0, "what is tried changes nothing"
