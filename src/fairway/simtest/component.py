"""What a part of the live system offers to be simulated: generators of plans, and a way to run one and judge it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Protocol

from fairway.simtest.plan import Plan

Generator = Callable[[int, Random], Plan]
"""Draws a plan; the number is the seed that the plan gets."""


@dataclass(frozen=True, slots=True)
class History:
    """What came of a plan.

    `faults` counts those that took effect, by kind; `events` is how many things happened; `digest` is the same for the
    same history; `violations` says which promise was broken, in a sentence each, with the thing it was broken to.
    """

    faults: Mapping[str, int]
    events: int
    digest: str
    violations: tuple[str, ...]


class Component(Protocol):
    """A part of the live system; its generators are called `uniform`, `swarm` and `adversarial`, at least."""

    name: str
    generators: Mapping[str, Generator]

    def run(self, plan: Plan) -> History:
        """Run a plan from an empty world to its quiet end, and judge what happened; never raises for what it finds."""
        ...
