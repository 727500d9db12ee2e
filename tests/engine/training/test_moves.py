"""No job is moved without gain, whatever the policy; jobs still move where they gain or where the policy demands it."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.allocate.policies import POLICIES
from fairway.allocate.registry import policy_of
from fairway.cluster import Cluster
from fairway.engine.protocol import like
from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.messages import (
    CheckpointKept,
    Grant,
    JobArrived,
    JobFinished,
    RateMeasured,
    Revoke,
    RoundBegan,
)
from fairway.engine.training.options import EngineOptions
from fairway.jobs import Job
from tests.engine.training.moves import underloaded, watch

BLIND = ("max-min-fairness:agnostic", "fifo:agnostic", "shortest-job-first:agnostic")
TWO = Cluster({"slow": 1, "fast": 1})


def test_the_judge_knows_a_move_without_gain_when_it_sees_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairway.engine.training.rounds.keep_places", lambda *_: False)
    seen = [watch(*underloaded(seed)[:2], "makespan") for seed in range(60)]
    assert any(watched.gainless for watched in seen)


@pytest.mark.parametrize("policy", [*POLICIES, *BLIND, "max-min-fairness:space-sharing"])
def test_no_job_of_an_underloaded_cluster_is_moved_without_gain(policy: str) -> None:
    for seed in range(50):
        workload, cluster, restart = underloaded(seed)
        seen = watch(workload, cluster, policy, restart=restart, seed=seed)
        assert seen.finished == len(workload)
        assert seen.contended == 0
        assert not seen.gainless, f"seed {seed}: {seen.gainless}"


@pytest.mark.parametrize("policy", [*POLICIES, *BLIND])
def test_jobs_of_classes_of_priority_do_not_move_without_gain_either(policy: str) -> None:
    for seed in range(1000, 1010):
        workload, cluster, restart = underloaded(seed)
        draw = random.Random(seed)
        classed = [
            (arrival, replace(job, priority=draw.choice((-10, 0, 10)), preempts=draw.random() < 0.7))
            for arrival, job in workload
        ]
        seen = watch(classed, cluster, policy, restart=restart, seed=seed)
        assert not seen.gainless, f"seed {seed}: {seen.gainless}"


@pytest.mark.parametrize("policy", [*POLICIES, *BLIND])
def test_jobs_that_run_everywhere_at_one_rate_are_never_stopped_where_all_find_room(policy: str) -> None:
    jobs = [(400.0 * n, Job(f"j{n}", {"a": 1.0, "b": 1.0}, steps_left=3600.0 + 500.0 * (n % 3))) for n in range(20)]
    assert watch(jobs, Cluster({"a": 2, "b": 10}), policy).moves == 0


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.sampled_from([0.0, 100.0, 360.0, 1000.0]), st.floats(10.0, 5000.0), st.booleans()),
        min_size=1,
        max_size=7,
    ),
    st.sampled_from([*POLICIES, *BLIND]),
    st.sampled_from([0.0, 60.0]),
)
def test_nothing_moves_where_every_job_can_run_at_the_rate_it_has(
    jobs: list[tuple[float, float, bool]], policy: str, restart: float
) -> None:
    workload, arrival = [], 0.0
    for number, (after, steps, guessed) in enumerate(jobs):
        arrival += after
        rates = {"a": 1.0, "b": 3.0, "c": 1.0} if guessed else {"a": 2.0, "b": 2.0, "c": 2.0}
        unknown = tuple(rates) if guessed else ()
        workload.append((arrival, Job(f"j{number}", rates, steps_left=steps, entity="x", guessed=unknown)))
    assert watch(workload, Cluster({"a": 3, "b": 2, "c": 2}), policy, restart=restart).moves == 0


def beside_a_faster_job(*, restart: float = 10.0, **fields: object) -> TrainingEngine:
    """An engine whose second job runs on the slow type, and whose first one has just left the fast one."""
    engine = TrainingEngine(TWO, policy_of("fifo"), EngineOptions(restart_seconds=restart))
    fields.setdefault("steps_left", 1e6)
    first = Job("first", {"slow": 1.0, "fast": 5.0}, steps_left=1e6)
    second = Job("second", {"slow": 1.0, "fast": 5.0}, **fields)  # type: ignore[arg-type]
    engine.handle(0.0, [JobArrived(first), JobArrived(second), RoundBegan()])
    assert engine.jobs.on.tolist() == [1, 0]
    engine.handle(300.0, [JobFinished("first")])
    return engine


def moves(engine: TrainingEngine) -> bool:
    """Whether the second job moves to the fast type as the next round begins."""
    assert engine.round_end is not None
    commands = engine.handle(engine.round_end, [RoundBegan()])
    moved = like(Revoke, jobs=("second",), restart=True) in commands
    assert moved == (like(Grant, jobs=("second",), accelerator="fast") in commands)
    return moved


def test_a_job_moves_to_a_much_faster_type_that_becomes_free() -> None:
    assert moves(beside_a_faster_job())


@pytest.mark.parametrize(("seconds_left", "expected"), [(12.0, False), (13.0, True)])
def test_a_job_moves_only_if_it_gains_more_than_the_restart_costs_in_what_it_has_left(
    seconds_left: float, expected: bool
) -> None:
    # Four fifths of what is left are won on the fast type, 9.6 or 10.4 s, and 10 s lost by the restart. It has made
    # 350 steps when the round ends, since its first start took 10 s too.
    assert moves(beside_a_faster_job(steps_left=350.0 + seconds_left)) == expected


def test_a_job_is_not_moved_for_rates_that_are_guessed_until_they_are_measured() -> None:
    engine = beside_a_faster_job(guessed=("slow", "fast"))
    assert not moves(engine)
    engine.handle(engine.now, [RateMeasured(("second",), "slow", (1.0,))])
    engine.handle(engine.now, [RateMeasured(("second",), "fast", (5.0,), expected=True)])
    assert not moves(engine)
    engine.handle(engine.now, [RateMeasured(("second",), "fast", (5.0,))])
    assert moves(engine)


def test_a_job_that_cannot_go_on_from_a_checkpoint_is_not_moved_for_its_own_gain() -> None:
    engine = beside_a_faster_job(resumes=False)
    assert not moves(engine)
    engine.handle(engine.now, [CheckpointKept("second")])
    assert moves(engine)


def test_a_job_that_cannot_go_on_from_a_checkpoint_is_stopped_where_its_policy_demands_it() -> None:
    engine = TrainingEngine(Cluster({"one": 1}), policy_of("max-min-fairness"), EngineOptions())
    jobs = [Job(name, {"one": 1.0}, steps_left=1e6, resumes=False) for name in ("first", "second")]
    commands = engine.handle(0.0, [*map(JobArrived, jobs), RoundBegan()])
    for _ in range(20):
        assert engine.round_end is not None
        commands += engine.handle(engine.round_end, [RoundBegan()])
    assert like(Revoke, jobs=("first",), restart=True) in commands


def test_an_engine_that_goes_on_for_another_knows_what_is_guessed_and_which_jobs_begin_from_zero() -> None:
    engine = beside_a_faster_job(guessed=("fast",), resumes=False)
    assert engine.resumed("second").job.guessed == ("fast",)
    assert not engine.resumed("second").job.resumes
