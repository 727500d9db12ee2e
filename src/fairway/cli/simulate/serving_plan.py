"""The runs of `fairway simulate serving`, planned: every way in which the options, or the files that they name, can be
wrong ends here, before anything runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from fairway.cli.simulate.options import installed_version
from fairway.cli.simulate.serving_checks import check_combination, notes_on, schedules_of
from fairway.cli.simulate.serving_experiment import ServingExperiment
from fairway.cli.simulate.serving_values import cold_starts_of, failure_of, seconds_of, sharing_of, staleness_of
from fairway.errors import InputError
from fairway.sim.scenario import Scenario
from fairway.sim.serving import ServingOptions
from fairway.sim.serving_workload import EsgApps, ServingRun, ServingWorkload

MEASURED = "measured"
"""In place of a time that decisions take: what they really took."""

_DRAIN_SECONDS = 120.0
"""For so long after the last request that counts, a run in which a window counts may go on."""


@dataclass(frozen=True, slots=True)
class ServingPlan:
    """The runs, what to call each, how many requests have to end in one, and what to say before they start.

    `experiment` has a value for every option of its scenario.
    """

    experiment: ServingExperiment
    runs: tuple[ServingRun, ...]
    labels: tuple[str, ...]
    requests: int
    notes: tuple[str, ...]


def plan_of(asked: ServingExperiment) -> ServingPlan:
    """Check everything that can be checked beforehand, and plan the runs: seed by seed, scheduler by scheduler."""
    schedules = schedules_of(asked.schedulers)
    experiment = asked.complete()
    schedules = schedules or schedules_of(experiment.schedulers)
    _check_numbers(experiment)
    options = _options(experiment)
    workload = _workload(experiment)
    scenario = workload.make_scenario()
    scenario.graphs(scenario.fleet())
    _check_slos(scenario, experiment)
    workload.make_arrivals(scenario, 0)
    names = [worker.name for worker in scenario.workers]
    failures = tuple(failure_of(text, names) for text in experiment.fail)
    check_combination(experiment, schedules, scenario)
    options = replace(options, failures=failures, recovers=not experiment.no_recovery)
    runs, labels = [], []
    for seed in experiment.seeds:
        for scheduler in experiment.schedulers:
            settings = {**experiment.settings(), "scheduler": scheduler, "seed": seed, "version": installed_version()}
            runs.append(ServingRun(workload, scheduler, replace(options, seed=seed), settings))
            labels.append(f"{scheduler}, seed {seed}" if len(experiment.seeds) > 1 else scheduler)
    trace = workload.read_trace()
    notes = [] if trace is None else [trace.summary()]
    notes += notes_on(experiment, schedules)
    return ServingPlan(experiment, tuple(runs), tuple(labels), workload.number, tuple(notes))


def _check_slos(scenario: Scenario, experiment: ServingExperiment) -> None:
    try:
        scenario.check_slos(experiment.slo_scale)
    except InputError as error:
        option = "--scenario" if experiment.slo_scale == 1 else "--slo-scale"
        raise InputError(f"{option}: {error}") from None


def _check_numbers(experiment: ServingExperiment) -> None:
    for seed in experiment.seeds:
        if not 0 <= seed < 2**32:
            raise InputError(f"--seed: {seed} given, expected a whole number from 0 to {2**32 - 1}")
    if experiment.processes is not None and experiment.processes < 1:
        raise InputError(f"--processes: {experiment.processes} given, expected a whole number of at least 1")
    for name, value in (("--noise", experiment.noise), ("--slo-scale", experiment.slo_scale)):
        if value is not None and not (math.isfinite(value) and value >= 0):
            raise InputError(f"{name}: {value} given, expected a number of at least 0")
    if experiment.discard is not None and not 0 <= experiment.discard < 1:
        raise InputError(f"--discard: {experiment.discard} given, expected a part from 0 to below 1, as in 0.1")
    if experiment.eviction not in {None, "free", "copies"}:
        raise InputError(f"--eviction: '{experiment.eviction}' given, expected free or copies")


def _options(experiment: ServingExperiment) -> ServingOptions:
    """How to run; what depends on the scenario is added later."""
    ages = staleness_of(experiment.staleness)
    options = ServingOptions(
        load_staleness_seconds=ages["load"],
        cache_staleness_seconds=ages["cache"],
        noise=experiment.noise or 0.0,
        nic_queues=experiment.nic_queues,
        eviction_copies=None if experiment.eviction is None else experiment.eviction == "copies",
        slo_scale=experiment.slo_scale,
        keep_runs=experiment.keep_runs,
        watches_time=not experiment.no_time_watching,
    )
    if experiment.detection is not None:
        options = replace(options, detection_seconds=seconds_of(experiment.detection, "--detection"))
    if not experiment.is_esg_apps:
        return replace(options, discard=experiment.discard or 0.0)
    return replace(
        options,
        window=_window(experiment),
        drain_seconds=_DRAIN_SECONDS,
        measured_overhead=_text(experiment.overhead).strip() == MEASURED,
        keep_runs=True,  # what falls into the window, only runs that were kept can tell
    )


def _workload(experiment: ServingExperiment) -> ServingWorkload | EsgApps:
    """The scenario and its requests."""
    if not experiment.is_esg_apps:
        workload = ServingWorkload(
            experiment.scenario,
            _text(experiment.arrivals),
            experiment.workers,
            experiment.requests,
            experiment.rate,
            experiment.columns,
        )
        if experiment.columns is not None and workload.trace is None:
            raise InputError("--columns: given, but no trace; add --arrivals trace:FILE")
        return workload
    apps = EsgApps(
        _text(experiment.load),
        _text(experiment.slo),
        _text(experiment.apps),
        seconds=_window(experiment)[1],
        workers=experiment.workers,
        cold=cold_starts_of(_text(experiment.containers), experiment.container_limit),
        most_containers=experiment.container_limit,
        sharing=sharing_of(_text(experiment.slices)),
    )
    if _text(experiment.overhead).strip() == MEASURED:
        return apps
    return replace(apps, overhead_seconds=seconds_of(_text(experiment.overhead), "--overhead"))


def _window(experiment: ServingExperiment) -> tuple[float, float]:
    """When the requests arrive that count."""
    warmup = seconds_of(_text(experiment.warmup), "--warmup")
    duration = seconds_of(_text(experiment.duration), "--duration")
    if duration <= 0:
        raise InputError(f"--duration: '{experiment.duration}' given, expected a time above 0, as in 300s")
    return warmup, warmup + duration


def _text(value: str | None) -> str:
    """An option that the scenario has a value for."""
    assert value is not None
    return value
