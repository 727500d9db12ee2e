"""Our own: the whole rest of the graph by its front, within the time left less what the measured noise asks for.

Where ESG plans a group of stages within its share, this looks up the front of everything that follows, graphs included,
so that no share is needed. It keeps back what noise asks for (`margins`), plans no larger batches later than now, gives
requests that are lost the cheapest configuration, and asks the queue with the least time left first. When most of a
resource is in use, its price counts several times, so that all queues together take less of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from fairway.configure.application import Application
from fairway.configure.budgets.margins import DEVIATIONS, margin_of_noise, spread_of
from fairway.configure.budgets.shares import Shares
from fairway.configure.capacity import Capacity
from fairway.configure.configuration import Prices
from fairway.configure.configurator import TurnOrder
from fairway.configure.fetches import Fetches
from fairway.configure.platform import Platform
from fairway.configure.queues import Candidates, Decision, Drop, Kind, Queue
from fairway.configure.search.fallback import cheapest_configurations, fastest_configurations, is_lost
from fairway.configure.search.front import first_configurations
from fairway.configure.search.rollout import UNLIMITED
from fairway.configure.tables import Tables
from fairway.errors import InputError
from fairway.made import made

_LATE = ("refuse", "serve")


@dataclass(frozen=True, slots=True)
class FrontConfigurator:
    """Look up the cheapest plan for the whole rest of the graph before every stage.

    `deviations` of the measured noise are kept back. Above `busy`, a part of all CPUs or slices, that resource counts
    `cpu_factor` or `gpu_factor` times its price. A request that is lost is served (`late=serve`),
    or refused (`late=refuse`), so that it takes no time from those that are not.
    """

    name: ClassVar[str] = "front"
    k: int = 5
    deviations: float = DEVIATIONS
    busy: float = 0.85
    cpu_factor: float = 5.0
    gpu_factor: float = 3.0
    late: str = "serve"

    def __post_init__(self) -> None:
        if self.late not in _LATE:
            raise InputError(f"front: late: '{self.late}' given, expected one of {', '.join(_LATE)}")
        if self.k < 1:
            raise InputError(f"front: k: {self.k} given, expected a whole number >= 1")

    @property
    def placer(self) -> str:
        """As ESG's."""
        return "near-data"

    @property
    def turns(self) -> TurnOrder:
        """The queue whose oldest job has the least time left first."""
        return "slack"

    def prepare(
        self,
        application: Application,
        platform: Platform,
        draws: np.random.Generator,  # noqa: ARG002
    ) -> FrontQueues:
        """The fronts of an application at the usual prices; those at others follow when they are first met."""
        queues = FrontQueues(self, application.within(platform.cpu, platform.gpu), platform)
        tables = queues.tables(Capacity.idle(1, platform.cpu, platform.gpu))
        for stage in range(len(application)):
            tables.first_layer(stage, application.after[stage], UNLIMITED)
        return queues


@dataclass(frozen=True, eq=False)
class FrontQueues:
    """Decides for the queues of one application."""

    rule: FrontConfigurator
    application: Application
    platform: Platform
    _tables: dict[tuple[bool, bool], Tables] = field(default_factory=dict, repr=False)

    @cached_property
    def _fetches(self) -> Fetches:
        return Fetches.of(self.application, self.platform)

    @cached_property
    def _spreads(self) -> tuple[float, ...]:
        shares = Shares.of(self.application)
        return tuple(spread_of(shares, stage) for stage in range(len(self.application)))

    def tables(self, capacity: Capacity) -> Tables:
        """The tables at the prices that count now."""
        used_cpu, used_gpu = capacity.used()
        key = (used_cpu > self.rule.busy, used_gpu > self.rule.busy)
        if key not in self._tables:
            prices = Prices(
                self.platform.prices.cpu * (self.rule.cpu_factor if key[0] else 1.0),
                self.platform.prices.gpu * (self.rule.gpu_factor if key[1] else 1.0),
            )
            self._tables[key] = Tables(self.application, replace(self.platform, prices=prices), same_batch=True)
        return self._tables[key]

    def decide(self, queue: Queue, capacity: Capacity) -> Decision:
        """Start the first candidate that fits somewhere."""
        stage, k = queue.stage, self.rule.k
        tables = self.tables(capacity)
        added = self._fetches.expected(queue, capacity)
        noise = self.platform.noise if queue.noise is None else queue.noise
        budget = queue.seconds_left * (1 - margin_of_noise(self._spreads[stage], noise, self.rule.deviations))
        kind: Kind = "planned"
        numbers = first_configurations(tables, stage, self.application.after[stage], queue.length, budget, k, added)
        if not numbers and is_lost(tables, stage, queue.length, queue.seconds_left, added):
            if self.rule.late == "refuse":
                return made(Drop, (1,))
            kind, numbers = "shed", cheapest_configurations(tables, stage, queue.length, k)
        elif not numbers:
            kind, numbers = "best-effort", fastest_configurations(tables, stage, queue.length, k)
        return made(Candidates, (tables.choices(stage, numbers, kind), None, None, 0))
