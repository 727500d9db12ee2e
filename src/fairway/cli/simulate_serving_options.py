"""What `fairway simulate serving` was asked for, checked, and turned into runs.

Every way in which the options, or the files that they name, can be wrong ends here, before anything runs.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from fairway.configure.registry import is_configurator
from fairway.engine.scheduler_names import check_scheduler_name
from fairway.errors import InputError
from fairway.options import nearest
from fairway.sim.failures import Failure
from fairway.sim.navigator import is_compat
from fairway.sim.scenario import Scenario
from fairway.sim.serving import ServingOptions
from fairway.sim.serving_workload import ServingRun, ServingWorkload

ESG_APPS = "esg-apps"
"""The scenario of a serverless platform, which has options of its own (`simulate_serverless`)."""

_DURATION = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(us|µs|ms|s|min)?\s*")
_SECONDS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, None: 1.0}
_FAILURE = re.compile(r"\s*([^@]+?)\s*@\s*([^-]+?)\s*(?:-\s*(.+?)\s*)?")


@dataclass(frozen=True, slots=True)
class Asked:
    """The options as they were given."""

    scenario: str = "compass-edge"
    schedulers: tuple[str, ...] = ("compass",)
    workers: int | None = None
    rate: float | None = None
    arrivals: str = "poisson"
    requests: int | None = None
    slo_scale: float = 1.0
    staleness: str | None = None
    noise: float = 0.0
    discard: float = 0.1
    eviction: str | None = None
    nic_queues: bool = False
    fail: tuple[str, ...] = ()
    detection: str = "300ms"
    seeds: tuple[int, ...] = ()
    processes: int | None = None
    keep_runs: bool = False

    def settings(self) -> dict[str, Any]:
        """All that is needed to repeat the runs but the scheduler and the seed, by the names of the options."""
        given = {
            "scenario": self.scenario,
            "workers": self.workers,
            "rate": self.rate,
            "arrivals": self.arrivals,
            "requests": self.requests,
            "slo-scale": self.slo_scale,
            "staleness": self.staleness,
            "noise": self.noise,
            "discard": self.discard,
            "eviction": self.eviction,
            "nic-queues": self.nic_queues or None,
            "fail": list(self.fail) or None,
            "detection": self.detection if self.fail else None,
        }
        return {name: value for name, value in given.items() if value is not None}

    def command(self) -> str:
        """The command that repeats all runs."""
        words = ["fairway", "simulate", "serving"]
        for name, value in self.settings().items():
            for each in value if isinstance(value, list) else [value]:
                words += (
                    [f"--{name}"]
                    if each is True
                    else [f"--{name}", f"{each:g}" if isinstance(each, float) else str(each)]
                )
        for scheduler in self.schedulers:
            words += ["--scheduler", scheduler]
        for seed in self.seeds:
            words += ["--seed", str(seed)]
        return shlex.join(words)


@dataclass(frozen=True, slots=True)
class Plan:
    """The runs, what to call each, how many requests have to end in one, and what to tell before they start."""

    runs: tuple[ServingRun, ...]
    labels: tuple[str, ...]
    requests: int
    notes: tuple[str, ...]


def plan_of(asked: Asked) -> Plan:
    """Check everything that can be checked beforehand, and plan the runs: seed by seed, scheduler by scheduler."""
    for scheduler in asked.schedulers:
        check_scheduler_name(scheduler)
        if not is_configurator(scheduler) and is_compat(scheduler) and asked.arrivals != "clients":
            raise InputError(
                f"--scheduler: '{scheduler}' repeats the experiment of Compass's authors; add --arrivals clients"
            )
    for seed in asked.seeds:
        if not 0 <= seed < 2**32:
            raise InputError(f"--seed: {seed} given, expected a whole number from 0 to {2**32 - 1}")
    if asked.processes is not None and asked.processes < 1:
        raise InputError(f"--processes: {asked.processes} given, expected a whole number of at least 1")
    options = _options(asked)
    workload = ServingWorkload(asked.scenario, asked.arrivals, asked.workers, asked.requests, asked.rate)
    scenario = workload.make_scenario()
    scenario.graphs(scenario.fleet())
    workload.make_arrivals(scenario, 0)
    options = replace(options, failures=tuple(_failure(text, scenario) for text in asked.fail))
    trace = workload.read_trace()
    runs, labels = [], []
    for seed in asked.seeds or (0,):
        for scheduler in asked.schedulers:
            settings = {**asked.settings(), "scheduler": scheduler, "seed": seed, "version": _version()}
            runs.append(ServingRun(workload, scheduler, replace(options, seed=seed), settings))
            labels.append(f"{scheduler}, seed {seed}" if len(asked.seeds) > 1 else scheduler)
    notes = (trace.summary(),) if trace is not None else ()
    return Plan(tuple(runs), tuple(labels), workload.number, notes)


def refuse_serverless(given: Mapping[str, object]) -> None:
    """Refuse options of a serverless platform where there is none."""
    for name, value in given.items():
        if value is not None:
            raise InputError(f"--{name.replace('_', '-')}: belongs to --scenario {ESG_APPS}; leave it out, or add that")


def _options(asked: Asked) -> ServingOptions:
    for name, value in (("--noise", asked.noise), ("--slo-scale", asked.slo_scale)):
        if not (math.isfinite(value) and value >= 0):
            raise InputError(f"{name}: {value} given, expected a number of at least 0")
    if not 0 <= asked.discard < 1:
        raise InputError(f"--discard: {asked.discard} given, expected a part from 0 to below 1, as in 0.1")
    if asked.eviction not in {None, "free", "copies"}:
        raise InputError(f"--eviction: '{asked.eviction}' given, expected free or copies")
    ages = _staleness(asked.staleness)
    return ServingOptions(
        load_staleness_seconds=ages["load"],
        cache_staleness_seconds=ages["cache"],
        noise=asked.noise,
        nic_queues=asked.nic_queues,
        eviction_copies=None if asked.eviction is None else asked.eviction == "copies",
        discard=asked.discard,
        slo_scale=asked.slo_scale,
        keep_runs=asked.keep_runs,
        detection_seconds=seconds_of(asked.detection, "--detection"),
    )


def seconds_of(text: str, option: str) -> float:
    """Read `10ms`, `1.5s` or, in seconds, `0.01`."""
    match = _DURATION.fullmatch(text)
    if not match:
        raise InputError(f"{option}: '{text}' given, expected a time of at least 0, as in 10ms or 1.5s")
    return float(match[1]) * _SECONDS[match[2]]


def _staleness(text: str | None) -> dict[str, float]:
    """Read `load=10ms,cache=100ms`."""
    ages = {"load": 0.001, "cache": 0.001}
    given: set[str] = set()
    for part in text.split(",") if text is not None else ():
        column, equals, age = (word.strip() for word in part.partition("="))
        if not equals or column not in ages:
            hint = nearest(column, ages)
            raise InputError(f"--staleness: '{part}' given, expected load=TIME,cache=TIME, as in load=10ms{hint}")
        if column in given:
            raise InputError(f"--staleness: '{column}' given twice; keep one")
        given.add(column)
        ages[column] = seconds_of(age, f"--staleness: {column}")
    return ages


def _failure(text: str, scenario: Scenario) -> Failure:
    """Read `w2@10s` or `w2@10s-25s`."""
    match = _FAILURE.fullmatch(text)
    if not match:
        raise InputError(f"--fail: '{text}' given, expected WORKER@TIME or WORKER@TIME-TIME, as in w2@10s-25s")
    names = [worker.name for worker in scenario.workers]
    if match[1] not in names:
        hint = nearest(match[1], names) or f"; workers are {', '.join(names[:5])}{', …' if len(names) > 5 else ''}"
        raise InputError(f"--fail: there is no worker '{match[1]}'{hint}")
    at = seconds_of(match[2], "--fail")
    back_at = None if match[3] is None else seconds_of(match[3], "--fail")
    if back_at is not None and back_at <= at:
        raise InputError(f"--fail: '{text}' given, but a worker comes back after it failed; swap the two times")
    return Failure(names.index(match[1]), at, back_at)


def _version() -> str:
    try:
        return version("fairway")
    except PackageNotFoundError:  # run from its source, without being installed
        return "unknown"
