"""A sweep: every policy at every load with every seed on every cluster, as one file of results.

A sweep is described once, in Python, in YAML or by options of the command, and is the product of its lists. Each run is
a `Point`, which does its simulation in whatever process it is called and gives one row: what the run was, then its
numbers. Nothing in a row depends on when or how fast it ran, so that the same sweep gives the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from fairway.allocate.registry import policy_of
from fairway.cluster_file import read_cluster
from fairway.documents import Expected, Form
from fairway.engine.serving.schedule import schedule_of
from fairway.errors import InputError
from fairway.experiments.rows import Row, serving_row, training_row
from fairway.magnitudes import FACTORS
from fairway.options import nearest
from fairway.profiles import catalog
from fairway.quantities import seconds_of
from fairway.sim.comparison import TrainingRun
from fairway.sim.serving import ServingOptions
from fairway.sim.serving_workload import ServingRun, ServingWorkload
from fairway.sim.submissions import Progress, TrainingOptions
from fairway.sim.workload import Workload
from fairway.traces import Scaling, parse_generate

Value = str | float | int

_TRAINING_OPTIONS = ("round", "restart")
_SERVING_OPTIONS = ("requests", "slo-scale", "noise", "arrivals")


@dataclass(frozen=True)
class Sweep:
    """What to run.

    `policies` make it a sweep of training, `schedulers` one of serving. `rates` are jobs per hour of the generator
    (`generate` says the rest), times as fast as a `trace`, or requests per second. `clusters` are as `--cluster` takes
    them; for serving, numbers of workers of the `scenario`. `options` has more settings, each one value or a list:
    `round` and `restart` (training), `requests`, `slo-scale`, `noise` and `arrivals` (serving).
    """

    policies: Sequence[str] = ()
    schedulers: Sequence[str] = ()
    rates: Sequence[float] = (1.0,)
    seeds: Sequence[int] = (0, 1, 2)
    clusters: Sequence[str] = ()
    generate: str | None = None
    trace: str | None = None
    format: str | None = None
    scenario: str = "compass-edge"
    options: Mapping[str, Value | Sequence[Value]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if bool(self.policies) == bool(self.schedulers):
            raise InputError("expected either policies (training) or schedulers (serving); give one of them")
        for what in ("policies", "schedulers", "rates", "seeds", "clusters"):
            values = getattr(self, what)
            twice = [value for number, value in enumerate(values) if value in values[:number]]
            if twice:
                raise InputError(f"{what}: {twice[0]} given twice; keep one")
        if not self.rates or not self.seeds:
            raise InputError("rates, seeds: nothing given, expected at least one of each")
        for rate in self.rates:
            try:
                FACTORS.above_zero(rate)
            except InputError as error:
                raise InputError(f"rates: {error}") from None
        if min(self.seeds) < 0:
            raise InputError(f"seeds: {min(self.seeds)} given, expected whole numbers of at least 0")
        known = _TRAINING_OPTIONS if self.is_training else _SERVING_OPTIONS
        for name in self.options:
            if name not in known:
                raise InputError(f"options: '{name}' is not known{nearest(name, known)}; known: {', '.join(known)}")
        for name in self.policies:
            policy_of(name)
        for name in self.schedulers:
            schedule_of(name)
        if self.is_training:
            self._check_training()
        elif self.trace is not None or self.generate is not None:
            raise InputError("trace, generate: given with schedulers, whose requests come from the scenario; leave out")

    def _check_training(self) -> None:
        if not self.clusters:
            raise InputError("clusters: nothing given, expected at least one, as in v100=8,k80=16")
        if (self.trace is None) == (self.generate is None):
            raise InputError("expected either generate, as in jobs=1000,multi-gpu, or a trace; give one of them")
        if self.generate is not None and parse_generate(f"{self.generate},rate=1").jobs is None:
            raise InputError("generate: no jobs=COUNT given, so that runs never end; add one, as in jobs=1000")
        for cluster in self.clusters:
            read_cluster(cluster)

    @property
    def is_training(self) -> bool:
        """Whether training is swept, and not serving."""
        return bool(self.policies)

    @property
    def load_unit(self) -> str:
        """What the rates are."""
        if not self.is_training:
            return "requests per second"
        return "jobs per hour" if self.trace is None else "times as fast as the trace"

    @cached_property
    def points(self) -> list[Point]:
        """All runs, in the order of the rows of results."""
        varied = {
            name: [value] if isinstance(value, str | float | int) else value for name, value in self.options.items()
        }
        clusters: Sequence[str] = self.clusters or ("",)
        found = [
            Point(self, cluster, tuple(zip(varied, values, strict=True)), name, rate, seed)
            for cluster in clusters
            for values in product(*varied.values())
            for name in self.policies or self.schedulers
            for rate in self.rates
            for seed in self.seeds
        ]
        for point in found:
            point.simulation()  # refuses what cannot be run before hours are spent
        return found

    @cached_property
    def fixed(self) -> str:
        """What all runs have in common beside what their rows say, as text by which results are told apart."""
        same = {"trace": self.trace, "format": self.format, "generate": self.generate}
        if not self.is_training:
            same = {"scenario": self.scenario}
        return json.dumps({name: value for name, value in same.items() if value is not None}, sort_keys=True)


@dataclass(frozen=True)
class Point:
    """One run of a sweep; `options` are those that vary, as name and value."""

    sweep: Sweep
    cluster: str
    options: tuple[tuple[str, Value], ...]
    name: str
    rate: float
    seed: int

    @property
    def files(self) -> tuple[str, ...]:
        """The files that it reads."""
        return () if self.sweep.trace is None else (self.sweep.trace,)

    @property
    def key(self) -> Row:
        """What tells its row from all others."""
        who = {"policy": self.name} if self.sweep.is_training else {"scheduler": self.name}
        where = {"cluster": self.cluster} if self.sweep.is_training else {"workers": self.cluster or "scenario"}
        varied = {name: str(value) for name, value in self.options}
        return {**who, **where, **varied, "rate": self.rate, "seed": self.seed, "fixed": self.sweep.fixed}

    def simulation(self) -> TrainingRun | ServingRun:
        """What it runs."""
        return self._training() if self.sweep.is_training else self._serving()

    def __call__(self, progress: Progress | None = None) -> Row:
        """Do it, here and now, and give its row."""
        run = self.simulation()
        numbers = training_row(run(progress)) if isinstance(run, TrainingRun) else serving_row(run(progress))
        return {**self.key, **numbers}

    def _training(self) -> TrainingRun:
        sweep, given = self.sweep, dict(self.options)
        if sweep.trace is not None:
            workload = Workload(sweep.trace, sweep.format, scaling=Scaling(speed_up=self.rate, seed=self.seed))
        else:
            generator = parse_generate(f"{sweep.generate},rate={self.rate!r}")
            workload = Workload(generator=replace(generator, seed=self.seed))
        options = TrainingOptions(
            round_seconds=_seconds("round", given.get("round", 360.0)),
            restart_seconds=_seconds("restart", given.get("restart", 0.0), or_none=True),
            seed=self.seed,
        )
        return TrainingRun(workload, catalog.priced(read_cluster(self.cluster)), self.name, options)

    def _serving(self) -> ServingRun:
        given = dict(self.options)
        workers = None if not self.cluster else _whole("clusters", self.cluster)
        requests = _whole("options.requests", given["requests"]) if "requests" in given else None
        workload = ServingWorkload(
            self.sweep.scenario, str(given.get("arrivals", "poisson")), workers, requests, self.rate
        )
        numbers = {name: _number(name, given[name]) for name in ("slo-scale", "noise") if name in given}
        options = ServingOptions(
            seed=self.seed, slo_scale=numbers.get("slo-scale", 1.0), noise=numbers.get("noise", 0.0)
        )
        return ServingRun(workload, self.name, options)


class SweepFile(BaseModel):
    """The fields of a sweep file: those of a `Sweep`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    policies: Annotated[tuple[str, ...], Expected("a list of policies, as in [fifo, max-min-fairness]")] = ()
    schedulers: Annotated[tuple[str, ...], Expected("a list of schedulers, as in [compass, jit]")] = ()
    rates: Annotated[tuple[float, ...], Expected("a list of numbers above 0, as in [2, 4, 6]")] = (1.0,)
    seeds: Annotated[tuple[int, ...], Expected("a list of whole numbers, as in [0, 1, 2]")] = (0, 1, 2)
    clusters: Annotated[tuple[str, ...], Expected("a list of clusters, as in ['v100=8,k80=16']")] = ()
    generate: Annotated[str | None, Expected("as --generate takes it but the rate, as in jobs=1000,multi-gpu")] = None
    trace: Annotated[str | None, Expected("the name of a trace file")] = None
    format: Annotated[str | None, Expected("a trace format")] = None
    scenario: Annotated[str, Expected("a scenario, or a file of one")] = "compass-edge"
    options: Annotated[
        dict[str, str | float | int | tuple[str | float | int, ...]],
        Expected("values by option, one or a list of each, as in {round: [6m, 12m]}"),
    ] = Field(default_factory=dict)


_FORM = Form.of(SweepFile, "policies, rates and the rest of a sweep, as in 'policies: [fifo]'")


def read_sweep(path: str) -> Mapping[str, Any]:
    """The fields of a sweep from a YAML file, for options to be added to."""
    try:
        read = _FORM.read(Path(path).read_bytes(), path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}; name a sweep file") from None
    return {each.name: getattr(read, each.name) for each in fields(Sweep)}


def _seconds(name: str, given: object, *, or_none: bool = False) -> float:
    try:
        return seconds_of(given, or_none=or_none)
    except InputError as error:
        raise InputError(f"options.{name}: {error}") from None


def _number(name: str, given: object) -> float:
    try:
        return FACTORS.zero_or_more(float(str(given)))
    except ValueError:
        raise InputError(f"options.{name}: '{given}' given, expected a number") from None
    except InputError as error:
        raise InputError(f"options.{name}: {error}") from None


def _whole(name: str, given: object) -> int:
    if not str(given).isdecimal() or int(str(given)) < 1:
        raise InputError(f"{name}: '{given}' given, expected a whole number of at least 1")
    return int(str(given))
