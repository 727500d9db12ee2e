"""A plan: all that a simulated history does, drawn by a generator from a seed before it begins.

A plan is a value with one JSON form. Everything that it leaves open (how long a message takes, which bytes of a torn
write survive) is drawn from its seed while it runs, so the same plan gives the same history, to the last message. A
plan with some steps left out is a plan, too, which is what `shrinking` relies on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Step:
    """Something that happens at a moment of virtual time: of the workload, or a fault."""

    at: float
    what: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    is_fault: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """`settings` say what is simulated (how many workers, which policy); `steps` are in the order of their time."""

    component: str
    generator: str
    seed: int
    settings: Mapping[str, Any]
    steps: tuple[Step, ...]

    def to_dict(self) -> dict[str, Any]:
        """The plan in the form in which it is printed and read again."""
        return {
            "component": self.component,
            "generator": self.generator,
            "seed": self.seed,
            "settings": dict(self.settings),
            "steps": [
                {"at": s.at, "what": s.what, "arguments": dict(s.arguments), "is_fault": s.is_fault} for s in self.steps
            ],
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Plan:
        """A plan from its printed form."""
        steps = tuple(Step(**step) for step in document["steps"])
        return cls(**{**document, "steps": steps})
