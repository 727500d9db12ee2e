"""A served application as floor 2 takes it: batches that workers make, and what the process that plans for all needs.

Under a scheduler that chooses configurations, and under any that is `centralised`, one process plans what clients ask
for; it is numbered after the workers, and its engine's number is `OUTSIDE`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from fairway.configure.configuration import Prices
from fairway.configure.fleet_plan import preempts
from fairway.configure.platform import Platform
from fairway.engine.serving.applications import application_on, profiles_at
from fairway.engine.serving.batch_rule import GraphBatches, graph_batches
from fairway.engine.serving.desk import DeskOptions
from fairway.engine.serving.forwarding import Shares
from fairway.engine.serving.schedule import Schedule
from fairway.engine.serving.stage_planning import planned_graphs
from fairway.errors import InputError
from fairway.live.serving.application.configurations import slo_of
from fairway.live.serving.application.definition import ServedWorkflow
from fairway.live.serving.application.links import LOCAL_LINKS
from fairway.place.fleet import Fleet
from fairway.place.graph import TaskGraph
from fairway.stopwatch import TimedConfigurator
from fairway.workflows import Stage, Workflow


def desk_options(
    schedule: Schedule,
    fleet: Fleet,
    workflows: Mapping[TaskGraph, ServedWorkflow],
    took: Callable[[float], None] = lambda _: None,
    *,
    plans: bool = False,
    shares: Shares = MappingProxyType({}),
) -> DeskOptions | None:
    """What an engine has to know of configurations, None if none are chosen; refuses workflows without an SLO.

    Where stages have `shares` of workers, batches have those. `took` gets the seconds of each decision; the process
    that `plans` decides once beforehand, so that all of its code is there.
    """
    if schedule.configurator is None:
        return None
    if preempts(schedule.configurator):
        raise InputError(
            f"--scheduler: {schedule.title} stops batches that run, which stages that run here cannot be; "
            f"use {schedule.configurator.name}:no-preemption"
        )
    worker = fleet.workers[0]
    return DeskOptions(
        TimedConfigurator(schedule.configurator, lambda seconds, *_: took(seconds), warms_up=plans),
        {
            graph: application_on(
                fleet.workers,
                LOCAL_LINKS,
                _as_it_runs(served),
                slo_of(served),
                key=number,
                profiles=profiles_at(_as_it_runs(served), worker.accelerator, shares[graph]) if shares else None,
            )
            for number, (graph, served) in enumerate(workflows.items())
        },
        Platform(Prices(0.0, 1.0), LOCAL_LINKS, 0.0, worker.cpus, worker.slices),
        all_present=False,
    )


def _as_it_runs(served: ServedWorkflow) -> Workflow:
    """What yields its result takes one request at a time, whatever a profile says."""
    stages = tuple(
        _alone(stage) if served.is_streaming(number) else stage for number, stage in enumerate(served.workflow.stages)
    )
    return replace(served.workflow, stages=stages)


def _alone(stage: Stage) -> Stage:
    return replace(stage, seconds={kind: {1: stage.seconds_on(kind)} for kind in stage.seconds})


def batches_of(workflows: Mapping[TaskGraph, ServedWorkflow]) -> dict[TaskGraph, GraphBatches]:
    """How many requests run together in the stages of each workflow that has such stages."""
    batches = {}
    for graph, served in workflows.items():
        streaming = [stage for stage in range(len(graph)) if served.is_streaming(stage)]
        found = graph_batches(graph, served.slo_seconds, streaming)
        if found is not None:
            batches[graph] = found
    return batches


def stages_planned(schedule: Schedule, workflows: Mapping[TaskGraph, ServedWorkflow]) -> list[TaskGraph]:
    """The workflows with what floor 2 plans for their stages, if the scheduler asks for that.

    Stages of two workflows share no batch: each has a function of its own.
    """
    streaming = {
        graph: [stage for stage in range(len(graph)) if served.is_streaming(stage)]
        for graph, served in workflows.items()
    }
    slo_seconds = {graph: served.slo_seconds for graph, served in workflows.items()}
    return planned_graphs(schedule.rules, slo_seconds, streaming, mixes=False)
