"""Workers that come and go as a change says: what a cluster is then, and which leases end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fairway.cluster import Cluster
from fairway.engine.training.messages import Event, LeaseResumed
from fairway.errors import InputError
from fairway.profiles.catalog import PRICES


def with_workers(cluster: Cluster, more: Mapping[str, int], prices: Mapping[str, float]) -> Cluster:
    """The cluster with more workers, of types that it has or has not; each type has a price or none has."""
    workers = dict(cluster.workers)
    for name, count in more.items():
        workers[name] = workers.get(name, 0) + count
    priced = dict(cluster.prices)
    if priced:
        for name in more:
            price = prices.get(name, priced.get(name, PRICES.get(name)))
            if price is None:
                raise InputError(
                    f"add {name}: no price is known for it, and the cluster has prices; give one, as in "
                    f"--price {name}=2.5 (dollars per hour)"
                )
            priced[name] = price
    if workers == dict(cluster.workers):
        return cluster
    grown = {name: numbers for name, numbers in cluster.machine_of.items() if workers[name] == len(numbers)}
    return replace(cluster, workers=workers, prices=priced, machine_of=grown)


def without_leases(events: Sequence[Event], left: Mapping[str, tuple[int, ...]]) -> list[Event]:
    """The events without the leases on workers that leave: their jobs wait for others."""
    return [
        event
        for event in events
        if not (isinstance(event, LeaseResumed) and set(event.workers) & set(left.get(event.accelerator, ())))
    ]
