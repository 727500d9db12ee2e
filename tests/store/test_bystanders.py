"""What is written about one job, lease, worker, agent or token changes no other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import Connection, select

from fairway.engine.training.messages import Grant
from fairway.store import Store
from fairway.store.database import schema
from fairway.store.job_changes import (
    change_job,
    continue_job,
    count_failure,
    explain_jobs,
    job_named,
    record_checkpoint,
    record_progress,
    record_progress_of_many,
    record_rates,
    request_cancel,
)
from fairway.store.leases import end_leases, extend_leases, grant_lease, plan_leases, revoke_leases, start_lease
from fairway.store.records import Reason
from fairway.store.states import JobState
from fairway.store.tokens import Role, create_token, revoke_token
from fairway.store.workers import agents_seen, drain_workers, lose_workers, undrain_workers
from tests.store.making import running, submitted, with_workers

WHY = Reason("Why", "a sentence")


def _rows(connection: Connection) -> dict[str, set[Any]]:
    """All rows of all tables, but for the counters."""
    return {
        name: {tuple(map(str, row)) for row in connection.execute(select(table))}
        for name, table in schema.metadata.tables.items()
        if name != "counters"
    }


@dataclass(frozen=True)
class Deed:
    """An operation, and how many rows of which tables it changes: exactly these."""

    run: Callable[[Store], object]
    changed: dict[str, int]


def _hand_over(store: Store) -> None:
    def both(connection: Connection) -> None:
        plan_leases(connection, [Grant(9, ("job-4",), "v100", (0,), until=100.0, restart=False)], at=5.0)
        end_leases(connection, [1], at=5.0)
        start_lease(connection, 9, at=5.0)
        continue_job(connection, "job-4", 9)

    store.write(both)


DEEDS = {
    "count_failure": Deed(lambda store: store.write(count_failure, "job-2", at=5.0, reason=WHY), {"jobs": 1}),
    "count_failure of one that runs": Deed(lambda store: store.write(count_failure, "job-5", at=5.0, reason=WHY), {}),
    "explain": Deed(lambda store: store.write(explain_jobs, {"job-2": WHY}), {"jobs": 1}),
    "explain one that runs": Deed(lambda store: store.write(explain_jobs, {"job-5": WHY}), {}),
    "cancel one that waits": Deed(lambda store: store.write(request_cancel, "job-2", at=5.0), {"jobs": 1}),
    "cancel one that runs": Deed(lambda store: store.write(request_cancel, "job-5", at=5.0), {"jobs": 1}),
    "preempt": Deed(lambda store: store.write(change_job, "job-5", JobState.PREEMPTING, at=5.0), {"jobs": 1}),
    "end": Deed(lambda store: store.write(change_job, "job-5", JobState.FAILED, at=5.0), {"jobs": 1, "attempts": 1}),
    "progress": Deed(lambda store: store.write(record_progress, "job-5", 40.0), {"jobs": 1}),
    "progress of many": Deed(lambda store: store.write(record_progress_of_many, {"job-5": 40.0}), {"jobs": 1}),
    "progress of one that waits": Deed(lambda store: store.write(record_progress_of_many, {"job-2": 40.0}), {}),
    "checkpoint": Deed(lambda store: store.write(record_checkpoint, "job-5", 40.0, at=5.0), {"jobs": 1}),
    "rates": Deed(lambda store: store.write(record_rates, ["job-5"], "v100", [3.0], at=5.0), {"rates": 1}),
    "revoke a lease": Deed(lambda store: store.write(revoke_leases, [2], at=5.0), {"leases": 1}),
    "drain": Deed(lambda store: store.write(drain_workers, [("v100", 1)], at=5.0), {"workers": 1}),
    "undrain": Deed(lambda store: store.write(undrain_workers, [("v100", 3)]), {"workers": 1}),
    "lose": Deed(lambda store: store.write(lose_workers, [("v100", 1)], at=5.0), {"workers": 1}),
    "see an agent": Deed(lambda store: store.write(agents_seen, ["here"], at=5.0), {"agents": 1}),
    "hand over": Deed(_hand_over, {"attempts": 1, "leases": 2, "lease_jobs": 2, "held_workers": 1}),
    "grant": Deed(
        lambda store: store.write(grant_lease, Grant(9, ("job-2",), "k80", (1,), until=9.0), at=5.0),
        {"leases": 1, "lease_jobs": 1, "held_workers": 1},
    ),
    "extend": Deed(lambda store: store.write(extend_leases, 500.0, at=5.0), {"leases": 3}),
}


@pytest.fixture
def busy(store: Store) -> Store:
    """Three jobs that wait and three that run, workers of two agents, each with a rate of its own."""
    with_workers(store)
    with_workers(store, 2, "k80", agent="there")
    submitted(store, 6, steps=100.0)
    for worker, number in enumerate((4, 5, 6)):
        running(store, f"job-{number}", workers=(worker,), at=2.0 + worker)
        store.write(record_rates, [f"job-{number}"], "v100", [1.0 + number], at=3.0)
        store.write(record_rates, [f"job-{number}"], "k80", [1.0], at=3.0)
    store.write(drain_workers, [("v100", 3), ("k80", 1)], at=3.0)
    return store


@pytest.mark.parametrize("name", DEEDS)
def test_only_what_is_named_changes(busy: Store, name: str) -> None:
    before, deed = busy.read(_rows), DEEDS[name]
    deed.run(busy)
    after = busy.read(_rows)
    changed = {table: max(len(rows - after[table]), len(after[table] - rows)) for table, rows in before.items()}
    assert {table: count for table, count in changed.items() if count} == deed.changed


def test_a_failure_counts_for_the_job_that_failed(busy: Store) -> None:
    busy.write(count_failure, "job-2", at=5.0, reason=WHY)
    busy.write(count_failure, "job-2", at=6.0, reason=WHY)
    assert [busy.read(job_named, f"job-{number}").failures for number in range(1, 7)] == [0, 2, 0, 0, 0, 0]
    job = busy.read(job_named, "job-2")
    assert (job.changed_at, job.reason_code, job.reason) == (6.0, "Why", "a sentence")


def test_a_token_that_is_revoked_leaves_the_others_valid(store: Store) -> None:
    tokens = [store.write(create_token, Role.READER, at=1.0)[1] for _ in range(3)]
    before = store.read(_rows)
    assert store.write(revoke_token, tokens[1].id, at=5.0)
    assert not store.write(revoke_token, tokens[1].id, at=6.0)
    after = store.read(_rows)
    assert len(before["tokens"] - after["tokens"]) == 1
