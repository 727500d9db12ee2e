"""Agents and workers: numbers that stay, what is seen, drained and lost."""

from __future__ import annotations

import pytest

from fairway.errors import InputError
from fairway.store import Store
from fairway.store.errors import UnknownError
from fairway.store.workers import (
    Device,
    agents_seen,
    all_agents,
    all_workers,
    drain_workers,
    lose_workers,
    register_agent,
    undrain_workers,
)


def test_workers_are_numbered_within_their_type_and_keep_their_numbers(store: Store) -> None:
    a = [Device("v100", "0"), Device("k80", "1", emulated=True)]
    b = [Device("v100", "0")]
    first = store.write(register_agent, "a", a, at=1.0, details={"address": "10.0.0.1"})
    assert [(worker.accelerator, worker.number, worker.emulated) for worker in first] == [
        ("v100", 0, False),
        ("k80", 0, True),
    ]
    (second,) = store.write(register_agent, "b", b, at=2.0)
    assert (second.accelerator, second.number) == ("v100", 1)
    again = store.write(register_agent, "a", [*reversed(a), Device("v100", "2")], at=3.0)
    assert [(worker.accelerator, worker.number) for worker in again] == [("k80", 0), ("v100", 0), ("v100", 2)]
    assert [(agent.name, agent.registered_at, agent.seen_at) for agent in store.read(all_agents)] == [
        ("a", 1.0, 3.0),
        ("b", 2.0, 2.0),
    ]


def test_what_an_agent_has_no_more_is_lost_until_it_is_back(store: Store) -> None:
    both = [Device("v100", "0"), Device("v100", "1")]
    store.write(register_agent, "a", both, at=1.0)
    store.write(drain_workers, [("v100", 1)], at=2.0)
    store.write(register_agent, "a", both[:1], at=3.0)
    assert [worker.lost_at for worker in store.read(all_workers)] == [None, 3.0]
    back = store.write(register_agent, "a", both, at=4.0)
    assert [(worker.number, worker.lost_at, worker.drained_at) for worker in back] == [(0, None, None), (1, None, 2.0)]


def test_workers_are_drained_and_lost_by_number(store: Store) -> None:
    store.write(register_agent, "a", [Device("v100", "0"), Device("v100", "1")], at=1.0)
    store.write(drain_workers, [("v100", 0), ("v100", 1)], at=2.0)
    store.write(undrain_workers, [("v100", 1)])
    store.write(lose_workers, [("v100", 1)], at=3.0)
    assert [(worker.drained_at, worker.lost_at) for worker in store.read(all_workers)] == [(2.0, None), (None, 3.0)]
    with pytest.raises(UnknownError, match="no worker v100 7 is registered"):
        store.write(drain_workers, [("v100", 0), ("v100", 7)], at=9.0)
    with pytest.raises(UnknownError, match=f"no worker v100 {10**30}"):
        store.write(drain_workers, [("v100", 10**30)], at=9.0)
    assert store.read(all_workers)[0].drained_at == 2.0


def test_agents_are_seen(store: Store) -> None:
    store.write(register_agent, "a", [], at=1.0)
    store.write(agents_seen, ["a", "nobody"], at=5.0)
    store.write(agents_seen, [], at=6.0)
    assert [agent.seen_at for agent in store.read(all_agents)] == [5.0]
    with pytest.raises(InputError, match="agent: '' given"):
        store.write(register_agent, "", [], at=1.0)
    with pytest.raises(InputError, match="accelerator: "):
        Device("", "0")
