"""What the machines are: accelerator types with their counts, prices and node sizes, and what else the machines have.

A worker is one accelerator, named only by its type: any name will do. A gang of s workers always sits on one type; it
is consolidated when it fits on one node and spread over several nodes otherwise, where it may run at another rate
(Gavel §3.1, placement sensitivity).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fairway.documents import shown
from fairway.errors import InputError
from fairway.magnitudes import FACTORS, MOST_WORKERS

UNCOUNTED = -1
"""Instead of the number of a machine: what it has besides its workers is not counted."""

_ROUNDING = 1e-9
_TYPE_AND_COUNT = re.compile(r"\s*([^=,\s]+)\s*=\s*([0-9]{1,100})\s*")


@dataclass(frozen=True, slots=True)
class Machine:
    """The CPUs and the memory that the jobs on one machine share; without end where they are not counted."""

    cpus: float = math.inf
    memory_bytes: float = math.inf


@dataclass(frozen=True, slots=True)
class Cluster:
    """Counts, prices (dollars per worker and hour) and node sizes by accelerator type.

    `prices` is empty (nothing has a price) or names every type. A type without an entry in `workers_per_node` is flat:
    all of its workers count as one node. `machine_of` says for the workers of a type, in their order, which of the
    `machines` each is in; where it is `UNCOUNTED`, and on types without an entry, CPUs and memory are without end.
    Those machines are the nodes of a type whose nodes have no size.
    """

    workers: Mapping[str, int]
    prices: Mapping[str, float] = field(default_factory=dict)
    workers_per_node: Mapping[str, int] = field(default_factory=dict)
    machines: tuple[Machine, ...] = ()
    machine_of: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, count in self.workers.items():
            if not name:
                raise InputError("workers: an accelerator type has an empty name; give it one, such as 'v100'")
            if not 0 <= count <= MOST_WORKERS or count != int(count):
                raise InputError(
                    f"workers.{name}: {shown(count)} given, expected a whole number from 0 to {MOST_WORKERS}"
                )
        for name, price in self.prices.items():
            if name not in self.workers:
                raise InputError(f"prices.{name}: no such accelerator type; known: {_names(self.workers)}")
            try:
                FACTORS.above_zero(price)
            except InputError as error:
                raise InputError(f"prices.{name}: {error} (dollars per hour)") from None
        unpriced = [name for name in self.workers if self.prices and name not in self.prices]
        if unpriced:
            raise InputError(f"prices: {_names(unpriced)} missing; price every accelerator type or none")
        for name, size in self.workers_per_node.items():
            if name not in self.workers:
                raise InputError(f"workers_per_node.{name}: no such accelerator type; known: {_names(self.workers)}")
            if not 1 <= size <= MOST_WORKERS or size != int(size):
                raise InputError(
                    f"workers_per_node.{name}: {shown(size)} given, expected a whole number from 1 to {MOST_WORKERS}"
                )

        for name, numbers in self.machine_of.items():
            if len(numbers) != self.workers.get(name) or not all(
                UNCOUNTED <= one < len(self.machines) for one in numbers
            ):
                raise InputError(f"machine_of.{name}: expected the number of a machine for each of its workers")

    @classmethod
    def parse(cls, text: str) -> Cluster:
        """Read `v100=36,p100=36,k80=36`."""
        workers: dict[str, int] = {}
        for part in text.split(","):
            match = _TYPE_AND_COUNT.fullmatch(part)
            if not match:
                raise InputError(f"cluster: '{part}' given, expected TYPE=COUNT as in 'v100=8,k80=16'")
            if match[1] in workers:
                raise InputError(f"cluster: '{match[1]}' given twice; add its counts up")
            workers[match[1]] = int(match[2])
        return cls(workers)

    @property
    def types(self) -> tuple[str, ...]:
        """The accelerator types, in the order in which they were given."""
        return tuple(self.workers)

    def consolidates(self, accelerator: str, scale_factor: int) -> bool:
        """Whether a gang of this size fits on one node of this type."""
        return scale_factor <= self.largest_node(accelerator)

    def largest_node(self, accelerator: str) -> int:
        """How many workers of a type the node has that has most of them."""
        size = self.workers_per_node.get(accelerator)
        if size is not None:
            return size
        counts = Counter(one for one in self.machine_of.get(accelerator, ()) if one != UNCOUNTED)
        return max(counts.values(), default=self.workers[accelerator])

    def holds_within(self, accelerator: str, scale_factor: int, nodes: int) -> bool:
        """Whether a gang of this size would fit on so many nodes of a type, if nothing else ran; 0 for any number."""
        if not nodes:
            return True
        size = self.workers_per_node.get(accelerator)
        if size is not None:
            return scale_factor <= size * nodes
        counts = Counter(one for one in self.machine_of.get(accelerator, ()) if one != UNCOUNTED)
        room = [count for _, count in counts.most_common(nodes)] if counts else [self.workers[accelerator]]
        return scale_factor <= sum(room)

    def has_room(self, accelerator: str, scale_factor: int, cpus: float, memory_bytes: float) -> bool:
        """Whether the machines of a type could hold a gang that asks for so much in all, if nothing else ran there."""
        numbers = self.machine_of.get(accelerator)
        if numbers is None or not (cpus or memory_bytes):
            return True
        room = 0
        for machine in set(numbers):
            size = Machine() if machine == UNCOUNTED else self.machines[machine]
            workers = numbers.count(machine)
            parts = [
                most * scale_factor / asked
                for most, asked in ((size.cpus, cpus), (size.memory_bytes, memory_bytes))
                if asked
            ]
            room += int(min(workers, *(part + _ROUNDING for part in parts)))
        return room >= scale_factor

    def largest_machine(self, accelerators: Sequence[str]) -> str:
        """What the largest of the machines of some types has, in words."""
        machines = [
            self.machines[number] for name in accelerators for number in self.machine_of.get(name, ()) if number >= 0
        ]
        most = max(machines, key=lambda one: (one.cpus, one.memory_bytes), default=Machine())
        return resources_in_words(*(0.0 if math.isinf(has) else has for has in (most.cpus, most.memory_bytes)))


def resources_in_words(cpus: float, memory_bytes: float) -> str:
    """So many CPUs and so much memory; what is 0 is left out."""
    parts = [f"{cpus:g} CPU{'s' * (cpus != 1)}"] if cpus else []
    if memory_bytes:
        parts.append(f"{memory_bytes / 2**30:.3g} GiB of memory")
    return " and ".join(parts) or "nothing"


def nodes_as_machines(
    workers: Mapping[str, int],
    workers_per_node: Mapping[str, int],
    cpus: Mapping[str, float],
    memory_bytes: Mapping[str, float],
) -> tuple[tuple[Machine, ...], dict[str, tuple[int, ...]]]:
    """The machines of a cluster whose nodes have so much, by accelerator type, and which of them each worker is in."""
    machines: list[Machine] = []
    machine_of: dict[str, tuple[int, ...]] = {}
    for name in [name for name in workers if name in cpus or name in memory_bytes]:
        size, first = workers_per_node.get(name, max(workers[name], 1)), len(machines)
        machine_of[name] = tuple(first + worker // size for worker in range(workers[name]))
        nodes = -(-workers[name] // size)
        machines += [Machine(cpus.get(name, math.inf), memory_bytes.get(name, math.inf))] * nodes
    return tuple(machines), machine_of


def _names(names: Mapping[str, object] | list[str]) -> str:
    return ", ".join(f"'{name}'" for name in names) or "none"
