"""What happens at one moment: events together or one after the other, stories by cause, and the protocol's shape."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.allocate.registry import policy_of
from fairway.cluster import Cluster
from fairway.engine.protocol import Engine, TransitionError, like
from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.messages import (
    BeginRound,
    Command,
    Event,
    Extend,
    Grant,
    JobArrived,
    JobCancelled,
    JobFinished,
    JobResumed,
    LeaseResumed,
    PricesChanged,
    RateMeasured,
    Refuse,
    Retire,
    Revoke,
    RoundBegan,
    StepsCounted,
    WorkersJoined,
    WorkersLeft,
    WorkersReturned,
)
from fairway.engine.training.options import EngineOptions
from fairway.jobs import Job
from tests.engine.training.driver import CheckedDriver
from tests.engine.training.test_engine import CLUSTER, EveryoneShares, job, workloads

TWO = Cluster({"v100": 2})


def two_that_run() -> TrainingEngine:
    engine = TrainingEngine(TWO, policy_of("fifo"), EngineOptions(60.0))
    jobs = [Job(name, {"v100": 1.0}, steps_left=100.0) for name in "abc"]
    engine.handle(0.0, [*map(JobArrived, jobs), RoundBegan()])
    return engine


def test_a_training_engine_is_an_engine() -> None:
    engine: Engine[Event, Command] = two_that_run()
    assert engine.handle(1.0, []) == []


@settings(max_examples=20)
@given(workloads(), st.sampled_from(["max-min-fairness", "fifo", "gandiva"]))
def test_events_together_or_one_after_the_other_at_the_same_moment_lead_to_the_same(
    workload: list[tuple[float, Job]], policy: str
) -> None:
    driver = CheckedDriver(CLUSTER, policy, EngineOptions(restart_seconds=5.0, seed=3), EveryoneShares())
    driver.submit(workload)
    driver.push(360.0, WorkersLeft("fast", (1, 2)))
    driver.push(360.0, WorkersLeft("slow", (0,), drain=True))
    driver.push(5000.0, WorkersJoined("fast", 2))
    driver.push(5000.0, WorkersJoined("slow", 1))
    driver.run()
    moments: dict[float, tuple[list[Event], list[Command]]] = {}
    for now, event, commands in driver.handled:
        events, answered = moments.setdefault(now, ([], []))
        events.append(event)
        answered += commands
    assert any(len(events) > 1 for events, _ in moments.values())
    together = TrainingEngine(CLUSTER, policy_of(policy), driver.engine.options, partners=EveryoneShares())
    for now, (events, answered) in moments.items():
        assert together.handle(now, events) == answered
    assert together.story("rounds") == driver.engine.story("rounds")


def test_workers_that_become_free_at_one_moment_are_given_away_in_order() -> None:
    engine = two_that_run()
    assert engine.handle(10.0, [JobFinished("a"), JobFinished("b")]) == [
        like(Revoke, jobs=("a",)), like(Retire, job="a"), like(Grant, jobs=("c",)),
        like(Revoke, jobs=("b",)), like(Retire, job="b"),
    ]  # fmt: skip


def test_an_impossible_event_changes_nothing_and_those_before_it_count() -> None:
    engine = two_that_run()
    with pytest.raises(TransitionError, match=r"JobFinished\(job='x'\), but there is no such job"):
        engine.handle(10.0, [JobCancelled("a"), JobFinished("x"), JobCancelled("b")])
    assert engine.jobs.ids == ["b", "c"]
    assert engine.now == 10.0
    engine.validate()


def test_a_story_names_all_that_happened_to_a_job_a_lease_and_a_worker() -> None:
    engine = two_that_run()
    engine.handle(5.0, [WorkersLeft("v100", (1,), drain=True)])
    engine.handle(7.0, [JobCancelled("b")])
    kinds = {
        cause: [line.split(": ")[1].split("(")[0] for line in engine.story(cause).splitlines()]
        for cause in ("job b", "lease 2", "worker v100/1", "v100 workers", "rounds")
    }
    assert kinds["job b"] == ["JobArrived", "Grant", "Revoke", "JobCancelled", "Retire"]
    assert kinds["lease 2"] == ["Grant", "Revoke"]
    assert kinds["worker v100/1"] == ["Grant", "WorkersLeft"]
    assert kinds["v100 workers"] == ["WorkersLeft"]
    assert kinds["rounds"] == ["BeginRound", "RoundBegan", "Extend", "BeginRound"]
    assert engine.story("job x") == "  nothing is remembered of job x"


@pytest.mark.parametrize(
    ("message", "cause", "concerns"),
    [
        (JobArrived(job("a")), "job a", ()),
        (JobResumed(job("a"), 1.0), "job a", ()),
        (LeaseResumed(3, ("a", "b"), "fast", (1,)), "lease 3", ("job a", "job b", "worker fast/1")),
        (JobFinished("a"), "job a", ()),
        (JobCancelled("a"), "job a", ()),
        (StepsCounted("a", 1.0), "job a", ()),
        (WorkersJoined("fast", 2), "fast workers", ()),
        (WorkersLeft("fast", (0, 2)), "fast workers", ("worker fast/0", "worker fast/2")),
        (WorkersReturned("fast", (0,)), "fast workers", ("worker fast/0",)),
        (RateMeasured(("a", "b"), "fast", (1.0, 2.0)), "job a", ("job a", "job b")),
        (PricesChanged({"fast": 1.0}), "prices", ()),
        (RoundBegan(), "rounds", ()),
        (Grant(3, ("a",), "fast", (0, 1), 9.0), "lease 3", ("job a", "worker fast/0", "worker fast/1")),
        (Revoke(3, ("a", "b")), "lease 3", ("job a", "job b")),
        (Extend(9.0), "rounds", ()),
        (BeginRound(9.0), "rounds", ()),
        (Refuse("a", "why"), "job a", ()),
        (Retire("a", 1.0), "job a", ()),
    ],
)
def test_every_message_knows_what_it_is_about(message: Event | Command, cause: str, concerns: tuple[str, ...]) -> None:
    assert message.cause == cause
    assert getattr(message, "concerns", ()) == concerns
    assert not hasattr(message, "__dict__"), "messages are many, and small"
