"""The free room of nodes, and where a request goes in it by a rule: best fit, or fragmentation gradient descent.

What a placement would make of a node depends on that node alone, so it is worked out again only for nodes that have
changed since the same was asked for last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from fairway.allocate.arrays import FloatArray, IntArray
from fairway.allocate.packing.fragmentation import best_node, fragments, fullest, judge
from fairway.allocate.packing.requests import Mix, Request
from fairway.documents import shown
from fairway.errors import InputError

Rule = Literal["fgd", "best-fit", "whole"]
"""Where parts go: where least of the free room becomes useless, or where the least room is left.

By the last, a job that asks for a part gets a whole accelerator.
"""

RULES: tuple[Rule, ...] = get_args(Rule)


def rule_named(given: str) -> Rule:
    """The rule of this name."""
    for rule in RULES:
        if given == rule:
            return rule
    raise InputError(f"--packing: {shown(given)} given, expected one of {', '.join(RULES)}")


@dataclass(frozen=True, slots=True)
class Nodes:
    """Nodes in their order: accelerators of each, its kind (0 to 61), and the CPUs and the memory that are free."""

    accelerators: IntArray
    kinds: IntArray
    cpus: FloatArray
    memory_bytes: FloatArray

    @classmethod
    def alike(cls, nodes: int, accelerators: int) -> Nodes:
        """So many nodes with as many accelerators each, of one kind and with CPUs and memory without end."""
        return cls(
            np.full(nodes, accelerators),
            np.zeros(nodes, dtype=np.int64),
            np.full(nodes, np.inf),
            np.full(nodes, np.inf),
        )


@dataclass(frozen=True, slots=True)
class _Judged:
    """What it would be to place one request on each node, as of the version of the node."""

    version: IntArray
    growth: FloatArray
    fullness: FloatArray
    best_place: IntArray


class Packer:
    """`room` is what is free of each accelerator, in thousandths, node after node.

    `mix` is what jobs ask for, which only the gradient looks at.
    """

    def __init__(self, nodes: Nodes, mix: Mix, rule: Rule, room: IntArray | None = None) -> None:
        self._by_fragments = rule == "fgd"
        self._starts = np.concatenate([[0], np.cumsum(nodes.accelerators)]).astype(np.int64)
        self._kind = np.ascontiguousarray(nodes.kinds, dtype=np.int64)
        self._cpus, self._memory = nodes.cpus.astype(float), nodes.memory_bytes.astype(float)
        self._mix = (mix.counts, mix.parts, mix.cpus, mix.memory, mix.kinds, mix.weights)
        self.room: IntArray = np.full(int(self._starts[-1]), 1000) if room is None else room.astype(np.int64)
        size = len(self._kind)
        self._judged: dict[Request, _Judged] = {}
        self._version = np.zeros(size, dtype=np.int64)
        by_request = (size, len(mix))
        self._counted = (
            np.full(size, -1), np.zeros(by_request, np.int64), np.zeros(by_request, np.int64), np.zeros(size),
        )  # fmt: skip

    def find(self, request: Request) -> tuple[int, ...]:
        """The accelerators that a request gets, all on one node; none if no node can take it. Nothing is changed."""
        judged = self._up_to_date(request)
        node = best_node(judged.growth, judged.fullness)
        if node < 0:
            return ()
        if request.count == 1:
            return (int(judged.best_place[node]),)
        first, last = int(self._starts[node]), int(self._starts[node + 1])
        return tuple(fullest(self.room, first, last, request.count, request.part).tolist())

    def take(self, request: Request, places: tuple[int, ...]) -> None:
        """Let a request have these accelerators, which must be of one node and have the room."""
        self._change(request, places, -1)

    def give_back(self, request: Request, places: tuple[int, ...]) -> None:
        """A job has left."""
        self._change(request, places, 1)

    def fragmented(self) -> float:
        """The accelerators whose free room is of no use to what jobs ask for, on the whole: the sum of F_n(M)."""
        total = 0.0
        for node in range(len(self._kind)):
            first, last = int(self._starts[node]), int(self._starts[node + 1])
            kind, cpus, memory = int(self._kind[node]), float(self._cpus[node]), float(self._memory[node])
            total += fragments(self.room, first, last, kind, cpus, memory, *self._mix)
        return total / 1000

    def _change(self, request: Request, places: tuple[int, ...], sign: int) -> None:
        node = int(np.searchsorted(self._starts, places[0], side="right")) - 1
        for place in places:
            self.room[place] += sign * request.part
        self._cpus[node] += sign * request.cpus
        self._memory[node] += sign * request.memory_bytes
        self._version[node] += 1

    def _up_to_date(self, request: Request) -> _Judged:
        judged = self._judged.get(request)
        if judged is None:
            size = len(self._kind)
            judged = _Judged(np.full(size, -1), np.empty(size), np.empty(size), np.empty(size, dtype=np.int64))
            self._judged[request] = judged
        judge(
            self._by_fragments, self._version, judged.version,
            request.count, request.part, request.cpus, request.memory_bytes, request.kinds,
            self.room, self._starts, self._kind, self._cpus, self._memory, *self._mix, *self._counted,
            judged.growth, judged.fullness, judged.best_place,
        )  # fmt: skip
        return judged
