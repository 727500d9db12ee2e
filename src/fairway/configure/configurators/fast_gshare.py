"""FaST-GShare (ICPP'23): each stage for itself, as many jobs per second and GPU slice as its own part of the SLO
allows.

A stage may take its quota of the SLO, with its input taken to be local. Of the configurations that do and that the
queue can fill, the one with the largest (batch / t) / slices runs, between equals the cheaper, where it fits best. If
none is fast enough, the fastest runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fairway.configure.application import Application
from fairway.configure.budgets.shares import Shares
from fairway.configure.capacity import Capacity
from fairway.configure.configurator import TurnOrder
from fairway.configure.fetches import Fetches
from fairway.configure.platform import Platform
from fairway.configure.queues import Candidates, Choice, Decision, Queue
from fairway.configure.search.fallback import fastest_configurations
from fairway.configure.search.kernels import TOLERANCE
from fairway.configure.tables import Tables


@dataclass(frozen=True, slots=True)
class FastGShare:
    """Per stage, the most jobs per second and slice within its own part of the SLO; best fit."""

    name: ClassVar[str] = "fast-gshare"

    @property
    def placer(self) -> str:
        """Where a batch leaves the fewest slices unused."""
        return "best-fit"

    @property
    def turns(self) -> TurnOrder:
        """Around all queues."""
        return "ring"

    def prepare(
        self,
        application: Application,
        platform: Platform,
        draws: np.random.Generator,  # noqa: ARG002
    ) -> FastGShareQueues:
        """The tables and quotas of an application."""
        application = application.within(platform.cpu, platform.gpu)
        return FastGShareQueues(
            application,
            Tables(application, platform),
            Shares.of(application, 1),
            Fetches.of(application, platform),
        )


@dataclass(frozen=True, eq=False)
class FastGShareQueues:
    """Decides for the queues of one application."""

    application: Application
    tables: Tables
    shares: Shares
    fetches: Fetches

    def decide(self, queue: Queue, capacity: Capacity) -> Decision:  # noqa: ARG002
        """Start the configuration with most jobs per second and slice."""
        stage = queue.stage
        profile = self.application.profiles[stage]
        layer = self.tables.first_layer(stage, (), queue.length)
        limit = self.shares.quota(stage, self.application.slo_seconds) - self.fetches.planned(stage)
        numbers = layer.numbers[layer.run_seconds <= limit + TOLERANCE]
        if len(numbers):
            speed = profile.batch[numbers] / profile.seconds[numbers] / np.maximum(profile.gpu[numbers], 1)
            prices = self.tables.platform.prices
            rate = profile.cpu[numbers] * prices.cpu + profile.gpu[numbers] * prices.gpu
            chosen = int(numbers[np.lexsort((rate, -speed))[0]])
        else:
            chosen = fastest_configurations(self.tables, stage, queue.length, 1)[0]
        return Candidates((Choice(profile.configuration(chosen)),))
