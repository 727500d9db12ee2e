"""What a run of `esg-apps` is given, in a few words, and the run itself: made anew in whichever process does it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fairway.errors import InputError
from fairway.options import nearest
from fairway.place.schedulers import SCHEDULERS
from fairway.report.serverless_record import ServerlessRecord
from fairway.sim.placed_on_invokers import simulate_placed
from fairway.sim.scenarios.esg_apps import APPS, LOADS, SLOS, esg_apps, esg_arrivals
from fairway.sim.serverless import Progress, ServerlessOptions, simulate_serverless


def name_of(scheduler: str) -> str:
    """The name of a scheduler without its options."""
    return scheduler.partition(":")[0].strip()


@dataclass(frozen=True, slots=True)
class EsgApps:
    """Which of the scenario's loads, SLOs and sets of applications; how noisy run times are, and what decisions take.

    `noise` is the standard deviation of log(time / profile).
    """

    load: str = "normal"
    slo: str = "moderate"
    apps: str = "chains"
    noise: float = 0.08
    overhead_seconds: float = 0.001

    def __post_init__(self) -> None:
        for option, given, known in (("load", self.load, LOADS), ("slo", self.slo, SLOS), ("apps", self.apps, APPS)):
            if given not in known:
                hint = nearest(given, known)
                raise InputError(f"--{option}: '{given}' given, expected one of {', '.join(known)}{hint}")
        if not (math.isfinite(self.noise) and 0 <= self.noise <= 2):
            raise InputError(f"--noise: {self.noise:g} given, expected a number from 0 to 2")
        if not (math.isfinite(self.overhead_seconds) and self.overhead_seconds >= 0):
            raise InputError(f"--overhead: {self.overhead_seconds:g} s given, expected a time of at least 0")

    @property
    def gaps(self) -> tuple[float, float]:
        """The shortest and the longest time between two requests, in seconds."""
        return LOADS[self.load]


@dataclass(frozen=True, slots=True)
class ServerlessRun:
    """One scheduler on the scenario. `settings` go into the record: what is needed to repeat the run."""

    workload: EsgApps
    scheduler: str
    options: ServerlessOptions
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def files(self) -> tuple[str, ...]:
        """It reads none."""
        return ()

    def __call__(self, progress: Progress | None = None) -> ServerlessRecord:
        """Do it, here and now."""
        given, options = self.workload, self.options
        simulate = simulate_placed if name_of(self.scheduler) in SCHEDULERS else simulate_serverless
        return simulate(
            esg_apps(given.slo, given.apps, noise=given.noise, overhead_seconds=given.overhead_seconds),
            esg_arrivals(given.load, given.apps, options.end_seconds, options.seed),
            self.scheduler,
            options,
            settings={**self.settings, "seed": options.seed},
            progress=progress,
        )
