"""Workers as configurators such as ESG see them: invokers with one slice, on which models are functions.

The configurations of a stage are its batch sizes on the workers' accelerator; where there are times for single requests
only, there is one. A model in an accelerator's memory is a container: one is as large as its model and is created in
the time that the model takes from the host. Data takes as long as between workers of different hosts, or no time on the
same worker.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fairway.configure.application import Application
from fairway.configure.configuration import Configuration, Prices
from fairway.configure.platform import Platform, Transfers
from fairway.configure.profile import Profile
from fairway.engine.container_care import Function
from fairway.engine.stage_queues import ServedApplication
from fairway.errors import InputError
from fairway.place.links import Links
from fairway.workflows import ANY, Stage, Workflow, models_of


@dataclass(frozen=True, eq=False)
class InvokedWorkflows:
    """What a `ServerlessEngine` needs to run workflows on workers; functions have the names of their models."""

    applications: tuple[ServedApplication, ...]
    functions: tuple[Function, ...]
    platform: Platform


def workers_as_invokers(
    workflows: Sequence[Workflow],
    slo_seconds: Sequence[float],
    accelerator: str,
    links: Links,
    *,
    noise: float = 0.0,
    eviction_copies: bool = False,
) -> InvokedWorkflows:
    """The workflows, each with its SLO, on workers of one type; refuses stages with several models.

    `noise` is the standard deviation of run times relative to their mean. With `eviction_copies`, a model that leaves
    an accelerator's memory is copied to the host.
    """
    models = list(models_of(workflows).values())
    cold = [links.to_load(model) for model in models]
    functions = tuple(
        Function(model.name, seconds, model.bytes, links.to_host(model.bytes) if eviction_copies else 0.0)
        for model, seconds in zip(models, cold, strict=True)
    )
    numbers = {model.name: number for number, model in enumerate(models)}
    whole = 2 / links.to_host_bandwidth + 1 / links.network_bandwidth
    transfers = Transfers(math.inf, 2 / whole, (links.network_latency + 2 * links.copy_latency) / 2)
    platform = Platform(Prices(0.0, 1.0), transfers, 0.0, 1, 1, math.sqrt(math.log1p(noise**2)))
    applications = []
    for key, (workflow, slo) in enumerate(zip(workflows, slo_seconds, strict=True)):
        profiles = tuple(_profile(workflow, stage, accelerator) for stage in workflow.stages)
        own = tuple(numbers[stage.models[0]] if stage.models else -1 for stage in workflow.stages)
        waits = tuple(cold[number] if number >= 0 else 0.0 for number in own)
        applications.append(ServedApplication(Application(workflow, profiles, slo, waits, key), own))
    return InvokedWorkflows(tuple(applications), functions, platform)


def _profile(workflow: Workflow, stage: Stage, accelerator: str) -> Profile:
    if len(stage.models) > 1:
        raise InputError(
            f"workflows.{workflow.name}: stage '{stage.name}' has {len(stage.models)} models; a scheduler that chooses "
            "configurations needs at most one for each stage"
        )
    times = stage.seconds.get(accelerator, stage.seconds.get(ANY, {}))
    return Profile.of({Configuration(batch, 1, 1): seconds for batch, seconds in times.items()})
