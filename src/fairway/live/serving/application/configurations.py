"""A measured workflow as floor 2 (`configure`) takes it: the time of each stage by batch size and CPUs."""

from __future__ import annotations

import re

from fairway.configure.application import Application as ConfiguredApplication
from fairway.configure.configuration import Configuration
from fairway.configure.profile import Profile
from fairway.configure.slices.parts import whole_only
from fairway.errors import InputError
from fairway.live.serving.application.definition import ServedWorkflow
from fairway.workflows import ANY, Stage

_THREADS = re.compile(r"cpu(?:-(\d+))?")


def profile_of(stage: Stage) -> Profile:
    """The times of a stage on whole workers: a thread is a CPU, and there are no GPU slices."""
    rows = {}
    for accelerator, times in whole_only(stage.seconds).items():
        match = _THREADS.fullmatch("cpu" if accelerator == ANY else accelerator)
        if match is None:
            raise InputError(f"stage '{stage.name}': a time on '{accelerator}' given, expected one on 'cpu' or 'cpu-2'")
        for batch, seconds in times.items():
            rows[Configuration(batch, int(match[1] or 1), 0)] = seconds
    return Profile.of(rows)


def configured(served: ServedWorkflow, slo_seconds: float | None = None) -> ConfiguredApplication:
    """The workflow with its profiles, the load times of its models and its SLO; refuses one without an SLO."""
    slo = slo_of(served) if slo_seconds is None else slo_seconds
    workflow = served.workflow
    loads = (sum(workflow.models[name].load_seconds or 0.0 for name in stage.models) for stage in workflow.stages)
    return ConfiguredApplication(workflow, tuple(profile_of(stage) for stage in workflow.stages), slo, tuple(loads))


def slo_of(served: ServedWorkflow) -> float:
    """Its SLO, without which nothing can be chosen."""
    if served.slo_seconds is None:
        raise InputError(
            f"workflow '{served.name}' has no SLO; give one, as in @fairway.workflow(slo='2s') or --slo 2s"
        )
    return served.slo_seconds
