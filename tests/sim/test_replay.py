"""Replaying a journal: the same decisions and commands come out, and what was changed is found."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, insert, select, update

from fairway.allocate.registry import policy_of
from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.messages import BeginRound, JobArrived, JobCancelled, JobFinished, RoundBegan
from fairway.errors import InputError
from fairway.profiles import IsolatedRate, PairRate, ThroughputTable
from fairway.profiles.csv_table import write_csv
from fairway.sim.replay import replay_decisions, replay_engine
from fairway.store import Store, open_store
from fairway.store.database.schema import journal
from fairway.store.journal import record_decision, record_start, record_step
from tests.engine.training.validated import validated_engines
from tests.sim.journalled import CLUSTER, OPTIONS, jobs, journal_a_resumed_run, journal_a_run, start_document

SHARING = ThroughputTable(
    tuple(IsolatedRate("x", scale, name, rate) for scale in (1, 2) for name, rate in (("fast", 2.0), ("slow", 1.0))),
    tuple(PairRate("x", "x", scale, name, 1.4, 1.4) for scale in (1, 2) for name in ("fast", "slow")),
    source="here",
)


@pytest.fixture(autouse=True, scope="module")
def _validated() -> Iterator[None]:
    with validated_engines():
        yield


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path) as opened:
        yield opened


@pytest.mark.parametrize("policy", ["max-min-fairness", "fifo:agnostic", "hierarchical", "gandiva", "min-cost"])
def test_the_same_comes_out_again(store: Store, policy: str) -> None:
    engine = journal_a_run(store, policy)
    decisions = list(replay_decisions(store))
    assert len(decisions) == engine.solves > 3
    assert all(decision.same for decision in decisions), decisions
    assert {decision.policy for decision in decisions} == {policy}
    replayed = replay_engine(store)
    assert replayed is not None
    assert replayed.same, replayed.problem
    assert (replayed.start, replayed.policy) == (1, policy)
    assert replayed.events >= 24
    assert replayed.commands > replayed.events
    assert len(list(replay_decisions(store, after=decisions[-3].sequence))) == 2


def test_an_engine_that_went_on_from_another_is_replayed_from_what_it_was_told_first(store: Store) -> None:
    journal_a_run(store, "fifo")
    journal_a_resumed_run(store, "max-min-fairness")
    replayed = replay_engine(store)
    assert replayed is not None
    assert replayed.same, replayed.problem
    assert replayed.policy == "max-min-fairness"
    assert replayed.events == 5
    assert all(decision.same for decision in replay_decisions(store))


def test_profiles_are_found_again_where_jobs_share(store: Store, tmp_path: Path) -> None:
    policy, path = "max-min-fairness:space-sharing", tmp_path / "rates.csv"
    write_csv(SHARING, path)
    journal_a_run(store, policy, partners=SHARING, profiles=str(path))
    replayed = replay_engine(store)
    assert replayed is not None
    assert replayed.same, replayed.problem
    path.unlink()
    with pytest.raises(InputError, match=r"profiles: jobs shared by '.*rates.csv', which cannot be read"):
        replay_engine(store)
    replayed = replay_engine(store, table=SHARING)
    assert replayed is not None
    assert replayed.same


def test_a_journal_of_an_earlier_version_is_replayed(store: Store) -> None:
    """Written when the engine took in one event at a time: a restart, a drain, failures, a cancel and a late job."""
    rows = json.loads((Path(__file__).parent / "stored" / "journal.json").read_text())
    store.write(lambda connection: connection.execute(insert(journal), rows))
    replayed = replay_engine(store)
    assert replayed is not None
    assert replayed.same, replayed.problem
    kinds = [row["kind"] for row in rows]
    assert (replayed.events, replayed.commands) == (kinds.count("event"), kinds.count("command")) == (46, 43)
    decisions = list(replay_decisions(store))
    assert len(decisions) == kinds.count("decision")
    assert all(decision.same for decision in decisions), decisions


def test_events_of_one_moment_are_replayed_however_they_were_written(store: Store) -> None:
    """Two engines with the same past: one took in each event by itself, the other all events of a moment together."""
    arrived = [*map(JobArrived, jobs(4))]
    for together in (False, True):
        store.write(record_start, "training", start_document("fifo"), at=0.0)
        engine = TrainingEngine(CLUSTER, policy_of("fifo"), OPTIONS)
        for now, events in ((0.0, [*arrived, RoundBegan()]), (5.0, [JobCancelled("j0"), JobCancelled("j2")])):
            for moment in [events] if together else [[event] for event in events]:
                store.write(record_step, now, moment, engine.handle(now, moment), at=now)
        replayed = replay_engine(store)
        assert replayed is not None
        assert replayed.same, replayed.problem
        assert (replayed.events, replayed.commands) == (7, 11)
    store.write(record_step, 9.0, [JobCancelled("j1"), JobCancelled("j3")], [BeginRound(11.0)], at=9.0)
    replayed = replay_engine(store)
    assert replayed is not None
    assert replayed.problem is not None
    assert "JobCancelled(job='j3'), with 1 before it at that moment, was answered by BeginRound(" in replayed.problem


def change_entry(connection: Connection, sequence: int, old: str, new: str) -> None:
    body = connection.execute(select(journal.c.body).where(journal.c.sequence == sequence)).scalar_one()
    text = json.dumps(body)
    assert old in text
    changed = json.loads(text.replace(old, new, 1))
    connection.execute(update(journal).where(journal.c.sequence == sequence).values(body=changed))


def first(store: Store, kind: str, name: str) -> int:
    statement = select(journal.c.sequence).where(journal.c.kind == kind, journal.c.name == name)
    found = store.read(lambda connection: connection.execute(statement.order_by(journal.c.sequence)).first())
    assert found is not None
    return int(found[0])


def test_a_command_that_would_be_another_now_is_found(store: Store) -> None:
    journal_a_run(store, "max-min-fairness")
    grant = first(store, "command", "Grant")
    store.write(change_entry, grant, '"accelerator": "fast"', '"accelerator": "slow"')
    replayed = replay_engine(store)
    assert replayed is not None
    assert not replayed.same
    assert replayed.problem is not None
    assert "was answered by Grant(" in replayed.problem
    assert "is now by Grant(" in replayed.problem


def test_a_share_that_would_be_another_now_is_found(store: Store) -> None:
    journal_a_run(store, "max-min-fairness")
    largest = max(replay_decisions(store), key=lambda decision: decision.jobs)
    assert largest.jobs > 4
    store.write(change_entry, largest.sequence, '"steps_left"', '"weight": 3.0, "steps_left"')
    found = [decision for decision in replay_decisions(store) if not decision.same]
    assert [each.sequence for each in found] == [largest.sequence]
    assert found[0].difference is not None
    assert found[0].difference > 1e-3


def test_a_decision_that_cannot_be_made_again_is_told(store: Store) -> None:
    store.write(
        record_decision, {"policy": "nothing", "problem": {"workers": {"v": 1}, "jobs": []}, "previous": None}, at=1.0
    )
    store.write(record_decision, {"policy": "fifo"}, at=2.0)
    unknown, broken = replay_decisions(store)
    assert not unknown.same
    assert not broken.same
    assert "nothing" in (unknown.problem or "")
    assert (broken.problem or "").startswith("not a decision")


def test_an_event_that_cannot_have_happened_is_told(store: Store) -> None:
    store.write(record_start, "training", start_document("fifo"), at=0.0)
    store.write(record_step, 3.0, [JobFinished("nobody")], [], at=3.0)
    replayed = replay_engine(store)
    assert replayed is not None
    assert (replayed.events, replayed.same) == (0, False)
    assert "is refused now" in (replayed.problem or "")


def test_a_journal_that_makes_no_sense_is_refused(store: Store) -> None:
    assert replay_engine(store) is None
    assert list(replay_decisions(store)) == []
    store.write(record_start, "training", {"policy": "fifo"}, at=0.0)
    with pytest.raises(InputError, match="journal entry 1: not a start of the training engine"):
        replay_engine(store)
    store.write(record_start, "training", start_document("fifo"), at=0.0)
    store.write(record_step, 1.0, [RoundBegan()], [BeginRound(2.0)], at=1.0)
    store.write(lambda connection: connection.execute(update(journal).where(journal.c.sequence == 4).values(cause=1)))
    with pytest.raises(InputError, match="journal entry 4: its cause, entry 1, is not the event before"):
        replay_engine(store)
