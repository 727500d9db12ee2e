"""Configurators, such as ESG, on a scenario of models and workers: a worker is an invoker with one slice.

What that means is in `fairway.engine.workers_as_invokers`. Models are copied one after the other; as many as fit are
kept, and the longest unused goes first. A task whose model is missing waits in its queue, and the worker runs others
meanwhile. Workers have to be alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fairway.engine.containers import ContainerRule
from fairway.engine.workers_as_invokers import workers_as_invokers
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
    invoked = workers_as_invokers(
        scenario.workflows,
        [options.slo_scale * scenario.slo_of(workflow) for workflow in scenario.workflows],
        worker.accelerator,
        scenario.links,
        noise=options.noise,
        eviction_copies=copies,
    )
    return ServerlessScenario(
        scenario.name,
        invoked.applications,
        invoked.functions,
        invoked.platform,
        len(scenario.workers),
        one_at_a_time=True,
    )


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
