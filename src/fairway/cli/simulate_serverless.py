"""`fairway simulate serving --scenario esg-apps`: what was asked for, checked, turned into runs, run and shown.

The command itself is in `simulate_serving`, which hands over here what belongs to a serverless platform.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from fairway.cli.output import STDOUT, write_json
from fairway.cli.simulate_serving_options import ESG_APPS, seconds_of
from fairway.configure.configurators import CONFIGURATORS
from fairway.configure.registry import configurator_of
from fairway.engine.containers import ContainerRule
from fairway.errors import InputError
from fairway.options import nearest
from fairway.place.registry import scheduler_of
from fairway.place.schedulers import SCHEDULERS
from fairway.sim.navigator import is_compat
from fairway.sim.serverless import ServerlessOptions
from fairway.sim.serverless_workload import EsgApps, ServerlessRun, name_of

MEASURED = "measured"
ALL_WARM = "all"

_CONTAINERS = re.compile(r"\s*(\d{1,4})((?:\s*,\s*[a-z-]+)*)\s*")
_FLAGS = ("held", "no-prewarm")


@dataclass(frozen=True, slots=True)
class AskedServerless:
    """The options as they were given; `others` are those that do not belong to this scenario, by their names."""

    schedulers: tuple[str, ...] = ("esg",)
    load: str = "normal"
    slo: str = "moderate"
    apps: str = "chains"
    warmup: str = "60s"
    duration: str = "300s"
    noise: float = 0.08
    overhead: str = "1ms"
    containers: str = ALL_WARM
    container_limit: int | None = None
    seeds: tuple[int, ...] = ()
    processes: int | None = None
    others: Mapping[str, Any] | None = None

    def settings(self) -> dict[str, Any]:
        """All that is needed to repeat the runs but the scheduler and the seed, by the names of the options."""
        given = {
            "scenario": ESG_APPS,
            "load": self.load,
            "slo": self.slo,
            "apps": self.apps,
            "warmup": self.warmup,
            "duration": self.duration,
            "noise": self.noise,
            "overhead": self.overhead,
            "containers": self.containers,
            "container-limit": self.container_limit,
        }
        return {name: value for name, value in given.items() if value is not None}

    def command(self) -> str:
        """The command that repeats all runs."""
        words = ["fairway", "simulate", "serving"]
        for name, value in self.settings().items():
            words += [f"--{name}", f"{value:g}" if isinstance(value, float) else str(value)]
        for scheduler in self.schedulers:
            words += ["--scheduler", scheduler]
        for seed in self.seeds:
            words += ["--seed", str(seed)]
        return shlex.join(words)


@dataclass(frozen=True, slots=True)
class ServerlessPlan:
    """The runs, what to call each, and about how many requests have to end in one."""

    runs: tuple[ServerlessRun, ...]
    labels: tuple[str, ...]
    requests: int


def run_serverless(asked: AskedServerless, json_to: str | None, report: str | None, *, quiet: bool) -> None:
    """Do what was asked for, and show what came of it."""
    plan = plan_of_serverless(asked)

    from fairway.cli.simulate_progress import watching
    from fairway.report.serverless_metrics import summarize_serverless
    from fairway.sim.comparison import compare

    with watching(plan.labels, plan.requests, shown=not quiet, told=lambda now: f"requests, {now:.0f} s") as watcher:
        records = compare(plan.runs, processes=asked.processes, watcher=watcher)
    summaries = [summarize_serverless(record) for record in records]
    if json_to is not None:
        write_json({"runs": summaries}, json_to)
    if report is not None:
        from fairway.report.serverless_page import write_serverless_page

        write_serverless_page(records, report, command=asked.command())
    if json_to != STDOUT:
        from rich.console import Console

        from fairway.report.serverless_comparison import SERVERLESS_MEASURES
        from fairway.report.serving_table import serving_table

        Console(highlight=False).print(serving_table(summaries, SERVERLESS_MEASURES))


def plan_of_serverless(asked: AskedServerless) -> ServerlessPlan:
    """Check everything that can be checked beforehand, and plan the runs: seed by seed, scheduler by scheduler."""
    for option in asked.others or {}:
        raise InputError(f"{option}: belongs to other scenarios than {ESG_APPS}; leave it out")
    for seed in asked.seeds:
        if not 0 <= seed < 2**32:
            raise InputError(f"--seed: {seed} given, expected a whole number from 0 to {2**32 - 1}")
    if asked.processes is not None and asked.processes < 1:
        raise InputError(f"--processes: {asked.processes} given, expected a whole number of at least 1")
    measured = asked.overhead.strip() == MEASURED
    overhead = 0.001 if measured else seconds_of(asked.overhead, "--overhead")
    workload = EsgApps(asked.load, asked.slo, asked.apps, asked.noise, overhead)
    options = ServerlessOptions(
        seconds_of(asked.warmup, "--warmup"),
        seconds_of(asked.duration, "--duration"),
        measured_overhead=measured,
        containers=_containers(asked.containers, asked.container_limit),
    )
    for scheduler in asked.schedulers:
        _check(scheduler, plain=options.containers is None and not measured)
    if options.duration_seconds <= 0:
        raise InputError(f"--duration: '{asked.duration}' given, expected a time above 0, as in 300s")
    runs, labels = [], []
    for seed in asked.seeds or (1,):
        for scheduler in asked.schedulers:
            settings = {**asked.settings(), "scheduler": scheduler}
            runs.append(ServerlessRun(workload, scheduler, replace(options, seed=seed), settings))
            labels.append(f"{scheduler}, seed {seed}" if len(asked.seeds) > 1 else scheduler)
    low, high = workload.gaps
    return ServerlessPlan(tuple(runs), tuple(labels), round(2 * options.end_seconds / (low + high)))


def _check(scheduler: str, *, plain: bool) -> None:
    """Refuse a scheduler that is not known; those that only place run on a plain platform only."""
    name = name_of(scheduler)
    if name in SCHEDULERS:
        if is_compat(scheduler):
            raise InputError(f"--scheduler: '{scheduler}' repeats an experiment on compass-edge; leave out compat")
        scheduler_of(scheduler)
        if not plain:
            raise InputError(
                f"--scheduler: '{scheduler}' only places tasks; leave out --containers and --overhead measured"
            )
        return
    known = (*CONFIGURATORS, *SCHEDULERS)
    if name not in known:
        raise InputError(f"--scheduler: '{scheduler}' given, expected one of {', '.join(known)}{nearest(name, known)}")
    configurator_of(scheduler)


def _containers(text: str, limit: int | None) -> ContainerRule | None:
    """Read `all`, `2`, `2,held` or `0,no-prewarm`."""
    if limit is not None and limit < 1:
        raise InputError(f"--container-limit: {limit} given, expected a whole number of at least 1")
    if text.strip() == ALL_WARM:
        if limit is not None:
            raise InputError("--container-limit: given, but all functions are warm; add --containers N")
        return None
    match = _CONTAINERS.fullmatch(text)
    flags = [flag.strip() for flag in match[2].split(",") if flag.strip()] if match else []
    if not match or any(flag not in _FLAGS for flag in flags):
        raise InputError(
            f"--containers: '{text}' given, expected {ALL_WARM} or the idle containers of each function on each "
            f"invoker at the start, as in 2, with options {' and '.join(_FLAGS)}"
        )
    return ContainerRule(int(match[1]), limit, prewarms="no-prewarm" not in flags, held="held" in flags)
