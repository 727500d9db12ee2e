"""What the machines are: accelerator types with their counts, prices and node sizes.

A worker is one accelerator, named only by its type: any name will do. A gang of s workers always sits on one type; it
is consolidated when it fits on one node and spread over several nodes otherwise, where it may run at another rate
(Gavel §3.1, placement sensitivity).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from fairway.errors import InputError

_TYPE_AND_COUNT = re.compile(r"\s*([^=,\s]+)\s*=\s*(\d+)\s*")


@dataclass(frozen=True, slots=True)
class Cluster:
    """Counts, prices (dollars per worker and hour) and node sizes by accelerator type.

    `prices` is empty (nothing has a price) or names every type. A type without an entry in `workers_per_node` is flat:
    all of its workers count as one node.
    """

    workers: Mapping[str, int]
    prices: Mapping[str, float] = field(default_factory=dict)
    workers_per_node: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, count in self.workers.items():
            if not name:
                raise InputError("workers: an accelerator type has an empty name; give it one, such as 'v100'")
            if count != int(count) or count < 0:
                raise InputError(f"workers.{name}: {count} given, expected a whole number of at least 0")
        for name, price in self.prices.items():
            if name not in self.workers:
                raise InputError(f"prices.{name}: no such accelerator type; known: {_names(self.workers)}")
            if not (math.isfinite(price) and price > 0):
                raise InputError(f"prices.{name}: {price} given, expected dollars per hour above 0")
        unpriced = [name for name in self.workers if self.prices and name not in self.prices]
        if unpriced:
            raise InputError(f"prices: {_names(unpriced)} missing; price every accelerator type or none")
        for name, size in self.workers_per_node.items():
            if name not in self.workers:
                raise InputError(f"workers_per_node.{name}: no such accelerator type; known: {_names(self.workers)}")
            if size != int(size) or size < 1:
                raise InputError(f"workers_per_node.{name}: {size} given, expected a whole number of at least 1")

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
        return scale_factor <= self.workers_per_node.get(accelerator, self.workers[accelerator])


def _names(names: Mapping[str, object] | list[str]) -> str:
    return ", ".join(f"'{name}'" for name in names) or "none"
