"""What must hold of any history of the live system, whatever was killed in between."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

from sqlalchemy import Connection, select

from fairway.sim.replay import replay_decisions, replay_engine
from fairway.store import Store
from fairway.store.database.schema import attempts, held_workers, jobs, leases
from fairway.store.records import Attempt, JobRecord, LeaseRecord


def everything(connection: Connection) -> tuple[list[JobRecord], list[LeaseRecord], list[Attempt]]:
    return (
        [JobRecord(*row) for row in connection.execute(select(jobs).order_by(jobs.c.number))],
        [LeaseRecord(*row) for row in connection.execute(select(leases).order_by(leases.c.number))],
        [Attempt(*row) for row in connection.execute(select(attempts).order_by(attempts.c.job, attempts.c.attempt))],
    )


def check_history(store: Store) -> None:
    """No worker was held by two leases at once, and no job had two attempts at once."""
    all_jobs, all_leases, all_attempts = store.read(everything)
    on_worker: dict[tuple[str, int], list[tuple[float, float, int]]] = defaultdict(list)
    for lease in all_leases:
        if lease.granted_at is not None:
            end = float("inf") if lease.ended_at is None else lease.ended_at
            assert lease.granted_at <= end, lease
            for worker in lease.workers:
                on_worker[lease.accelerator, worker].append((lease.granted_at, end, lease.number))
    for worker, spans in on_worker.items():
        for before, after in pairwise(sorted(spans)):
            assert before[1] <= after[0], f"leases {before} and {after} overlap on {worker}"
    of_job: dict[str, list[Attempt]] = defaultdict(list)
    for attempt in all_attempts:
        of_job[attempt.job].append(attempt)
    for job in all_jobs:
        mine = of_job[job.id]
        assert [attempt.attempt for attempt in mine] == list(range(1, job.attempts + 1)), job
        for attempt, following in pairwise(mine):
            assert attempt.ended_at is not None
            assert attempt.started_at <= attempt.ended_at <= following.started_at, (attempt, following)
        if not job.active:
            assert all(attempt.ended_at is not None for attempt in mine), mine


def check_all_over(store: Store) -> None:
    """Nothing is held any more."""
    all_jobs, all_leases, _ = store.read(everything)
    assert not [job for job in all_jobs if job.active]
    assert not [lease for lease in all_leases if lease.ended_at is None]
    assert store.read(lambda connection: connection.execute(select(held_workers)).all()) == []


def check_journal(store: Store) -> None:
    """The last engine and all decisions can be repeated, and come out the same."""
    replayed = replay_engine(store)
    assert replayed is not None
    assert replayed.same, replayed.problem
    for decision in replay_decisions(store):
        assert decision.same, decision
