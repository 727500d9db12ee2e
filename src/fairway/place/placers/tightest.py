"""Tightest: a batch runs where what it leaves unused is worth least, at the prices of CPUs and slices (INFless)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fairway.place.batch import Batch, Room
from fairway.place.fits import least_left
from fairway.place.placer import COPIES_RULES, WorkerRules
from fairway.place.plan import Draws
from fairway.place.state import View


@dataclass(frozen=True, slots=True)
class Tightest:
    """Run a batch where what stays free of the worker is worth least, whether its model is there or not."""

    name: ClassVar[str] = "tightest"

    @property
    def rules(self) -> WorkerRules:
        """The longest unused model goes first."""
        return COPIES_RULES

    def place_batch(self, batch: Batch, room: Room, view: View, now: float, draws: Draws) -> int:  # noqa: ARG002
        """The worker for a batch, `NOWHERE` if it fits on none."""
        among = batch.graph.runnable[batch.stage]
        prices = (room.cpu_price, room.gpu_price)
        return int(least_left(room.cpu, room.gpu, batch.cpu, batch.gpu, among, *prices))
