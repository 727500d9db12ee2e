"""Orion (OSDI'22): one plan per application, grown from the smallest until 95 of 100 requests are in time.

Every stage starts with one job on one CPU and one slice. Each round takes the step of one size, in CPUs or slices of
one stage, after which the 95th percentile of the simulated time from end to end is lowest, until it is within the SLO.
Then batches are raised where that saves most. The plan is not made again; a queue that cannot fill its batch runs what
it has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fairway.configure.application import Application
from fairway.configure.configurator import TurnOrder
from fairway.configure.platform import Platform
from fairway.configure.search.static_plan import Plan, PlannedQueues, Samples, replaced, steps, with_batches


@dataclass(frozen=True, slots=True)
class Orion:
    """Grow one plan by the step that helps most until it is in time; `samples` requests are simulated to tell."""

    name: ClassVar[str] = "orion"
    samples: int = 2000
    seed: int = 12345
    no_batching: bool = False

    @property
    def placer(self) -> str:
        """Near the data, as ESG's."""
        return "near-data"

    @property
    def turns(self) -> TurnOrder:
        """Around all queues."""
        return "ring"

    def prepare(
        self,
        application: Application,
        platform: Platform,
        draws: np.random.Generator,  # noqa: ARG002
    ) -> PlannedQueues:
        """Make the plan; its samples come from a seed of its own, so that it is the same in every run."""
        application = application.within(platform.cpu, platform.gpu)
        samples = Samples.drawn(application, platform, np.random.Generator(np.random.PCG64(self.seed)), self.samples)
        plan = grown(samples)
        return PlannedQueues(application, plan if self.no_batching else with_batches(samples, plan))


def grown(samples: Samples) -> Plan:
    """The plan that best-first growth ends with: in time, or as large as it gets."""
    application = samples.application
    plan: Plan = tuple(
        min(profile.configurations(), key=lambda each: (each.batch, each.gpu, each.cpu))
        for profile in application.profiles
    )
    while not samples.in_time(plan):
        ways = [
            replaced(plan, stage, larger)
            for stage, configuration in enumerate(plan)
            for larger in steps(application, stage, configuration, "cpu", "gpu")
        ]
        if not ways:
            break
        # Also when no step helps: one that changes nothing may be on the way to one that does.
        plan = min(ways, key=samples.latency)
    return plan
