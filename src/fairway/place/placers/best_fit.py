"""Best fit: a batch runs where it leaves the fewest slices unused, wherever its data is (FaST-GShare's placement)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fairway.place.batch import NOWHERE, Batch, Room
from fairway.place.fits import best_fit
from fairway.place.placer import COPIES_RULES, WorkerRules
from fairway.place.plan import Draws
from fairway.place.state import View


@dataclass(frozen=True, slots=True)
class BestFit:
    """Run a batch where the fewest slices, then the fewest CPUs stay free; where its model is there first."""

    name: ClassVar[str] = "best-fit"

    @property
    def rules(self) -> WorkerRules:
        """The longest unused model goes first."""
        return COPIES_RULES

    def place_batch(self, batch: Batch, room: Room, view: View, now: float, draws: Draws) -> int:  # noqa: ARG002
        """The worker for a batch, `NOWHERE` if it fits on none."""
        for among in batch.warm_first():
            worker = int(best_fit(room.cpu, room.gpu, batch.cpu, batch.gpu, among))
            if worker != NOWHERE:
                return worker
        return NOWHERE
