"""What an application that is served did lately, as the saved run that the simulator would have written of it.

Each worker keeps its newest requests, runs of stages, and models that came and went (`runtime.recent`), by a clock of
its own; here they come together on one clock. A request that has not ended is unfinished, with the stages that ran.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fairway.configure.budgets.stages import stage_budgets
from fairway.dashboard.of_serving import saved_serving
from fairway.dashboard.run_file import document
from fairway.live.serving.application.definition import Application, ServedWorkflow
from fairway.live.serving.supervise.settings import ServingSettings
from fairway.report.serving.record import (
    CopyColumns,
    Power,
    RequestColumns,
    RequestOutcome,
    RunColumns,
    ServingRecord,
    StalenessColumns,
    WorkerColumns,
    WorkflowFacts,
)

ORIGIN = {
    "kind": "live",
    "meaning": "The newest requests of an application while it was served, as its workers have written them down.",
}
_OUTCOMES = {"replied": RequestOutcome.COMPLETED}


def served_history(
    application: Application,
    settings: ServingSettings,
    recent: Mapping[int, Mapping[str, Any]],
    tallies: Mapping[int, Mapping[str, Any]],
) -> dict[str, Any]:
    """The document of a saved run; `recent` and `tallies` are what each process that answers says of itself."""
    today = time.time()
    rows = [
        _Told(number, told, today - told["now"]) for number, told in sorted(recent.items()) if number < settings.workers
    ]
    planner = [
        _Told(number, told, today - told["now"]) for number, told in recent.items() if number >= settings.workers
    ]
    record, begins = _record(application, settings, [*rows, *planner], tallies, today)
    run = saved_serving(record)
    run["begins_at"], run["emulated"] = begins, settings.emulated
    run["summary"] |= {"energy_joules": None, "utilization": None}
    return document([run], origin=ORIGIN)


class _Told:
    """What one process says, and what its clock has to be put forward by to show seconds since 1970."""

    def __init__(self, number: int, told: Mapping[str, Any], ahead: float) -> None:
        self.number, self.ahead = number, ahead
        self.requests, self.stages, self.models = told["requests"], told["stages"], told["models"]


def _record(
    application: Application,
    settings: ServingSettings,
    all_told: Sequence[_Told],
    tallies: Mapping[int, Mapping[str, Any]],
    today: float,
) -> tuple[ServingRecord, float]:
    requests: dict[int, tuple[float, float, int, RequestOutcome]] = {}
    for told in all_told:
        for key, workflow, came, ended, outcome in told.requests:
            how = _OUTCOMES.get(outcome, RequestOutcome.REFUSED)
            requests[key] = (came + told.ahead, ended + told.ahead, workflow, how)
    oldest = min((came for came, *_ in requests.values()), default=today)
    stages = [
        (told, row) for told in all_told for row in told.stages if row[0] in requests or row[4] + told.ahead >= oldest
    ]
    for told, (key, workflow, _, _, queued, *_) in stages:
        if key not in requests:
            requests[key] = (queued + told.ahead, math.nan, workflow, RequestOutcome.UNFINISHED)
    order = sorted(requests, key=lambda key: requests[key][0])
    position = {key: number for number, key in enumerate(order)}
    begins = min((requests[key][0] for key in order), default=today)
    facts = tuple(map(_facts, application.workflows.values()))
    arrival, finish, workflow, outcome = (
        zip(*(requests[key] for key in order), strict=True) if order else ((), (), (), ())
    )
    models = tuple(application.models)
    return (
        ServingRecord(
            scheduler=settings.scheduler,
            settings={"application": application.name, "workers": settings.workers, "scheduler": settings.scheduler},
            workflows=facts,
            models=models,
            requests=RequestColumns(
                arrival=np.array(arrival, dtype=float) - begins,
                finish=np.array(finish, dtype=float) - begins,
                workflow=np.array(workflow, dtype=np.int64),
                outcome=np.array(outcome, dtype=np.int64),
                asked=np.ones(len(order), dtype=np.int64),
                counted=np.ones(len(order), dtype=np.bool_),
                of=facts,
            ),
            workers=_workers(settings, stages, tallies),
            runs=_runs(stages, position, begins),
            copies=_copies(all_told, models, begins),
            staleness=StalenessColumns(np.zeros(0), np.zeros(0), np.zeros(0)),
            end_seconds=max(today - begins, 0.0),
            decision_seconds=np.zeros(0),
            events=0,
            wall_seconds=0.0,
            power=Power(0.0, 0.0, 0.0),
        ),
        begins,
    )


def _facts(served: ServedWorkflow) -> WorkflowFacts:
    workflow = served.workflow
    return WorkflowFacts(
        served.name,
        workflow.critical_path().seconds,
        math.inf if served.slo_seconds is None else served.slo_seconds,
        tuple(stage.name for stage in workflow.stages),
        tuple(stage for stage, before in enumerate(workflow.predecessors) if not before),
        tuple((one, stage) for stage, before in enumerate(workflow.predecessors) for one in before),
        () if served.slo_seconds is None else stage_budgets(workflow, served.slo_seconds),
    )


def _workers(
    settings: ServingSettings, stages: Sequence[tuple[_Told, Any]], tallies: Mapping[int, Mapping[str, Any]]
) -> WorkerColumns:
    count = settings.workers
    busy, tasks = np.zeros(count), np.zeros(count, dtype=np.int64)
    for told, row in stages:
        if row[8] == 0 and told.number < count:
            busy[told.number] += row[6] - row[5]
            tasks[told.number] += 1
    counted = {
        fact: np.array([tallies.get(number, {}).get(fact, 0) for number in range(count)], dtype=np.int64)
        for fact in ("hits", "misses", "loads", "evictions")
    }
    nothing, ones = np.zeros(count, dtype=np.int64), np.ones(count, dtype=np.int64)
    return WorkerColumns(
        names=tuple(f"w{number}" for number in range(count)),
        accelerators=("emulated" if settings.emulated else "gpu",) * count,
        busy_seconds=busy,
        copy_seconds=np.zeros(count),
        tasks=tasks,
        hits=counted["hits"],
        partial=nothing,
        misses=counted["misses"],
        fetches=counted["loads"],
        evictions=counted["evictions"],
        awaited=nothing,
        runs=tasks,
        cpus=ones,
        slices=ones,
    )


def _runs(stages: Sequence[tuple[_Told, Any]], position: Mapping[int, int], begins: float) -> RunColumns:
    def whole(values: Sequence[int]) -> Any:
        return np.array(values, dtype=np.int64)

    def real(place: int) -> Any:
        return np.array([row[place] + told.ahead - begins for told, row in stages], dtype=float)

    count = len(stages)
    zeros, ones = np.zeros(count), np.ones(count, dtype=np.int64)
    return RunColumns(
        worker=whole([told.number for told, _ in stages]),
        request=whole([position[row[0]] for _, row in stages]),
        stage=whole([row[2] for _, row in stages]),
        found=whole([row[3] for _, row in stages]),
        batch=whole([row[7] for _, row in stages]),
        member=whole([row[8] for _, row in stages]),
        planned=whole([row[7] for _, row in stages]),
        cpu=ones,
        gpu=ones,
        kind=np.zeros(count, dtype=np.int64),
        local=ones,
        queued=real(4),
        turn=real(5),
        start=real(5),
        end=real(6),
        overhead=zeros,
        fetch=zeros,
        cost=zeros,
    )


def _copies(all_told: Sequence[_Told], models: Sequence[str], begins: float) -> CopyColumns:
    number = {name: place for place, name in enumerate(models)}
    rows = [
        (told.number, number[model], evicted, start + told.ahead - begins, end + told.ahead - begins)
        for told in all_told
        for model, evicted, start, end in told.models
        if model in number and end + told.ahead >= begins
    ]
    return CopyColumns(
        worker=np.array([row[0] for row in rows], dtype=np.int64),
        model=np.array([row[1] for row in rows], dtype=np.int64),
        evicted=np.array([row[2] for row in rows], dtype=np.bool_),
        ahead=np.zeros(len(rows), dtype=np.bool_),
        start=np.array([max(row[3], 0.0) for row in rows], dtype=float),
        end=np.array([row[4] for row in rows], dtype=float),
    )
