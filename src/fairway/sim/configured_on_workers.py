"""Configurators, such as ESG, on a scenario of models and workers: a worker is an invoker with one slice.

The configurations of a stage are its batch sizes on the worker's accelerator; where a scenario has times for single
requests only, as `compass-edge` has, there is one. A model in an accelerator's memory is a container: one is as large
as its model and is created in the time that the model takes from the host, one after the other; as many as fit are
kept, and the longest unused goes first. A task whose model is missing waits in its queue, and the worker runs others
meanwhile. Data takes as long as between workers of different hosts, or no time on the same worker. Workers have to be
alike.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from fairway.configure.application import Application
from fairway.configure.configuration import Configuration, Prices
from fairway.configure.platform import Platform, Transfers
from fairway.configure.profile import Profile
from fairway.engine.containers import ContainerRule
from fairway.engine.serverless import Function, ServedApplication
from fairway.errors import InputError
from fairway.place.fleet import Worker
from fairway.report.serverless_record import ServerlessRecord
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
from fairway.sim.serverless import Progress, ServerlessOptions, simulate_serverless
from fairway.sim.serverless_scenario import ServerlessArrivals, ServerlessScenario
from fairway.sim.serving import ServingOptions
from fairway.workflows import Stage, Workflow, models_of

_DRAIN_SECONDS = 3600.0


def simulate_configured(
    scenario: Scenario,
    arrivals: Arrivals,
    scheduler: str,
    options: ServingOptions,
    *,
    settings: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> ServingRecord:
    """Run the requests under a configurator."""
    if options.failures or options.nic_queues:
        raise InputError(f"--scheduler: '{scheduler}' runs without --fail and --nic-queues only")
    worker = _the_worker(scenario)
    copies = scenario.eviction_copies if options.eviction_copies is None else options.eviction_copies
    serverless = _on_invokers(scenario, worker, options, copies=copies)
    most = max(len(workflow) for workflow in scenario.workflows)
    draws = np.random.default_rng([options.seed, 2]).standard_normal((len(arrivals), most))
    if not (arrivals.work == 1.0).all():
        raise InputError(f"--scheduler: '{scheduler}' has no use for the run times of a trace; use another scenario")
    end = float(arrivals.time[-1]) + 1e-9 if len(arrivals) else 1.0
    record = simulate_serverless(
        serverless,
        ServerlessArrivals(arrivals.time, arrivals.workflow, draws),
        scheduler,
        ServerlessOptions(
            0.0,
            max(end, 1e-6),
            _DRAIN_SECONDS,
            containers=ContainerRule(0, int(worker.memory_bytes)),
            seed=options.seed,
        ),
        progress=progress,
    )
    return _record(scenario, record, options, settings or {})


def _the_worker(scenario: Scenario) -> Worker:
    first = scenario.workers[0]
    for worker in scenario.workers:
        if (worker.accelerator, worker.memory_bytes) != (first.accelerator, first.memory_bytes):
            raise InputError(
                f"workers: '{worker.name}' and '{first.name}' differ; a scheduler that chooses configurations needs "
                "workers that are alike"
            )
    return first


def _on_invokers(scenario: Scenario, worker: Worker, options: ServingOptions, *, copies: bool) -> ServerlessScenario:
    links = scenario.links
    models = list(models_of(scenario.workflows).values())
    cold = [links.to_load(model) for model in models]
    functions = tuple(
        Function(model.name, seconds, model.bytes, links.to_host(model.bytes) if copies else 0.0)
        for model, seconds in zip(models, cold, strict=True)
    )
    numbers = {model.name: number for number, model in enumerate(models)}
    whole = 2 / links.to_host_bandwidth + 1 / links.network_bandwidth
    transfers = Transfers(math.inf, 2 / whole, (links.network_latency + 2 * links.copy_latency) / 2)
    noise = math.sqrt(math.log1p(options.noise**2))
    platform = Platform(Prices(0.0, 1.0), transfers, 0.0, 1, 1, noise)
    served = []
    for key, workflow in enumerate(scenario.workflows):
        profiles = tuple(_profile(workflow, stage, worker) for stage in workflow.stages)
        slo = options.slo_scale * scenario.slo_of(workflow)
        own = tuple(numbers[stage.models[0]] if stage.models else -1 for stage in workflow.stages)
        waits = tuple(cold[number] if number >= 0 else 0.0 for number in own)
        served.append(ServedApplication(Application(workflow, profiles, slo, waits, key), own))
    return ServerlessScenario(
        scenario.name, tuple(served), functions, platform, len(scenario.workers), one_at_a_time=True
    )


def _profile(workflow: Workflow, stage: Stage, worker: Worker) -> Profile:
    if len(stage.models) > 1:
        raise InputError(
            f"workflows.{workflow.name}: stage '{stage.name}' has {len(stage.models)} models; a scheduler that chooses "
            "configurations needs at most one for each stage"
        )
    times = stage.seconds.get(worker.accelerator, stage.seconds.get("*", {}))
    return Profile.of({Configuration(batch, 1, 1): seconds for batch, seconds in times.items()})


def _record(
    scenario: Scenario, record: ServerlessRecord, options: ServingOptions, settings: Mapping[str, Any]
) -> ServingRecord:
    tasks, begun, workers = record.tasks, record.containers, len(scenario.workers)
    counted = np.ones(len(record.requests), np.bool_)
    counted[: int(options.discard * len(counted))] = False
    done = np.isfinite(record.requests.finish)
    needs = [[bool(stage.models) for stage in workflow.stages] for workflow in scenario.workflows]
    with_model = np.array(
        [needs[app][stage] for app, stage in zip(tasks.application.tolist(), tasks.stage.tolist(), strict=True)],
        np.bool_,
    )
    per_worker = np.bincount(tasks.invoker, minlength=workers)
    missed = np.bincount(begun.invoker[~begun.ahead], minlength=workers)
    models = np.bincount(tasks.invoker[with_model], minlength=workers)
    zeros = np.zeros(workers, np.int64)
    return ServingRecord(
        scheduler=record.scheduler,
        settings=settings,
        workflows=tuple(
            WorkflowFacts(
                workflow.name,
                workflow.critical_path().seconds,
                options.slo_scale * scenario.slo_of(workflow),
                tuple(stage.name for stage in workflow.stages),
            )
            for workflow in scenario.workflows
        ),
        models=record.functions,
        requests=RequestColumns(
            record.requests.arrival,
            record.requests.finish,
            record.requests.application,
            np.where(done, RequestOutcome.COMPLETED, RequestOutcome.UNFINISHED).astype(np.int64),
            np.ones(len(done), np.int64),
            counted,
        ),
        workers=WorkerColumns(
            names=tuple(worker.name for worker in scenario.workers),
            accelerators=tuple(worker.accelerator for worker in scenario.workers),
            busy_seconds=np.bincount(tasks.invoker, weights=tasks.end - tasks.start, minlength=workers).astype(
                np.float64
            ),
            copy_seconds=np.bincount(begun.invoker, weights=begun.ready - begun.start, minlength=workers).astype(
                np.float64
            ),
            tasks=per_worker,
            hits=np.maximum(models - missed, 0),
            partial=zeros,
            misses=missed,
            fetches=np.bincount(begun.invoker, minlength=workers),
            evictions=zeros,
        ),
        runs=RunColumns(
            tasks.invoker,
            tasks.oldest,
            tasks.stage,
            np.ones(len(tasks), np.int64),
            tasks.start,
            tasks.start,
            tasks.start,
            tasks.end,
        ),
        copies=CopyColumns(begun.invoker, begun.function, np.zeros(len(begun), np.bool_), begun.start, begun.ready),
        staleness=StalenessColumns(np.empty(0), np.empty(0), np.empty(0)),
        end_seconds=record.end_seconds,
        decision_seconds=record.decision_seconds,
        events=record.events,
        wall_seconds=record.wall_seconds,
        power=scenario.power,
        dollars_per_hour=scenario.price(),
    )
