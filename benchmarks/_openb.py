"""The nodes and requests of Alibaba's GPU cluster trace of 2023, and what a rule makes of them.

As in the paper that the trace comes with (Weng et al., "Beware of Fragmentation", ATC'23, section 6), pods are drawn
from those of the trace, with replacement, and come one after the other, so fast that none ends before the cluster is
full.
"""

from __future__ import annotations

import csv
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fairway.allocate.packing.packer import Nodes, Packer, Rule
from fairway.allocate.packing.requests import WHOLE, Mix, Request

_FIGURES = Path(__file__).parent.parent / "tests" / "fixtures" / "alibaba"
_DEMAND = 1.3
"""Pods come until they have asked for so many times the GPUs that there are."""


@dataclass(frozen=True, slots=True)
class Openb:
    """Every node, what pods ask for, and how often each is asked for."""

    nodes: Nodes
    requests: tuple[Request, ...]
    counts: np.ndarray

    @property
    def mix(self) -> Mix:
        """What pods ask for on the whole."""
        return Mix.of(dict(zip(self.requests, self.counts.astype(float).tolist(), strict=True)))

    @property
    def gpus(self) -> int:
        """All GPUs."""
        return int(self.nodes.accelerators.sum())

    def drawn(self, generator: np.random.Generator, count: int) -> list[Request]:
        """So many pods by chance."""
        return [
            self.requests[one] for one in generator.choice(len(self.requests), count, p=self.counts / self.counts.sum())
        ]


def openb(every: int = 1) -> Openb:
    """The trace, or every so-many-th node of it."""
    rows = _rows("openb_nodes.csv")
    models = sorted({row["model"] for row in rows})
    repeats = [int(row["nodes"]) for row in rows]

    def column(values: list[float]) -> np.ndarray:
        return np.repeat(np.array(values), repeats)[::every]

    nodes = Nodes(
        column([int(row["gpus"]) for row in rows]).astype(np.int64),
        column([models.index(row["model"]) for row in rows]).astype(np.int64),
        column([int(row["cpus"]) / 1000 for row in rows]),
        column([float(row["memory"]) for row in rows]),
    )
    pods = _rows("openb_requests.csv")
    requests = tuple(
        Request(
            int(row["gpus"]),
            int(row["part"]),
            int(row["cpus"]) / 1000,
            float(row["memory"]),
            sum(1 << models.index(model) for model in row["models"].split("|")) if row["models"] else -1,
        )
        for row in pods
    )
    return Openb(nodes, requests, np.array([int(row["pods"]) for row in pods]))


@dataclass(frozen=True, slots=True)
class Filled:
    """A cluster that is full: GPUs that pods have as they asked for them, pods without room, and what is fragmented."""

    allocated: float
    asked: float
    placed: int
    failed: int
    fragmented: float


def filled(trace: Openb, rule: Rule, seed: int) -> Filled:
    """Let pods come by a rule until there is no room for what still comes."""
    packer = Packer(trace.nodes, trace.mix, rule)
    allocated = asked = 0.0
    placed = failed = 0
    for request in trace.drawn(np.random.default_rng(seed), int(trace.gpus * 4)):
        size = request.count * request.part / WHOLE
        if asked + size > _DEMAND * trace.gpus:
            break
        asked += size
        held = replace(request, part=WHOLE) if rule == "whole" else request
        places = packer.find(held)
        if places:
            packer.take(held, places)
            allocated += size
            placed += 1
        else:
            failed += 1
    return Filled(allocated, asked, placed, failed, packer.fragmented())


def seconds_of_placements(trace: Openb, rule: Rule, seed: int, count: int) -> tuple[float, float]:
    """CPU seconds for so many placements, and the part of the GPUs that is held in the end.

    The cluster is kept nearly full: where a pod finds no room, pods by chance leave until it does.
    """
    generator = np.random.default_rng(seed)
    packer, here = Packer(trace.nodes, trace.mix, rule), list[tuple[Request, tuple[int, ...]]]()
    drawn = trace.drawn(generator, 4096)
    leaves = generator.random(count * 2)
    packer.find(drawn[0])  # compiled by now
    placed = left = 0
    begin = time.process_time()
    while placed < count:
        request = drawn[placed % len(drawn)]
        places = packer.find(request)
        if places:
            packer.take(request, places)
            here.append((request, places))
            placed += 1
        else:
            position = int(leaves[left % len(leaves)] * len(here))
            left += 1
            here[position], here[-1] = here[-1], here[position]
            packer.give_back(*here.pop())
    return time.process_time() - begin, 1 - float(packer.room.sum()) / (WHOLE * trace.gpus)


def _rows(name: str) -> list[dict[str, str]]:
    with (_FIGURES / name).open() as file:
        next(file)  # where the figures come from
        return list(csv.DictReader(file))
