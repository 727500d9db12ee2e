"""Hierarchical fairness: teams share by weight, and each divides its part by its own rule (Gavel §4.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fairway.allocate.policies.water_filling import WaterFilling


@dataclass(frozen=True, slots=True)
class Hierarchical(WaterFilling):
    """Water filling over the tree of entities, to any depth: `fairness` by weight or `fifo` inside each.

    The objective is the lowest amount of service per weight of any entity, or job without one, at the top of the tree.
    """

    name: ClassVar[str] = "hierarchical"
    flat: ClassVar[bool] = False
