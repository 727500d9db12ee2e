"""ESG_Dispatch: which worker runs a batch, first by where its data is, then by where it fits best (ESG §3.4).

A batch of an entry stage goes to its application's home or the next worker in steps; any other to a worker that holds
inputs of its jobs, most inputs first. Failing that, to the best fit: fewest slices left over, then fewest CPUs, then
the first. Where models can be missing, workers that have an idle copy go first in each of these, as a cold start takes
seconds and a fetch milliseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from fairway.place.arrays import BoolArray
from fairway.place.batch import NOWHERE, Batch, Room
from fairway.place.fits import best_fit, first_fit, step_of
from fairway.place.placer import COPIES_RULES, WorkerRules
from fairway.place.plan import Draws
from fairway.place.state import View


@dataclass(frozen=True, slots=True)
class NearData:
    """Run a batch where its inputs are, or near its application's home; else where it fits best."""

    name: ClassVar[str] = "near-data"

    @property
    def rules(self) -> WorkerRules:
        """The longest unused model goes first."""
        return COPIES_RULES

    def place_batch(self, batch: Batch, room: Room, view: View, now: float, draws: Draws) -> int:  # noqa: ARG002
        """The worker for a batch, `NOWHERE` if it fits on none."""
        step = step_of(len(room.cpu))
        for among in batch.warm_first():
            if not batch.sources:
                worker = int(first_fit(room.cpu, room.gpu, batch.cpu, batch.gpu, among, batch.home, step))
            else:
                worker = int(best_fit(room.cpu, room.gpu, batch.cpu, batch.gpu, among))
                if worker != NOWHERE:  # otherwise there is no need to look where the data is
                    worker = _near(batch, room, among, worker)
            if worker != NOWHERE:
                return worker
        return NOWHERE


def holders(sources: Sequence[tuple[int, ...]]) -> list[int]:
    """The workers that hold inputs of these jobs: most inputs first, between equals the lowest number."""
    if len(sources) == 1 and len(sources[0]) == 1:
        return [sources[0][0]]
    counts: dict[int, int] = {}
    for job in sources:
        for worker in job:
            counts[worker] = counts.get(worker, 0) + 1
    return sorted(counts, key=lambda worker: (-counts[worker], worker))


def _near(batch: Batch, room: Room, among: BoolArray, otherwise: int) -> int:
    """The first of the workers with inputs of a batch that it fits on."""
    for worker in holders(batch.sources):
        if among[worker] and room.cpu[worker] >= batch.cpu and room.gpu[worker] >= batch.gpu:
            return worker
    return otherwise
