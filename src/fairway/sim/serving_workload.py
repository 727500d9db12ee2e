"""What a serving run is given, in a few words, and the run itself: made anew in whichever process does it.

A scenario is named or a file; requests are drawn or come from a trace. `esg-apps` has loads and SLOs of its own. With
`compat` schedulers, runs are as in the experiment of Compass's authors (`compat.navigator`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from fairway.compat.navigator.run import is_compat, simulate_navigator
from fairway.engine.serving.schedule import AnySchedule, schedule_of
from fairway.errors import InputError
from fairway.magnitudes import FACTORS
from fairway.options import nearest
from fairway.report.serving.record import ServingRecord
from fairway.sim import arrivals as draw
from fairway.sim.arrivals import Arrivals
from fairway.sim.scenario import ColdStarts, DeviceSharing, Scenario
from fairway.sim.scenario_file import parse_scenario
from fairway.sim.scenarios import SCENARIOS
from fairway.sim.scenarios.esg_apps import APPS, LOADS, SLOS, esg_apps, esg_arrivals
from fairway.sim.scenarios.trace_models import trace_models
from fairway.sim.serving import Progress, ServingOptions, simulate_serving
from fairway.traces.requests import RequestTrace, read_requests

ESG_APPS = "esg-apps"
TRACE_MODELS = "trace-models"
"""Scenarios that a name alone does not describe: one has loads and SLOs (`EsgApps`), one the models of a trace."""

_KINDS = ("poisson", "clients", "uniform", "gamma:CV", "trace:FILE")
_GAMMA = re.compile(r"gamma:(.+)")
_TRACE = "trace:"


SCENARIO_NAMES = (*SCENARIOS, ESG_APPS, TRACE_MODELS)
"""All scenarios that are built in."""


@dataclass(frozen=True, slots=True)
class ServingWorkload:
    """A scenario, on so many workers (its own number if None), and the requests: how they arrive, how many, how fast.

    Without a number, there are 1,000 requests, or all of a trace; without a rate, two per second, or a trace's own.
    `columns` says which column of a trace means what (`traces.request_csv`).
    """

    scenario: str = "compass-edge"
    arrivals: str = "poisson"
    workers: int | None = None
    requests: int | None = None
    rate: float | None = None
    columns: str | None = None

    @property
    def trace(self) -> str | None:
        """The file that the requests come from."""
        return self.arrivals.removeprefix(_TRACE) if self.arrivals.startswith(_TRACE) else None

    @property
    def number(self) -> int:
        """How many requests there are."""
        if self.trace is None:
            return 1000 if self.requests is None else self.requests
        available = len(_trace(self.trace, self.columns))
        return available if self.requests is None else min(self.requests, available)

    def read_trace(self) -> RequestTrace | None:
        """The trace of the requests, read once in a process."""
        return None if self.trace is None else _trace(self.trace, self.columns)

    def make_scenario(self) -> Scenario:
        """The scenario with the workers that were asked for."""
        if self.scenario in SCENARIOS:
            scenario = SCENARIOS[self.scenario]()
        elif self.scenario == TRACE_MODELS:
            trace = self.read_trace()
            if trace is None:
                raise InputError(f"--scenario: {TRACE_MODELS} takes its models from a trace; add --arrivals trace:FILE")
            scenario = trace_models(trace)
        else:
            scenario = _scenario(self.scenario)
        return scenario if self.workers is None else scenario.with_workers(self.workers)

    def make_arrivals(self, scenario: Scenario, seed: int) -> Arrivals:
        """The requests of a seed."""
        number, rate = self.number, 2.0 if self.rate is None else self.rate
        shares = np.array(scenario.shares or (1.0,) * len(scenario.workflows))
        trace = self.read_trace()
        if trace is not None:
            return _replay(trace, number, scenario, self.rate, seed)
        if number < 1:
            raise InputError(f"--requests: {number} given, expected a whole number of at least 1")
        _check_rate(rate)
        match = _GAMMA.fullmatch(self.arrivals)
        if match:
            return draw.gamma(number, rate, _variation(match[1]), shares, seed)
        match self.arrivals:
            case "poisson":
                return draw.poisson(number, rate, shares, seed)
            case "uniform":
                return draw.uniform(number, rate, shares, seed)
            case "clients":
                return draw.from_clients(number, rate, len(scenario.workflows), seed)
        hint = nearest(self.arrivals, _KINDS)
        raise InputError(f"--arrivals: '{self.arrivals}' given, expected one of {', '.join(_KINDS)}{hint}")


@dataclass(frozen=True, slots=True)
class EsgApps:
    """Which of the loads, SLOs and sets of applications of `esg-apps`, and what decisions take.

    Requests arrive for `seconds`. Without `cold`, all functions are warm everywhere.
    """

    load: str = "normal"
    slo: str = "moderate"
    apps: str = "chains"
    overhead_seconds: float = 0.001
    seconds: float = 360.0
    workers: int | None = None
    cold: ColdStarts | None = None
    most_containers: int | None = None
    sharing: DeviceSharing = field(default_factory=DeviceSharing)

    def __post_init__(self) -> None:
        for option, given, known in (("load", self.load, LOADS), ("slo", self.slo, SLOS), ("apps", self.apps, APPS)):
            if given not in known:
                hint = nearest(given, known)
                raise InputError(f"--{option}: '{given}' given, expected one of {', '.join(known)}{hint}")
        if not (math.isfinite(self.overhead_seconds) and self.overhead_seconds >= 0):
            raise InputError(f"--overhead: {self.overhead_seconds:g} s given, expected a time of at least 0")
        if not (math.isfinite(self.seconds) and self.seconds > 0):
            raise InputError(f"--duration: {self.seconds:g} s given, expected a time above 0")

    @property
    def trace(self) -> str | None:
        """It reads no file."""
        return None

    @property
    def number(self) -> int:
        """About how many requests there are."""
        low, high = LOADS[self.load]
        return round(2 * self.seconds / (low + high))

    def read_trace(self) -> RequestTrace | None:
        """There is none."""
        return None

    def make_scenario(self) -> Scenario:
        """The scenario."""
        scenario = esg_apps(
            self.slo,
            self.apps,
            overhead_seconds=self.overhead_seconds,
            cold=self.cold,
            most_containers=self.most_containers,
            sharing=self.sharing,
        )
        return scenario if self.workers is None else scenario.with_workers(self.workers)

    def make_arrivals(self, scenario: Scenario, seed: int) -> Arrivals:  # noqa: ARG002
        """The requests of a seed."""
        return esg_arrivals(self.load, self.apps, self.seconds, seed)


@dataclass(frozen=True, slots=True)
class ServingRun:
    """One scheduler on one workload. `settings` go into the record: what is needed to repeat the run."""

    workload: ServingWorkload | EsgApps
    scheduler: AnySchedule
    options: ServingOptions
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def files(self) -> tuple[str, ...]:
        """The files that it reads."""
        return () if self.workload.trace is None else (self.workload.trace,)

    def __call__(self, progress: Progress | None = None) -> ServingRecord:
        """Do it, here and now."""
        workload = self.workload
        scenario = workload.make_scenario()
        told = {"settings": self.settings, "progress": progress}
        if is_compat(self.scheduler):
            name = self.scheduler if isinstance(self.scheduler, str) else schedule_of(self.scheduler).title
            if not isinstance(workload, ServingWorkload):
                raise InputError(f"--scheduler: '{name}' repeats an experiment on compass-edge; leave out compat")
            rate = 2.0 if workload.rate is None else workload.rate
            return simulate_navigator(scenario, workload.number, rate, name, self.options, **told)  # type: ignore[arg-type]
        arrivals = workload.make_arrivals(scenario, self.options.seed)
        record = simulate_serving(scenario, arrivals, self.scheduler, self.options, **told)  # type: ignore[arg-type]
        trace = workload.read_trace()
        return (
            record
            if trace is None
            else replace(record, skipped_rows=len(trace.skipped), unreadable_rows=trace.unreadable)
        )


@cache
def _trace(path: str, columns: str | None) -> RequestTrace:
    return read_requests(path, columns)


def _scenario(name: str) -> Scenario:
    path = Path(name)
    if path.suffix.lower() not in {".yaml", ".yml", ".json"}:
        known = SCENARIO_NAMES
        raise InputError(
            f"--scenario: '{name}' is not known{nearest(name, known)}; known: {', '.join(known)}, or a file FILE.yaml"
        )
    try:
        text = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"{name}: cannot be read: {error.strerror or error}; name a scenario file, or one of "
            f"{', '.join(SCENARIO_NAMES)}"
        ) from None
    return parse_scenario(text, name)


def _check_rate(rate: float) -> None:
    try:
        FACTORS.above_zero(rate)
    except InputError as error:
        raise InputError(f"--rate: {error} (requests per second)") from None


def _variation(text: str) -> float:
    try:
        variation = float(text)
    except ValueError:
        variation = np.nan
    if not (np.isfinite(variation) and 0 < variation <= 100):
        raise InputError(
            f"--arrivals: 'gamma:{text}' given, expected a coefficient of variation above 0, as in gamma:4"
        )
    return variation


def _replay(trace: RequestTrace, number: int, scenario: Scenario, rate: float | None, seed: int) -> Arrivals:
    """The requests of a trace: for the workflows that it names; where it names others, for one after another."""
    if rate is not None:
        _check_rate(rate)
    if number < 1:
        raise InputError(f"--requests: {number} given, expected a whole number of at least 1")
    workflows = {workflow.name: position for position, workflow in enumerate(scenario.workflows)}
    known = all(name in workflows for name in trace.names)
    if not known:
        workflows = {name: position % len(scenario.workflows) for position, name in enumerate(trace.names)}
    if trace.asks_for:
        workflow = np.array([workflows[name] for name in trace.asks_for[:number]], dtype=np.int64)
    else:  # it does not say what for: as if each request had been drawn
        shares = np.array(scenario.shares or (1.0,) * len(scenario.workflows))
        draws = np.random.default_rng([seed, 3])
        workflow = draws.choice(len(shares), size=number, p=shares / shares.sum()).astype(np.int64)
    seconds = trace.seconds[:number]
    work = np.ones(number)
    if known:
        # How long a request ran, over what is expected of its workflow: the planner knows the latter only.
        expected = np.array([each.critical_path().seconds for each in scenario.workflows])[workflow]
        work = np.where(np.isnan(seconds) | (expected == 0), 1.0, seconds / np.where(expected == 0, 1.0, expected))
    arrival = trace.arrival[:number]
    if trace.within is not None:
        arrival = arrival + trace.within[:number] * np.random.default_rng([seed, 4]).random(number)
        order = np.argsort(arrival, kind="stable")
        arrival, workflow, work = arrival[order], workflow[order], work[order]
    return draw.replayed(arrival, workflow, work, rate, seed)
