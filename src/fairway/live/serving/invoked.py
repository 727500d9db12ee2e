"""A served application as the serverless engine takes it: the same translation as in the simulator."""

from __future__ import annotations

import math
from dataclasses import replace

from fairway.engine.containers import ContainerRule
from fairway.engine.workers_as_invokers import InvokedWorkflows, workers_as_invokers
from fairway.live.serving.application import Application, ServedWorkflow, accelerator_of
from fairway.live.serving.configurations import slo_of
from fairway.live.serving.links import LOCAL_LINKS
from fairway.live.serving.settings import ServingSettings
from fairway.workflows import Stage, Workflow


def invoked_workflows(settings: ServingSettings, application: Application) -> InvokedWorkflows:
    """The workflows on the workers; refuses those without an SLO."""
    served = list(application.workflows.values())
    return workers_as_invokers(
        [_as_it_runs(each) for each in served],
        [slo_of(each) for each in served],
        accelerator_of(settings.threads),
        LOCAL_LINKS,
    )


def container_rule(settings: ServingSettings, invoked: InvokedWorkflows) -> ContainerRule:
    """Models stay until another one needs their room: whoever gives a worker memory wants it to be used."""
    memory = None if settings.memory_bytes is None else int(settings.memory_bytes)
    pinned = tuple(number for number, function in enumerate(invoked.functions) if function.name in settings.pinned)
    return ContainerRule(0, memory, keep_alive_seconds=math.inf, pinned=pinned)


def _as_it_runs(served: ServedWorkflow) -> Workflow:
    """What yields its result takes one request at a time, whatever a profile says."""
    stages = tuple(
        _alone(stage) if served.is_streaming(number) else stage for number, stage in enumerate(served.workflow.stages)
    )
    return replace(served.workflow, stages=stages)


def _alone(stage: Stage) -> Stage:
    return replace(stage, seconds={kind: {1: stage.seconds_on(kind)} for kind in stage.seconds})
