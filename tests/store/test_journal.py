"""The journal: in order, never repeated, enough to run an engine again and to decide again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection

from fairway.allocate.decision_document import decision_document, problem_document, problem_of
from fairway.allocate.policies import POLICIES
from fairway.allocate.problem import Problem
from fairway.allocate.problem_file import parse_problem
from fairway.allocate.registry import policy_of
from fairway.cluster import Cluster
from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.messages import BeginRound, Command, Event, JobArrived, JobFinished, RoundBegan
from fairway.engine.training.options import EngineOptions
from fairway.errors import InputError
from fairway.jobs import Entity, Job, Pair
from fairway.store import Store, open_store
from fairway.store.database.columns import json_text
from fairway.store.journal import (
    Entry,
    last_entry,
    last_sequence,
    read_journal,
    record_decision,
    record_start,
    record_step,
    trim_journal,
)
from fairway.store.records import Reason
from tests.engine.training.driver import CheckedDriver

CLUSTER = Cluster({"fast": 2, "slow": 2}, prices={"fast": 2.0, "slow": 1.0})


def jobs(count: int) -> list[Job]:
    return [
        Job(
            f"j{number}",
            {"fast": 2.0 + number % 3 / 7, "slow": 1.0},
            scale_factor=1 + number % 2,
            steps_left=100.0 + number,
            entity="ab"[number % 2],
            slo_seconds=1000.0 if number % 3 else None,
        )
        for number in range(count)
    ]


def test_entries_are_numbered_in_order_and_name_their_cause(store: Store) -> None:
    started = store.write(record_start, "training", {"policy": "fifo"}, at=1.0)
    event, commands = JobArrived(jobs(1)[0]), [BeginRound(1.0), BeginRound(2.0)]
    step = store.write(record_step, 1.5, [event], commands, at=2.0)
    last = store.write(record_decision, {"policy": "fifo", "problem": {}}, at=3.0, cause=step)
    assert (started, step, last, store.read(last_sequence)) == (1, 2, 5, 5)
    entries = store.read(read_journal)
    assert [(entry.sequence, entry.kind, entry.name, entry.cause) for entry in entries] == [
        (1, "start", "training", None),
        (2, "event", "JobArrived", None),
        (3, "command", "BeginRound", 2),
        (4, "command", "BeginRound", 2),
        (5, "decision", "fifo", 2),
    ]
    assert [entry.message for entry in entries[1:4]] == [event, *commands]
    assert entries[1].happened == (1.5, event)
    with pytest.raises(InputError, match="journal entry 1 is a start and holds no message"):
        _ = entries[0].message
    with pytest.raises(InputError, match="journal entry 3 is a command and holds no event"):
        _ = entries[2].happened


def test_the_journal_is_read_on_from_a_number_by_kind_and_in_parts(store: Store) -> None:
    for time in range(10):
        store.write(record_step, float(time), [RoundBegan()], [BeginRound(time + 1.0)], at=float(time))
    read: list[Entry] = []
    while part := store.read(read_journal, after=read[-1].sequence if read else 0, limit=3):
        read += part
    assert [entry.sequence for entry in read] == list(range(1, 21))
    events = store.read(read_journal, kinds=["event"], after=4)
    assert [entry.happened for entry in events] == [(float(time), RoundBegan()) for time in range(2, 10)]
    newest = store.read(last_entry, "command")
    assert newest is not None
    assert newest.message == BeginRound(10.0)
    assert store.read(last_entry, "decision") is None
    with pytest.raises(InputError, match="limit: 0 given"):
        store.read(read_journal, limit=0)


def test_numbers_go_on_after_forgetting_and_reopening(url: str) -> None:
    with open_store(url) as store:
        for time in range(3):
            store.write(record_step, float(time), [RoundBegan()], [], at=1.0)
        assert store.write(trim_journal, before=4) == 3
    with open_store(url) as store:
        assert store.write(record_step, 9.0, [RoundBegan()], [], at=2.0) == 4
        assert [entry.sequence for entry in store.read(read_journal)] == [4]


def test_a_step_that_fails_leaves_no_gap_and_no_event(store: Store) -> None:
    def fail(connection: Connection) -> None:
        record_step(connection, 1.0, [RoundBegan()], [BeginRound(2.0)], at=1.0)
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        store.write(fail)
    assert store.read(read_journal) == []
    assert store.write(record_step, 2.0, [RoundBegan()], [], at=2.0) == 1


@pytest.mark.parametrize("policy", ["max-min-fairness", "fifo"])
def test_an_engine_that_hears_the_journal_does_the_same_again(store: Store, policy: str) -> None:
    options = EngineOptions(round_seconds=10.0, restart_seconds=1.0)
    driver = CheckedDriver(CLUSTER, policy, options)
    handle = driver.engine.handle

    def journalled(now: float, events: Sequence[Event]) -> list[Command]:
        commands = handle(now, events)
        store.write(record_step, now, events, commands, at=0.0)
        return commands

    driver.engine.handle = journalled  # type: ignore[method-assign]
    driver.submit((3.0 * number, job) for number, job in enumerate(jobs(12)))
    driver.run()
    entries = store.read(read_journal, limit=10_000)
    assert sum(isinstance(entry.message, JobFinished) for entry in entries) == 12

    engine = TrainingEngine(CLUSTER, policy_of(policy), options)
    for entry in entries:
        if entry.kind == "event":
            said = [other.message for other in entries if other.cause == entry.sequence]
            now, event = entry.happened
            assert engine.handle(now, [event]) == said


def example_problem(count: int, *, pairs: bool = True) -> Problem:
    waiting = jobs(count)
    sharing = [
        Pair((a.id, b.id), {"fast": (1.5, 1.4), "slow": (0.8, 0.7)})
        for a, b in zip(waiting, waiting[2:], strict=False)
        if pairs
    ]
    teams = {"b": Entity(2.0), "a": Entity(1.0, "fifo"), "root": Entity(), "c": Entity(parent="root")}
    return Problem.of(CLUSTER, waiting, sharing, teams, seed=7)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=10)
@pytest.mark.parametrize("policy", [*POLICIES, "max-min-fairness:space-sharing", "fifo:space-sharing"])
@given(count=st.integers(0, 9))
def test_a_decision_can_be_made_again_from_the_journal(policy: str, count: int) -> None:
    chosen = policy_of(policy)
    before = example_problem(9)
    problem = replace(example_problem(count), previous=chosen.allocate(before))
    decided = chosen.allocate(problem)
    reasons = {name: Reason("capacity", "all fast are taken") for name in problem.ids}
    with_text = json_text(decision_document(policy, problem, decided, reasons))
    entry = Entry(1, 0.0, "decision", policy, None, json.loads(with_text))
    again = policy_of(entry.body["policy"]).allocate(problem_of(entry.body))
    assert again.ids == decided.ids
    assert list(again.problem.entities) == list(decided.problem.entities)
    np.testing.assert_array_equal(again.job_shares, decided.job_shares)
    np.testing.assert_equal(again.objective, decided.objective)


def test_a_decision_is_a_problem_file_and_is_kept_in_the_store(store: Store) -> None:
    problem = example_problem(6)
    chosen = policy_of("max-min-fairness")
    decided = chosen.allocate(problem)
    store.write(record_decision, decision_document("max-min-fairness", problem, decided, {}), at=1.0)
    entry = store.read(last_entry, "decision")
    assert entry is not None
    assert entry.body["previous"] is None
    file = parse_problem(json_text(entry.body["problem"]), "decision.json")
    np.testing.assert_array_equal(chosen.allocate(file).job_shares, decided.job_shares)
    assert problem_document(file) == entry.body["problem"]
