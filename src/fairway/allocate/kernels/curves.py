"""Demand curves: how the rate that each job demands grows with a level that all share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from fairway.allocate.arrays import FloatArray


class Curve(Protocol):
    """Rates of one job of each class as a function of the level, none of them falling."""

    def at(self, level: float) -> tuple[FloatArray, FloatArray]:
        """The rate that each must have at this level, and by how much that rises with the level."""
        ...


class ConvexCurve(Curve, Protocol):
    """A curve on which a mixture of levels never demands more than the mixture of their demands."""

    def reached(self, rates: FloatArray) -> float:
        """The highest level whose demands these rates meet."""
        ...


@dataclass(frozen=True, slots=True)
class Multiple:
    """A rate that is a multiple of the level: max-min fairness, makespan."""

    per_level: FloatArray

    def at(self, level: float) -> tuple[FloatArray, FloatArray]:
        """The rate that each must have at this level, and by how much that rises with the level."""
        return self.per_level * level, self.per_level

    def reached(self, rates: FloatArray) -> float:
        """The lowest of the levels that each one's rate is enough for."""
        asks = self.per_level > 0
        return float((rates[asks] / self.per_level[asks]).min())
