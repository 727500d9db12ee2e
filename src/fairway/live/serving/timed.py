"""A scheduler with a stopwatch: how long its decisions take, which every request waits for."""

from __future__ import annotations

import time
from typing import ClassVar

from fairway.live.serving.tally import Histogram
from fairway.place.plan import Draws, Plan, Request
from fairway.place.scheduler import Scheduler, WorkerRules
from fairway.place.state import View


class Timed:
    """Decides as the scheduler that it is given, and counts what each plan and each next worker took."""

    name: ClassVar[str] = "timed"

    def __init__(self, scheduler: Scheduler, times: Histogram) -> None:
        self._scheduler = scheduler
        self._times = times
        self.rules: WorkerRules = scheduler.rules

    def plan(self, request: Request, view: View, now: float, draws: Draws) -> Plan:
        """The plan of the scheduler."""
        began = time.perf_counter()
        plan = self._scheduler.plan(request, view, now, draws)
        self._times.add(time.perf_counter() - began)
        return plan

    def next_worker(
        self,
        request: Request,
        stage: int,
        planned: int,
        view: View,
        now: float,
        draws: Draws,
        *,
        gathered: bool = False,
    ) -> int:
        """The worker that the scheduler chooses."""
        began = time.perf_counter()
        worker = self._scheduler.next_worker(request, stage, planned, view, now, draws, gathered=gathered)
        self._times.add(time.perf_counter() - began)
        return worker
