"""Spreads tasks over the workers by the hash of request and stage, which everyone works out alike."""

from __future__ import annotations

import numpy as np

from fairway.place.plan import Request
from fairway.place.planner import no_place
from fairway.place.state import ABSENT, View

_MASK = 2**64 - 1


def spread_worker(request: Request, stage: int, view: View, part: float | None = None) -> int:
    """The worker of one task: at this part, from [0, 1), of the row of workers; without one, where its hash falls.

    If that worker has left or cannot run the task, the rest of them are the row.
    """
    able = request.graph.runnable[stage]
    workers = len(able)
    worker = _place(request, stage, part, workers)
    if able[worker] and view.queued[worker] != ABSENT:
        return worker
    others = np.flatnonzero(able & (view.queued != ABSENT))
    if not len(others):
        raise no_place(request, stage)
    return int(others[_place(request, stage, part, len(others))])


def _place(request: Request, stage: int, part: float | None, workers: int) -> int:
    return _mixed(request.key, stage) % workers if part is None else int(part * workers)


def _mixed(key: int, stage: int) -> int:
    """A number that two keys or stages rarely share a remainder of (the finisher of SplitMix64)."""
    mixed = (key * 0x9E3779B97F4A7C15 + stage * 0xD1B54A32D192ED03 + 0x632BE59BD9B4E019) & _MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
    return mixed ^ (mixed >> 31)
