"""A run of the training engine with everything in a store's journal, as the live system writes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace

from fairway.allocate.decision_document import decision_document
from fairway.allocate.registry import policy_of
from fairway.cluster import Cluster
from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.messages import Command, Event, JobArrived, RoundBegan
from fairway.engine.training.options import EngineOptions
from fairway.engine.training.pair_rates import Partners
from fairway.jobs import Entity, Job
from fairway.store import Store
from fairway.store.journal import record_decision, record_start, record_step
from fairway.store.messages import event_document
from tests.engine.training.driver import CheckedDriver

CLUSTER = Cluster({"fast": 2, "slow": 2}, {"fast": 2.0, "slow": 1.0}, {"fast": 1})
OPTIONS = EngineOptions(10.0, 1.0, {"a": Entity(2.0), "b": Entity(1.0, "fifo")}, seed=5, last_lease=40)


def jobs(count: int) -> list[Job]:
    return [
        Job(
            f"j{number}",
            {"fast": 2.0 + number % 3 / 7, "slow": 1.0},
            scale_factor=1 + number % 2,
            steps_left=100.0 + number,
            entity="ab"[number % 2],
            job_type="x",
        )
        for number in range(count)
    ]


def start_document(
    policy: str, *, profiles: str | None = None, resumption: list[Event] | None = None
) -> dict[str, object]:
    return {
        "cluster": {
            "workers": dict(CLUSTER.workers),
            "prices": dict(CLUSTER.prices),
            "workers_per_node": dict(CLUSTER.workers_per_node),
        },
        "policy": policy,
        "options": {
            "round_seconds": OPTIONS.round_seconds,
            "restart_seconds": OPTIONS.restart_seconds,
            "seed": OPTIONS.seed,
            "last_lease": OPTIONS.last_lease,
            "entities": {name: asdict(entity) for name, entity in OPTIONS.entities.items()},
        },
        "profiles": profiles,
        "resumption": [event_document(0.0, event) for event in resumption or []],
    }


def journal_a_run(
    store: Store, policy: str, *, count: int = 12, partners: Partners | None = None, profiles: str | None = None
) -> TrainingEngine:
    """Start an engine and run jobs to their end, with every event, command and decision in the journal."""
    store.write(record_start, "training", start_document(policy, profiles=profiles), at=0.0)
    driver = CheckedDriver(CLUSTER, policy, OPTIONS, partners)
    _journal(store, driver.engine, policy)
    driver.submit((3.0 * number, job) for number, job in enumerate(jobs(count)))
    driver.run()
    return driver.engine


def journal_a_resumed_run(store: Store, policy: str) -> None:
    """Let one engine take over from another in the middle, and run a few rounds."""
    engine = TrainingEngine(CLUSTER, policy_of(policy), OPTIONS)
    engine.handle(0.0, [*map(JobArrived, jobs(8)), RoundBegan()])
    resumption = engine.resumption()
    engine = TrainingEngine(CLUSTER, policy_of(policy), OPTIONS)
    engine.handle(0.0, resumption)
    store.write(record_start, "training", start_document(policy, resumption=resumption), at=0.0)
    _journal(store, engine, policy)
    for number in range(5):
        engine.handle(10.0 * number, [RoundBegan()])


def _journal(store: Store, engine: TrainingEngine, policy: str) -> None:
    handle = engine.handle

    def journalled(now: float, events: Sequence[Event]) -> list[Command]:
        solves, previous = engine.solves, engine.allocation
        commands = handle(now, events)
        sequence = store.write(record_step, now, events, commands, at=now)
        if engine.solves > solves:
            assert engine.allocation is not None
            problem = replace(engine.allocation.problem, previous=previous)
            document = decision_document(policy, problem, engine.allocation, {})
            store.write(record_decision, document, at=now, cause=sequence)
        return commands

    engine.handle = journalled  # type: ignore[method-assign]
