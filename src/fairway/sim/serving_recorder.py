"""Writes down a run of requests as it happens, in columns that become a `ServingRecord`."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fairway.place.fleet import Fleet
from fairway.report.serving_record import (
    CopyColumns,
    RequestColumns,
    RequestOutcome,
    RunColumns,
    ServingRecord,
    StalenessColumns,
    WorkerColumns,
    WorkflowFacts,
)
from fairway.sim.arrivals import Arrivals
from fairway.sim.scenario import Scenario

_MOST_REASONS = 20


class ServingRecorder:
    """Sums by worker and, if they are to be kept, every run, copy and look at the others."""

    __slots__ = (
        "_copies",
        "_runs",
        "along",
        "asked",
        "busy_seconds",
        "copy_seconds",
        "cut_short",
        "decision_seconds",
        "evictions",
        "fetches",
        "finish",
        "found",
        "keep",
        "outcome",
        "refusals",
        "seen",
    )

    def __init__(self, workers: int, requests: int, *, keep: bool) -> None:
        self.keep = keep
        self.busy_seconds = [0.0] * workers
        self.copy_seconds = [0.0] * workers
        self.cut_short = [0] * workers
        self.along = [0] * workers
        self.fetches = [0] * workers
        self.evictions = [0] * workers
        # Misses, hits, partial and, last as its number is -1, without a model: the numbers of `serving_messages`.
        self.found = [[0] * workers for _ in range(4)]
        self.finish = array("d", [np.nan]) * requests
        self.outcome = array("b", [RequestOutcome.UNFINISHED]) * requests
        self.asked = array("i", [0]) * requests
        self.decision_seconds = array("d")
        self.refusals: list[str] = []
        self.seen: list[tuple[float, float, float]] = []
        self._runs: list[tuple[int, int, int, int, float, float, float, float, int]] = []
        self._copies: list[tuple[int, int, bool, float, float]] = []

    def ran(
        self, worker: int, request: int, stage: int, found: int, queued: float, turn: float, start: float, end: float
    ) -> None:
        """A task runs; `found` is what it found in memory."""
        self.busy_seconds[worker] += end - start
        self.found[found][worker] += 1
        if self.keep:
            self._runs.append((worker, request, stage, found, queued, turn, start, end, 1))

    def ran_together(
        self, worker: int, stage: int, start: float, end: float, members: Sequence[tuple[int, int, float, float]]
    ) -> None:
        """Several tasks run at once; of each, the request, what it found, when it joined the queue and its turn."""
        self.busy_seconds[worker] += end - start
        self.along[worker] += len(members) - 1
        for request, found, queued, turn in members:
            self.found[found][worker] += 1
            if self.keep:
                self._runs.append((worker, request, stage, found, queued, turn, start, end, len(members)))

    def cut(self, worker: int, at: float, end: float, tasks: int = 1) -> None:
        """Tasks that were to run until `end`, together if they are several, stopped with their worker."""
        self.busy_seconds[worker] -= end - at
        self.cut_short[worker] += tasks
        self.along[worker] -= tasks - 1
        if self.keep:
            own = [position for position, run in enumerate(self._runs) if run[0] == worker]
            for position in own[-tasks:]:
                run = self._runs[position]
                self._runs[position] = (*run[:7], at, run[8])

    def fetched(self, worker: int, model: int, start: float, end: float) -> None:
        """A model is copied to a worker's accelerator."""
        self.fetches[worker] += 1
        self.copy_seconds[worker] += end - start
        if self.keep:
            self._copies.append((worker, model, False, start, end))

    def evicted(self, worker: int, model: int, start: float, end: float) -> None:
        """A model goes; where it is copied back first, from `start` to `end`."""
        self.evictions[worker] += 1
        self.copy_seconds[worker] += end - start
        if self.keep:
            self._copies.append((worker, model, True, start, end))

    def refused(self, reason: str) -> None:
        """A request was refused; of the reasons, the first few are kept."""
        if len(self.refusals) < _MOST_REASONS:
            self.refusals.append(reason)

    def reorder(self, order: Sequence[int]) -> None:
        """Number the requests anew: the first is the one that had the first of these numbers."""
        self.finish = array("d", [self.finish[number] for number in order])
        self.outcome = array("b", [self.outcome[number] for number in order])
        self.asked = array("i", [self.asked[number] for number in order])
        positions = {number: position for position, number in enumerate(order)}
        self._runs = [(run[0], positions[run[1]], *run[2:]) for run in self._runs]

    def record(
        self,
        *,
        scheduler: str,
        scenario: Scenario,
        fleet: Fleet,
        arrivals: Arrivals,
        settings: Mapping[str, Any],
        discard: float,
        slo_scale: float,
        end: float,
        events: int,
        wall_seconds: float,
    ) -> ServingRecord:
        """Everything, as columns; the first part of the requests does not count in averages."""
        tasks = np.array(self.found, dtype=np.int64).sum(axis=0) - np.array(self.cut_short, dtype=np.int64)
        counted = np.ones(len(arrivals), dtype=bool)
        counted[: int(discard * len(arrivals))] = False
        return ServingRecord(
            scheduler=scheduler,
            settings=settings,
            workflows=tuple(
                WorkflowFacts(
                    workflow.name,
                    workflow.critical_path().seconds,
                    slo_scale * scenario.slo_of(workflow),
                    tuple(stage.name for stage in workflow.stages),
                )
                for workflow in scenario.workflows
            ),
            models=tuple(model.name for model in fleet.models),
            requests=RequestColumns(
                arrival=arrivals.time,
                finish=np.array(self.finish),
                workflow=arrivals.workflow,
                outcome=np.array(self.outcome, dtype=np.int64),
                asked=np.array(self.asked, dtype=np.int64),
                counted=counted,
            ),
            workers=WorkerColumns(
                names=tuple(worker.name for worker in fleet.workers),
                accelerators=tuple(worker.accelerator for worker in fleet.workers),
                busy_seconds=np.array(self.busy_seconds),
                copy_seconds=np.array(self.copy_seconds),
                tasks=tasks,
                hits=np.array(self.found[1], dtype=np.int64),
                partial=np.array(self.found[2], dtype=np.int64),
                misses=np.array(self.found[0], dtype=np.int64),
                fetches=np.array(self.fetches, dtype=np.int64),
                evictions=np.array(self.evictions, dtype=np.int64),
                runs=tasks - np.array(self.along, dtype=np.int64),
            ),
            runs=self._run_columns(),
            copies=self._copy_columns(),
            staleness=StalenessColumns(*np.array(self.seen, dtype=float).reshape(len(self.seen), 3).T),
            end_seconds=end,
            decision_seconds=np.array(self.decision_seconds),
            events=events,
            wall_seconds=wall_seconds,
            power=scenario.power,
            dollars_per_hour=scenario.price(),
            refusals=tuple(self.refusals),
        )

    def _run_columns(self) -> RunColumns:
        columns = np.array(self._runs, dtype=float).reshape(len(self._runs), 9).T
        worker, request, stage, found = columns[:4].astype(np.int64)
        queued, turn, start, end = columns[4:8]
        return RunColumns(worker, request, stage, found, queued, turn, start, end, columns[8].astype(np.int64))

    def _copy_columns(self) -> CopyColumns:
        columns = np.array(self._copies, dtype=float).reshape(len(self._copies), 5).T
        return CopyColumns(
            columns[0].astype(np.int64), columns[1].astype(np.int64), columns[2] > 0, columns[3], columns[4]
        )
