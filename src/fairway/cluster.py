"""What the machines are: accelerator types with their counts, prices and node sizes.

A worker is one accelerator, named only by its type: any name will do. A gang of s workers always sits on one type; it
is consolidated when it fits on one node and spread over several nodes otherwise, where it may run at another rate
(Gavel §3.1, placement sensitivity).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from fairway.documents import shown
from fairway.errors import InputError
from fairway.magnitudes import FACTORS, MOST_WORKERS

_TYPE_AND_COUNT = re.compile(r"\s*([^=,\s]+)\s*=\s*([0-9]{1,100})\s*")


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
