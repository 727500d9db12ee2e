"""Plans that are made once, before anything runs: how late a request is in 95 of 100 cases, and how plans are improved.

The time of stage i in sample s is t_i · exp(σ · z_si) plus its overhead and fetch; a request takes the longest way
through its graph. A plan is in time if the 95th percentile of the samples is at most the SLO.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fairway.configure.application import Application
from fairway.configure.arrays import FloatArray
from fairway.configure.capacity import Capacity
from fairway.configure.configuration import SECONDS_PER_HOUR, Configuration
from fairway.configure.fetches import Fetches
from fairway.configure.platform import Platform
from fairway.configure.queues import Candidates, Choice, Decision, Queue
from fairway.configure.search.kernels import TOLERANCE

Plan = tuple[Configuration, ...]
"""The configuration of each stage, by its number."""


@dataclass(frozen=True, eq=False)
class Samples:
    """Simulated requests: `factors[s, i]` is what the time of stage i is multiplied by in sample s."""

    application: Application
    platform: Platform
    factors: FloatArray
    percentile: float = 0.95

    @classmethod
    def drawn(
        cls, application: Application, platform: Platform, draws: np.random.Generator, count: int = 2000
    ) -> Samples:
        """Samples with the noise of the platform."""
        return cls(application, platform, np.exp(platform.noise * draws.standard_normal((count, len(application)))))

    @cached_property
    def added(self) -> FloatArray:
        """By stage, what its overhead and fetch add."""
        fetches = Fetches.of(self.application, self.platform)
        return np.asarray([fetches.planned(stage) for stage in range(len(self.application))])

    def latency(self, plan: Plan) -> float:
        """The percentile of the time from end to end."""
        run = [
            profile.seconds_of(*configuration)
            for profile, configuration in zip(self.application.profiles, plan, strict=True)
        ]
        times = self.factors * np.asarray(run) + self.added
        return float(np.quantile(self._ends(times), self.percentile))

    def _ends(self, times: FloatArray) -> FloatArray:
        workflow = self.application.workflow
        finish: list[FloatArray] = [times[:, 0]] * len(workflow)
        for stage in workflow.topological_order:
            before = [finish[other] for other in workflow.predecessors[stage]]
            finish[stage] = times[:, stage] + (np.max(before, axis=0) if before else 0.0)
        last = [finish[stage] for stage, after in enumerate(workflow.successors) if not after]
        ends: FloatArray = np.max(last, axis=0)
        return ends

    def in_time(self, plan: Plan) -> bool:
        """Whether the percentile is within the SLO."""
        return self.latency(plan) <= self.application.slo_seconds + TOLERANCE

    def cost(self, plan: Plan) -> float:
        """Dollars per job, if every batch is full."""
        return sum(self.stage_cost(stage, configuration) for stage, configuration in enumerate(plan))

    def stage_cost(self, stage: int, configuration: Configuration) -> float:
        """Dollars per job of one stage."""
        seconds = self.application.profiles[stage].seconds_of(*configuration)
        rate = self.platform.prices.rate(configuration.cpu, configuration.gpu)
        return rate * seconds / configuration.batch / SECONDS_PER_HOUR


def replaced(plan: Plan, stage: int, configuration: Configuration) -> Plan:
    """The same plan with another configuration of one stage."""
    return (*plan[:stage], configuration, *plan[stage + 1 :])


def steps(application: Application, stage: int, configuration: Configuration, *axes: str) -> list[Configuration]:
    """The configurations of a stage that are one size larger along one of the axes."""
    known = application.profiles[stage].configurations()
    found = []
    for axis in axes:
        others = [
            each
            for each in known
            if each._replace(**{axis: 0}) == configuration._replace(**{axis: 0})
            and getattr(each, axis) > getattr(configuration, axis)
        ]
        if others:
            found.append(min(others, key=lambda each: getattr(each, axis)))
    return found


def with_batches(samples: Samples, plan: Plan) -> Plan:
    """Raise batches one size at a time, where a job saves most, as long as the plan stays in time."""
    while True:
        ways = []
        for stage, configuration in enumerate(plan):
            for larger in steps(samples.application, stage, configuration, "batch"):
                saving = samples.stage_cost(stage, configuration) - samples.stage_cost(stage, larger)
                candidate = replaced(plan, stage, larger)
                if saving > 0 and samples.in_time(candidate):
                    ways.append((-saving, stage, candidate))
        if not ways:
            return plan
        plan = min(ways)[2]


@dataclass(frozen=True, eq=False)
class PlannedQueues:
    """Decides for the queues of one application by a plan: the planned CPUs and slices, as many jobs as there are."""

    application: Application
    plan: Plan

    def decide(self, queue: Queue, capacity: Capacity) -> Decision:  # noqa: ARG002
        """Start the planned configuration; never wait for more jobs."""
        return Candidates((Choice(self.plan[queue.stage]),))
