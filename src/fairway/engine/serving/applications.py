"""Workflows as floor 2 takes them: with the times of their stages on a kind of worker, and what loading a model costs.

A stage has its profile by batch, CPUs and slices where one is given; else its times by batch size are those of a whole
worker. What no configurator could choose sizes for is refused, with the reason.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairway.configure.application import Application
from fairway.configure.configuration import Configuration
from fairway.configure.profile import Profile
from fairway.errors import InputError
from fairway.links import Moves
from fairway.place.fleet import Worker
from fairway.workflows import Stage, Workflow

_INSTEAD = "use a placer alone, such as compass"


def application_on(
    workers: Sequence[Worker],
    links: Moves,
    workflow: Workflow,
    slo_seconds: float,
    *,
    key: int = 0,
    profiles: tuple[Profile, ...] | None = None,
) -> Application:
    """A workflow with its SLO, on workers that have to be alike; `key` numbers it among the others."""
    worker = _alike(workers)
    for stage in workflow.stages:
        if len(stage.models) > 1:
            raise InputError(
                f"workflows.{workflow.name}: stage '{stage.name}' has {len(stage.models)} models; a scheduler that "
                f"chooses configurations needs at most one for each stage; {_INSTEAD}"
            )
    found = profiles or tuple(_profile(workflow, stage, worker) for stage in workflow.stages)
    cold = tuple(sum(links.to_load(workflow.models[name]) for name in stage.models) for stage in workflow.stages)
    return Application(workflow, found, slo_seconds, cold, key)


def profiles_at(workflow: Workflow, accelerator: str, shares: Sequence[tuple[int, int]]) -> tuple[Profile, ...]:
    """The times by batch size of stages that always hold the same share of a worker."""
    return tuple(
        Profile.of({Configuration(batch, *share): seconds for batch, seconds in stage.times_on(accelerator).items()})
        for stage, share in zip(workflow.stages, shares, strict=True)
    )


def _profile(workflow: Workflow, stage: Stage, worker: Worker) -> Profile:
    times = stage.times_on(worker.accelerator)
    if not times:
        raise InputError(
            f"workflows.{workflow.name}: stage '{stage.name}' has no time on '{worker.accelerator}', so there is "
            "nothing that a configurator could choose from; add one"
        )
    return Profile.of({Configuration(batch, worker.cpus, worker.slices): seconds for batch, seconds in times.items()})


def _alike(workers: Sequence[Worker]) -> Worker:
    first = workers[0]
    for worker in workers:
        for what in ("accelerator", "memory_bytes", "cpus", "slices"):
            if getattr(worker, what) != getattr(first, what):
                raise InputError(
                    f"workers: '{worker.name}' and '{first.name}' differ in {what.replace('_', ' ')}; a scheduler that "
                    f"chooses configurations needs workers that are alike; {_INSTEAD}"
                )
    return first
