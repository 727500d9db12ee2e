"""A placer that is looked at: how long each plan takes and, if wanted, how wrong what it saw of the others was."""

from __future__ import annotations

import numpy as np

from fairway.place.placer import BatchPlacer
from fairway.place.plan import Draws, Plan, Request
from fairway.place.state import StateTable, View
from fairway.sim.serving_recorder import ServingRecorder
from fairway.stopwatch import TimedPlacer


class ObservedPlacer(TimedPlacer):
    """Decides as the placer that it is given, and writes down what each plan took."""

    def __init__(self, placer: BatchPlacer, table: StateTable, recorder: ServingRecorder) -> None:
        super().__init__(placer, recorder.decision_seconds.append)
        self._table = table
        self._recorder = recorder

    def plan(self, request: Request, view: View, now: float, draws: Draws) -> Plan:
        """The plan of the placer."""
        if self._recorder.keep:
            self._look(view, now)
        return super().plan(request, view, now, draws)

    def _look(self, view: View, now: float) -> None:
        """Compare what the planner sees of the others with their own rows."""
        queued, busy_until, cached = self._table.exact_rows()
        others = np.isfinite(queued) & np.isfinite(view.queued)
        if 0 <= view.me < len(others):
            others[view.me] = False
        if others.any():
            seen = view.queued[others] + np.maximum(view.busy_until[others] - now, 0.0)
            true = queued[others] + np.maximum(busy_until[others] - now, 0.0)
            wrong = view.cached[:, others] != cached[others].T
            self._recorder.seen.append(
                (now, float(np.abs(seen - true).mean()), float(wrong.mean() if wrong.size else 0))
            )
