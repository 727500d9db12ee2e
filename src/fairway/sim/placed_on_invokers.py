"""Placers, such as Compass, on a serverless scenario: they choose invokers, so sizes are chosen for them.

A placer knows workers that run one task at a time. So each invoker is cut into equal parts of c CPUs and g slices, and
each part is a worker; a stage runs single jobs in the time that its profile has for them. Of all sizes with which the
longest way of every application is within its SLO, the one whose requests cost least is taken; the fastest if there
is none. Tasks pay for the part that they run on while they fetch, from the same invoker or as the request itself, and
run. What comes from another invoker takes longer by the difference, on its way and not at the cost of a worker, which
favours placers a little. Nothing is cold.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from fairway.configure.application import Application
from fairway.configure.configuration import SECONDS_PER_HOUR, Configuration
from fairway.configure.fetches import Fetches
from fairway.errors import InputError
from fairway.place.fleet import Worker
from fairway.place.links import Links
from fairway.report.serverless_record import (
    NO_CONTAINERS,
    IntArray,
    ServerlessRecord,
    ServerlessRequests,
    ServerlessTasks,
)
from fairway.report.serving_record import ServingRecord
from fairway.sim.arrivals import Arrivals
from fairway.sim.scenario import Scenario
from fairway.sim.serverless import Progress, ServerlessOptions, facts_of
from fairway.sim.serverless_scenario import ServerlessArrivals, ServerlessScenario
from fairway.sim.serving import ServingOptions, simulate_serving
from fairway.workflows import Stage, Workflow

_NETWORK_BANDWIDTH = 1e9
"""Of no meaning of its own: outputs are given as many bytes as take the time that they should."""

_AT_ONCE = 1e15


def simulate_placed(
    scenario: ServerlessScenario,
    arrivals: ServerlessArrivals,
    scheduler: str,
    options: ServerlessOptions,
    *,
    settings: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> ServerlessRecord:
    """Run the requests under a placer."""
    if options.containers is not None or options.measured_overhead:
        raise InputError(f"--scheduler: '{scheduler}' runs with warm functions and a constant overhead only")
    size = uniform_configuration(scenario)
    parts = parts_of_invoker(scenario, size)
    draws = np.random.default_rng([options.seed, 4])
    given = Arrivals(arrivals.time, arrivals.application, draws.random(len(arrivals)), np.ones(len(arrivals)))
    # The same law as that of the scenario, but for its mean, which is 1 here; not the same draws.
    noise = math.sqrt(math.expm1(scenario.platform.noise**2))
    record = simulate_serving(
        _on_parts(scenario, size, parts),
        given,
        scheduler,
        ServingOptions(noise=noise, seed=options.seed, discard=0.0, keep_runs=True),
        progress=progress,
    )
    return _record(scenario, record, size, parts, options, settings or {})


def uniform_configuration(scenario: ServerlessScenario) -> Configuration:
    """The size of all parts: the cheapest with which every application is in time, else the fastest."""
    applications = [served.application for served in scenario.applications]
    sizes = {
        configuration
        for configuration in applications[0].profiles[0].configurations()
        if configuration.batch == 1
        and configuration.cpu <= scenario.platform.cpu
        and configuration.gpu <= scenario.platform.gpu
    }

    def judged(size: Configuration) -> tuple[bool, float]:
        late = max(_longest_way(scenario, each, size) / each.slo_seconds for each in applications)
        seconds = sum(profile.seconds_of(*size) for each in applications for profile in each.profiles)
        cost = scenario.platform.prices.rate(size.cpu, size.gpu) * seconds
        return (late > 1, late if late > 1 else cost)

    return min(sorted(sizes), key=judged)


def parts_of_invoker(scenario: ServerlessScenario, size: Configuration) -> int:
    """How many parts of this size an invoker has."""
    platform = scenario.platform
    return min(platform.cpu // size.cpu, platform.gpu // size.gpu)


def _seconds(scenario: ServerlessScenario, application: Application, size: Configuration) -> list[float]:
    """How long each stage holds a part."""
    fetches = Fetches.of(application, scenario.platform)
    return [profile.seconds_of(*size) + fetches.planned(stage) for stage, profile in enumerate(application.profiles)]


def _longest_way(scenario: ServerlessScenario, application: Application, size: Configuration) -> float:
    return application.workflow.critical_path(_seconds(scenario, application, size)).seconds


def _on_parts(scenario: ServerlessScenario, size: Configuration, parts: int) -> Scenario:
    workflows, slo = [], {}
    for served in scenario.applications:
        application = served.application
        fetches = Fetches.of(application, scenario.platform)
        stages = []
        for number, seconds in enumerate(_seconds(scenario, application, size)):
            after = application.workflow.successors[number]
            more = max((fetches.remote[stage] - fetches.local[stage] for stage in after), default=0.0)
            name = application.workflow.stages[number].name
            stages.append(Stage.of(name, seconds, input_bytes=0, output_bytes=round(more * _NETWORK_BANDWIDTH)))
        workflows.append(Workflow(tuple(stages), application.workflow.edges, name=application.name))
        slo[application.name] = application.slo_seconds
    workers = tuple(
        Worker(f"invoker {invoker}, part {part}", 1, "part", host=f"invoker {invoker}")
        for invoker in range(scenario.invokers)
        for part in range(parts)
    )
    links = Links(
        network_latency=0.0,
        network_bandwidth=_NETWORK_BANDWIDTH,
        to_device_bandwidth=_AT_ONCE,
        to_host_bandwidth=_AT_ONCE,
    )
    return Scenario(scenario.name, tuple(workflows), workers, links, slo_seconds=slo)


def _record(
    scenario: ServerlessScenario,
    record: ServingRecord,
    size: Configuration,
    parts: int,
    options: ServerlessOptions,
    settings: Mapping[str, Any],
) -> ServerlessRecord:
    last = options.end_seconds + options.drain_seconds
    order = np.argsort(record.runs.start, kind="stable")
    order = order[record.runs.start[order] <= last]
    runs, count = record.runs, len(order)
    start, end, request = runs.start[order], runs.end[order], runs.request[order]
    application = record.requests.workflow[request]
    rate = scenario.platform.prices.rate(size.cpu, size.gpu) / SECONDS_PER_HOUR
    overhead = scenario.platform.overhead_seconds
    bill = rate * np.maximum(end - start - overhead, 0.0)
    zeros, ones = np.zeros(count), np.ones(count, np.int64)
    finish = np.where(record.requests.finish <= last, record.requests.finish, np.nan)
    cost = np.bincount(request, weights=bill, minlength=len(finish)).astype(np.float64)
    return ServerlessRecord(
        record.scheduler,
        {**settings, "configuration": f"batch 1, {size.cpu} CPUs, {size.gpu} slices"},
        tuple(facts_of(served.application) for served in scenario.applications),
        tuple(function.name for function in scenario.functions),
        scenario.invokers,
        scenario.platform.cpu,
        scenario.platform.gpu,
        (options.warmup_seconds, options.end_seconds),
        ServerlessRequests(record.requests.arrival, finish, record.requests.workflow, cost),
        ServerlessTasks(
            start=start,
            end=end,
            application=application,
            stage=runs.stage[order],
            oldest=request,
            jobs=ones,
            batch=ones,
            cpu=ones * size.cpu,
            gpu=ones * size.gpu,
            invoker=runs.worker[order] // parts,
            kind=np.zeros(count, np.int64),
            local=_local(scenario, runs.stage[order], request, application, runs.worker[order] // parts),
            overhead=zeros + overhead,
            cold=zeros,
            fetch=zeros,
            run=end - start - overhead,
            cost=bill,
        ),
        NO_CONTAINERS,
        scenario.platform.noise,
        record.end_seconds,
        record.decision_seconds,
        record.events,
        record.wall_seconds,
    )


def _local(
    scenario: ServerlessScenario, stage: IntArray, request: IntArray, application: IntArray, invoker: IntArray
) -> IntArray:
    """Whether all stages before a task ran on its invoker."""
    where = dict(zip(zip(request.tolist(), stage.tolist(), strict=True), invoker.tolist(), strict=True))
    before = [served.application.workflow.predecessors for served in scenario.applications]
    rows = zip(request.tolist(), stage.tolist(), application.tolist(), invoker.tolist(), strict=True)
    return np.array(
        [
            bool(before[app][at]) and all(where.get((key, other)) == place for other in before[app][at])
            for key, at, app, place in rows
        ],
        np.int64,
    )
