"""Bugs that are planted into the live training system, each of which the simulation has to find."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event

from fairway.live.local.agent.state import AgentState, RunRecord
from fairway.live.training import loop
from fairway.live.training.loop import Work
from fairway.live.training.loop_state import State
from fairway.simtest.plan import Plan, Step
from fairway.simtest.runner import plan_of, run_many, smallest
from fairway.simtest.training.component import TRAINING
from fairway.store import counters, submissions
from fairway.store.database import sqlite


def found(*generators: str, most: int, saying: str) -> None:
    """A history that breaks the promise which the bug breaks is found within so many."""
    plans = [plan_of(TRAINING, generator, seed) for seed in range(most // len(generators)) for generator in generators]
    assert any(re.search(saying, violation) for plan in plans for violation in TRAINING.run(plan).violations)


def _job(at: float, **fields: Any) -> Step:
    spec = {
        "run": ["steps"],
        "steps": 4,
        "throughputs": {"v100": 2.0},
        "grace": 1,
        "checkpoint": {"seconds": 2},
        **fields,
    }
    return Step(at, "submit", {"key": f"key at {at}", "spec": spec})


def _plan(policy: str, *steps: Step) -> Plan:
    settings = {"emulate": "v100=2", "policy": policy, "round_seconds": 2.0}
    return Plan("training", "by hand", 1, settings, steps)


def test_a_controller_that_is_not_fenced_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    real = loop.write_all

    def unfenced(connection: Connection, _: int, changes: Sequence[Any]) -> frozenset[str]:
        return real(connection, counters.last(connection, counters.EPOCHS), changes)

    monkeypatch.setattr(loop, "write_all", unfenced)
    found("adversarial", most=60, saying="has written although epoch")


def test_a_lease_that_does_not_wait_for_the_holder_before_it_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AgentState, "holders", lambda *_: [])
    found("swarm", most=150, saying=r"runs on .* under lease \d+, and|runs under lease \d+ while")


def test_a_write_that_is_acknowledged_before_its_sync_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    real = sqlite._engine

    def hasty(*arguments: Any, **options: Any) -> Engine:
        engine = real(*arguments, **options)
        event.listen(engine, "connect", lambda connection, _: connection.execute("PRAGMA synchronous=NORMAL"))
        return engine

    monkeypatch.setattr(sqlite, "_engine", hasty)
    found("adversarial", most=60, saying=r"no controller can start: .* acknowledged writes are missing")


def test_a_submission_that_is_taken_twice_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    # The database holds one job for a key all the same, so the client who asks again never hears of its job.
    monkeypatch.setattr(submissions, "_known", lambda *_: {})
    found("adversarial", most=100, saying=r"submission key-\d+ was never acknowledged")


def test_a_wake_up_that_is_lost_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Work.look_for_jobs

    def deaf(work: Work) -> None:
        if work._course.state is State.ATTACHED:
            real(work)

    monkeypatch.setattr(Work, "look_for_jobs", deaf)
    away = Step(0.5, "partition", {"seconds": 20.0}, is_fault=True)
    history = TRAINING.run(_plan("fifo", _job(0.1), away, _job(14.0)))
    assert any("after the last fault" in violation for violation in history.violations), history.violations


def test_a_gang_that_starves_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    real = AgentState.startable

    def unfair(state: AgentState) -> list[RunRecord]:
        return [run for run in real(state) if len(run.workers) == 1]

    monkeypatch.setattr(AgentState, "startable", unfair)
    found("uniform", "swarm", most=60, saying=r"is still \w+ \d+ s after the last fault")


def test_a_plan_that_breaks_a_promise_shrinks_to_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submissions, "_known", lambda *_: {})
    tally = run_many(TRAINING, ("adversarial",), histories=100)
    plan, _ = tally.broken[0]
    small = smallest(TRAINING, plan)
    assert len(small.steps) <= 6 < len(plan.steps)
    assert TRAINING.run(small).violations
