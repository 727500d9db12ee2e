"""Writes down a run of requests as it happens, in columns that become a `ServingRecord`."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from fairway.configure.budgets.stages import stage_budgets
from fairway.engine.serving.messages import Why
from fairway.place.fleet import Fleet
from fairway.report.serving.record import (
    CopyColumns,
    FloatArray,
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
from fairway.workflows import Workflow

_MOST_REASONS = 20


class Share(NamedTuple):
    """What a run held: planned for so many tasks, on so many CPUs and slices, which are that part of its worker.

    `kind` is a position in `KINDS`; a run that was planned for as many tasks as it had says 0.
    """

    planned: int
    cpu: int
    gpu: int
    kind: int
    part: float


WHOLE_WORKER = Share(0, 1, 1, 0, 1.0)


class Member(NamedTuple):
    """A task of a run: its request, what it found in memory, when it joined the queue and had its turn.

    `local` is 1 if its inputs were on the worker.
    """

    request: int
    found: int
    queued: float
    turn: float
    local: int = 0


class ServingRecorder:
    """Sums by worker and, if they are to be kept, every run, copy and look at the others."""

    __slots__ = (
        "_copies",
        "_real",
        "_whole",
        "along",
        "asked",
        "awaited",
        "busy_seconds",
        "copy_seconds",
        "cost",
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

    def __init__(self, workers: int, requests: int, *, keep: bool, priced: bool = False) -> None:
        self.keep = keep
        self.busy_seconds = [0.0] * workers
        self.copy_seconds = [0.0] * workers
        self.cut_short = [0] * workers
        self.along = [0] * workers
        self.fetches = [0] * workers
        self.awaited = [0] * workers
        self.evictions = [0] * workers
        # Misses, hits, partial and, last as its number is -1, without a model: the numbers of `messages`.
        self.found = [[0] * workers for _ in range(4)]
        self.finish = array("d", [np.nan]) * requests
        self.outcome = array("b", [RequestOutcome.UNFINISHED]) * requests
        self.asked = array("i", [0]) * requests
        self.cost = array("d", [0.0]) * requests if priced else None
        self.decision_seconds = array("d")
        self.refusals: list[str] = []
        self.seen: list[tuple[float, float, float]] = []
        self._whole, self._real = array("q"), array("d")
        self._copies: list[tuple[int, int, bool, bool, float, float]] = []

    def ran(
        self, worker: int, request: int, stage: int, found: int, queued: float, turn: float, start: float, end: float
    ) -> None:
        """A task runs alone on a whole worker; `found` is what it found in memory."""
        self.busy_seconds[worker] += end - start
        self.found[found][worker] += 1
        if self.keep:
            self._whole.extend((worker, request, stage, found, 1, 0, 1, 1, 1, 0, 0))
            self._real.extend((queued, turn, start, end, 0.0, 0.0, 0.0))

    def ran_together(
        self,
        worker: int,
        stage: int,
        start: float,
        end: float,
        members: Sequence[Member],
        share: Share = WHOLE_WORKER,
        overhead: float = 0.0,
        fetch: float = 0.0,
        bill: float = 0.0,
    ) -> None:
        """Several tasks run at once, on a share of the worker; `bill` is what they pay together."""
        count = len(members)
        planned, cpu, gpu, kind, part = share
        self.busy_seconds[worker] += part * (end - start)
        self.along[worker] += count - 1
        paid, cost = bill / count, self.cost
        for position, (request, found, queued, turn, local) in enumerate(members):
            self.found[found][worker] += 1
            if cost is not None:
                cost[request] += paid
            if self.keep:
                self._whole.extend(
                    (worker, request, stage, found, count, position, planned or count, cpu, gpu, kind, local)
                )
                self._real.extend((queued, turn, start, end, overhead, fetch, paid))

    def cut(self, worker: int, at: float, end: float, tasks: int = 1, part: float = 1.0) -> None:
        """Tasks that were to run until `end`, together if they are several, stopped with their worker."""
        self.busy_seconds[worker] -= part * (end - at)
        self.cut_short[worker] += tasks
        self.along[worker] -= tasks - 1
        if self.keep:
            whole, real = len(RunColumns.WHOLE), len(RunColumns.REAL)
            ends = RunColumns.REAL.index("end")
            own = [row for row in range(len(self._whole) // whole) if self._whole[row * whole] == worker]
            for row in [row for row in own if self._real[row * real + ends] == end][-tasks:]:
                self._real[row * real + ends] = at

    def fetched(self, worker: int, model: int, start: float, end: float, why: Why = "task") -> None:
        """A model is copied to a worker's memory: for a task, for a job that waits in its queue, or ahead of any."""
        self.fetches[worker] += 1
        if why == "job":
            self.awaited[worker] += 1
        self.copy_seconds[worker] += end - start
        if self.keep:
            self._copies.append((worker, model, False, why == "ahead", start, end))

    def evicted(self, worker: int, model: int, start: float, end: float) -> None:
        """A model goes; where it is copied back first, from `start` to `end`."""
        self.evictions[worker] += 1
        self.copy_seconds[worker] += end - start
        if self.keep:
            self._copies.append((worker, model, True, False, start, end))

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
        for at in range(RunColumns.WHOLE.index("request"), len(self._whole), len(RunColumns.WHOLE)):
            self._whole[at] = positions[self._whole[at]]

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
        window: tuple[float, float] | None = None,
        noise: float | None = None,
    ) -> ServingRecord:
        """Everything, as columns; in averages, requests count that arrive in the window, or all but the first part.

        Where there is `noise`, one engine plans with a configurator, and tasks wait there.
        """
        runs = self._run_columns()
        if noise is not None:
            runs = replace(runs, queued=np.minimum(_ready(runs, scenario, arrivals), runs.queued))
        tasks = np.array(self.found, dtype=np.int64).sum(axis=0) - np.array(self.cut_short, dtype=np.int64)
        counted = np.ones(len(arrivals), dtype=bool)
        if window is None:
            counted[: int(discard * len(arrivals))] = False
        else:
            counted &= (arrivals.time >= window[0]) & (arrivals.time < window[1])
        facts = tuple(self._facts(workflow, scenario, slo_scale) for workflow in scenario.workflows)
        return ServingRecord(
            scheduler=scheduler,
            settings=settings,
            workflows=facts,
            models=tuple(model.name for model in fleet.models),
            requests=RequestColumns(
                arrival=arrivals.time,
                finish=np.array(self.finish),
                workflow=arrivals.workflow,
                outcome=np.array(self.outcome, dtype=np.int64),
                asked=np.array(self.asked, dtype=np.int64),
                counted=counted,
                cost=None if self.cost is None else np.array(self.cost),
                of=facts,
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
                awaited=np.array(self.awaited, dtype=np.int64),
                runs=tasks - np.array(self.along, dtype=np.int64),
                cpus=np.array([worker.cpus for worker in fleet.workers], dtype=np.int64),
                slices=np.array([worker.slices for worker in fleet.workers], dtype=np.int64),
            ),
            runs=runs,
            copies=self._copy_columns(),
            staleness=StalenessColumns(*np.array(self.seen, dtype=float).reshape(len(self.seen), 3).T),
            end_seconds=end,
            decision_seconds=np.array(self.decision_seconds),
            events=events,
            wall_seconds=wall_seconds,
            power=scenario.power,
            dollars_per_hour=scenario.price(),
            refusals=tuple(self.refusals),
            window=window,
            noise=noise,
        )

    def _facts(self, workflow: Workflow, scenario: Scenario, slo_scale: float) -> WorkflowFacts:
        """What stays the same for all requests; budgets are for the page, which shows every run."""
        slo_seconds = slo_scale * scenario.slo_of(workflow)
        budgets: tuple[float, ...] = ()
        if self.keep:
            budgets = stage_budgets(workflow, slo_seconds, None, scenario.profiles.get(workflow.name))
        return WorkflowFacts(
            workflow.name,
            workflow.critical_path().seconds,
            slo_seconds,
            tuple(stage.name for stage in workflow.stages),
            tuple(stage for stage, before in enumerate(workflow.predecessors) if not before),
            tuple((one, stage) for stage, before in enumerate(workflow.predecessors) for one in before),
            budgets,
        )

    def _run_columns(self) -> RunColumns:
        whole = np.array(self._whole, dtype=np.int64).reshape(-1, len(RunColumns.WHOLE)).T
        real = np.array(self._real, dtype=np.float64).reshape(-1, len(RunColumns.REAL)).T
        columns: dict[str, Any] = dict(zip((*RunColumns.WHOLE, *RunColumns.REAL), (*whole, *real), strict=True))
        return RunColumns(**columns)

    def _copy_columns(self) -> CopyColumns:
        columns = np.array(self._copies, dtype=float).reshape(len(self._copies), 6).T
        worker, model = columns[:2].astype(np.int64)
        return CopyColumns(worker, model, columns[2] > 0, columns[3] > 0, columns[4], columns[5])


def _ready(runs: RunColumns, scenario: Scenario, arrivals: Arrivals) -> FloatArray:
    """By task, when all that it takes was there: since then it has waited, wherever that was."""
    before = [workflow.predecessors for workflow in scenario.workflows]
    workflows, times = arrivals.workflow.tolist(), arrivals.time.tolist()
    ended = [[-math.inf] * len(before[workflow]) for workflow in workflows]
    ready = []
    for request, stage, end in zip(runs.request.tolist(), runs.stage.tolist(), runs.end.tolist(), strict=True):
        own = ended[request]
        last = max([own[source] for source in before[workflows[request]][stage]], default=-math.inf)
        ready.append(times[request] if last == -math.inf else last)
        own[stage] = end
    return np.array(ready)
