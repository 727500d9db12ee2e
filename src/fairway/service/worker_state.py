"""In which state a worker is, for people: the first of lost, drained, busy and free that applies."""

from __future__ import annotations

from typing import Literal, TypeAlias

from fairway.store.records import Worker

WorkerState: TypeAlias = Literal["free", "busy", "drained", "lost"]


def state_of(worker: Worker, *, held: bool) -> WorkerState:
    """What to say of a worker, which a lease holds or not; one that is lost or drained may still be held."""
    if worker.lost_at is not None:
        return "lost"
    if worker.drained_at is not None:
        return "drained"
    return "busy" if held else "free"
