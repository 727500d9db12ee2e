"""Which worker is which accelerator of the backend.

A worker has its number for ever, also when others of its type are lost. A backend numbers what it has at the moment.
They are the same until, say, a GPU breaks and those behind it move up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fairway.cluster import UNCOUNTED, Cluster, Machine
from fairway.live.backend.accelerators import Accelerator
from fairway.live.backend.status import MachineSize
from fairway.store.records import Worker
from fairway.store.workers import Device


def devices_of(accelerators: Sequence[Accelerator]) -> list[Device]:
    """The accelerators of a backend by names that stay: that of the device, or the number of an emulated one."""
    return [Device(one.type, one.lasting_name, one.emulated) for one in accelerators]


@dataclass(frozen=True, slots=True)
class Places:
    """The numbers at the backend by those of the workers, and the other way round, each with its accelerator type."""

    at_the_backend: Mapping[tuple[str, int], int]
    of_workers: Mapping[tuple[str, int], int]

    @classmethod
    def of(cls, workers: Sequence[Worker], accelerators: Sequence[Accelerator]) -> Places:
        """From the workers as they were registered for these accelerators, in the same order."""
        pairs = [(worker.accelerator, worker.number, one.number)
                 for worker, one in zip(workers, accelerators, strict=True)]  # fmt: skip
        return cls(
            {(kind, worker): place for kind, worker, place in pairs},
            {(kind, place): worker for kind, worker, place in pairs},
        )


def with_machines(
    cluster: Cluster, places: Places, accelerators: Sequence[Accelerator], sizes: Sequence[MachineSize]
) -> Cluster:
    """The cluster with the machines that its workers are in; one that is gone, or of no known size, counts nothing."""
    if not sizes:
        return cluster
    number_of = {size.node: number for number, size in enumerate(sizes)}
    node_of = {(one.type, one.number): one.node for one in accelerators}
    machine_of: dict[str, tuple[int, ...]] = {}
    for name, count in cluster.workers.items():
        at_backend = [places.at_the_backend.get((name, worker)) for worker in range(count)]
        machine_of[name] = tuple(
            UNCOUNTED if place is None else number_of.get(node_of[name, place], UNCOUNTED) for place in at_backend
        )
    machines = tuple(Machine(size.cpus, size.memory_bytes) for size in sizes)
    return replace(cluster, machines=machines, machine_of=machine_of)
