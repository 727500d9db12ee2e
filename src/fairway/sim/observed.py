"""A scheduler with a stopwatch: how long each plan takes and, if wanted, how wrong what it saw of the others was."""

from __future__ import annotations

import time
from typing import ClassVar

import numpy as np

from fairway.place.plan import Draws, Plan, Request
from fairway.place.scheduler import Scheduler, WorkerRules
from fairway.place.state import StateTable, View
from fairway.sim.serving_recorder import ServingRecorder


class Observed:
    """Decides as the scheduler that it is given, and writes down what each plan took."""

    name: ClassVar[str] = "observed"

    def __init__(self, scheduler: Scheduler, table: StateTable, recorder: ServingRecorder) -> None:
        self._scheduler = scheduler
        self._table = table
        self._recorder = recorder
        self.rules: WorkerRules = scheduler.rules
        self.next_worker = scheduler.next_worker

    def plan(self, request: Request, view: View, now: float, draws: Draws) -> Plan:
        """The plan of the scheduler."""
        if self._recorder.keep:
            self._look(view, now)
        begin = time.perf_counter()
        plan = self._scheduler.plan(request, view, now, draws)
        self._recorder.decision_seconds.append(time.perf_counter() - begin)
        return plan

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
