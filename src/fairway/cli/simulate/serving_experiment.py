"""What `fairway simulate serving` was asked for: its options as they were given, and the command that repeats them.

Options that were left out have the value that fits the scenario. Options that mean nothing in the scenario are refused,
with the reason, rather than left unheeded.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any

from fairway.errors import InputError
from fairway.sim.serving_workload import ESG_APPS

_NOT_FOR_ESG_APPS: Mapping[str, str] = MappingProxyType(
    {
        "rate": "whose requests come at the gaps of --load",
        "arrivals": "whose requests come at the gaps of --load",
        "columns": "whose requests come at the gaps of --load",
        "requests": "whose requests come for as long as --duration",
        "discard": "in which requests of the --warmup do not count",
        "nic_queues": "whose tasks fetch their inputs through a store",
    }
)

_FOR_ESG_APPS = ("load", "slo", "apps", "warmup", "duration", "overhead", "containers", "container_limit", "slices")

_OTHERWISE: Mapping[str, Any] = MappingProxyType(
    {"schedulers": ("compass",), "seeds": (0,), "arrivals": "poisson", "noise": 0.0, "discard": 0.1}
)

_OTHERWISE_IN_ESG_APPS: Mapping[str, Any] = MappingProxyType(
    {
        "schedulers": ("esg",),
        "seeds": (1,),
        "noise": 0.08,
        "load": "normal",
        "slo": "moderate",
        "apps": "chains",
        "warmup": "60s",
        "duration": "300s",
        "overhead": "1ms",
        "containers": "all",
        "slices": "any",
    }
)

_NOT_SETTINGS = frozenset({"schedulers", "seeds", "processes", "keep_runs"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingExperiment:
    """The options by their names; one that was left out is None, empty or False.

    With `keep_runs`, every run is recorded, as a report needs.
    """

    scenario: str = "compass-edge"
    schedulers: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    workers: int | None = None
    rate: float | None = None
    arrivals: str | None = None
    columns: str | None = None
    requests: int | None = None
    find_rate: str | None = None
    load: str | None = None
    slo: str | None = None
    apps: str | None = None
    warmup: str | None = None
    duration: str | None = None
    slo_scale: float = 1.0
    staleness: str | None = None
    noise: float | None = None
    discard: float | None = None
    overhead: str | None = None
    containers: str | None = None
    container_limit: int | None = None
    slices: str | None = None
    eviction: str | None = None
    nic_queues: bool = False
    fail: tuple[str, ...] = ()
    detection: str | None = None
    no_recovery: bool = False
    no_time_watching: bool = False
    processes: int | None = None
    keep_runs: bool = False

    @property
    def is_esg_apps(self) -> bool:
        """Whether requests come at a load, for a while, instead of so many at a rate."""
        return self.scenario == ESG_APPS

    def complete(self) -> ServingExperiment:
        """The same with a value for every option that the scenario has; refuses those that it has not."""
        if self.is_esg_apps:
            for name, reason in _NOT_FOR_ESG_APPS.items():
                if _is_given(getattr(self, name)):
                    raise InputError(
                        f"{_option(name)}: belongs to other scenarios than {ESG_APPS}, {reason}; leave it out"
                    )
            if self.eviction == "copies":
                raise InputError(
                    f"--eviction: 'copies' given, but a container of {ESG_APPS} that goes is copied nowhere; "
                    "leave it out"
                )
        else:
            for name in _FOR_ESG_APPS:
                if _is_given(getattr(self, name)):
                    raise InputError(f"{_option(name)}: belongs to --scenario {ESG_APPS}; leave it out, or add that")
        otherwise = {
            **(_OTHERWISE_IN_ESG_APPS if self.is_esg_apps else _OTHERWISE),
            **({"detection": "300ms"} if self.fail else {}),
        }
        return replace(self, **{name: value for name, value in otherwise.items() if not _is_given(getattr(self, name))})

    def settings(self) -> dict[str, Any]:
        """All that is needed to repeat the runs but the scheduler and the seed, by the names of the options."""
        given = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in _NOT_SETTINGS}
        return {
            name.replace("_", "-"): list(value) if isinstance(value, tuple) else value
            for name, value in given.items()
            if _is_given(value)
        }

    def command(self) -> str:
        """The command that repeats all runs."""
        words = ["fairway", "simulate", "serving"]
        for name, value in self.settings().items():
            for each in value if isinstance(value, list) else [value]:
                words.append(f"--{name}")
                if each is not True:
                    words.append(f"{each:g}" if isinstance(each, float) else str(each))
        for scheduler in self.schedulers:
            words += ["--scheduler", scheduler]
        for seed in self.seeds:
            words += ["--seed", str(seed)]
        return shlex.join(words)


def _is_given(value: object) -> bool:
    return value is not None and value is not False and value != ()


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
