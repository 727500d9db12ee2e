"""What is asked for of a node: so many accelerators, or so large a part of each, with CPUs and memory beside them.

Room is counted in thousandths of an accelerator, so that sums are exact. A whole accelerator is one on which nothing
else sits; parts of several jobs may sit on one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from fairway.allocate.arrays import FloatArray, IntArray
from fairway.errors import InputError

WHOLE = 1000
"""The thousandths of a whole accelerator."""

EVERY_KIND = -1
"""Instead of bits: a request that nodes of any kind will do for."""

MOST_KINDS = 62
"""Kinds of nodes that requests can tell apart."""


@dataclass(frozen=True, slots=True)
class Request:
    """So many accelerators of one node, `part` thousandths of each; `cpus` and `memory_bytes` are those of all of it.

    `kinds` has a bit for each kind of node that will do.
    """

    count: int = 1
    part: int = WHOLE
    cpus: float = 0.0
    memory_bytes: float = 0.0
    kinds: int = EVERY_KIND

    def __post_init__(self) -> None:
        if self.count < 1:
            raise InputError(f"count: {self.count} given, expected at least 1 accelerator")
        if not 1 <= self.part <= WHOLE:
            raise InputError(f"part: {self.part} given, expected thousandths of an accelerator from 1 to {WHOLE}")


@dataclass(frozen=True, slots=True, eq=False)
class Mix:
    """What jobs on the whole ask for: requests, and which part of all jobs makes each (M of FGD, ATC'23, section 3).

    Columns, for compiled code.
    """

    counts: IntArray
    parts: IntArray
    cpus: FloatArray
    memory: FloatArray
    kinds: IntArray
    weights: FloatArray

    @classmethod
    def of(cls, requests: Mapping[Request, float] | Iterable[Request], *, most: int = 128) -> Mix:
        """Of requests with how often each is made, or one by one; of the most frequent, at most so many."""
        counted: dict[Request, float] = {}
        if isinstance(requests, Mapping):
            counted = dict(requests)
        else:
            for request in requests:
                counted[request] = counted.get(request, 0.0) + 1.0
        chosen = sorted(counted, key=lambda one: -counted[one])[:most]
        total = math.fsum(counted[one] for one in chosen) or 1.0
        return cls(
            np.array([one.count for one in chosen], dtype=np.int64),
            np.array([one.part for one in chosen], dtype=np.int64),
            np.array([one.cpus for one in chosen], dtype=float),
            np.array([one.memory_bytes for one in chosen], dtype=float),
            np.array([one.kinds for one in chosen], dtype=np.int64),
            np.array([counted[one] / total for one in chosen], dtype=float),
        )

    def __len__(self) -> int:
        return len(self.counts)
