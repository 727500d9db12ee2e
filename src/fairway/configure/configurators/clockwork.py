"""Like Clockwork (OSDI'20): one place that knows all times exactly, and starts nothing that could not be in time.

Each stage of a request has a latest start: its deadline less the times of single requests of what follows, and of its
own run. The queue whose first job has to start soonest goes first, with the largest batch that is in time for that job;
jobs are in order of their deadlines, so that it is in time for all of them. A job whose latest start has passed is
refused at once, as it would only take time from others. Clockwork serves single models; deadlines of stages are ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fairway.configure.application import Application
from fairway.configure.capacity import Capacity
from fairway.configure.configurator import TurnOrder
from fairway.configure.fleet_plan import FleetRules, later_seconds
from fairway.configure.platform import Platform
from fairway.configure.queues import Candidates, Choice, Decision, Drop, Queue
from fairway.configure.whole_workers import WholeWorkers


@dataclass(frozen=True, slots=True)
class Clockwork:
    """The most urgent first, in the largest batch that is in time; what cannot be in time is refused."""

    name: ClassVar[str] = "clockwork"

    @property
    def placer(self) -> str:
        """Near the data."""
        return "near-data"

    @property
    def turns(self) -> TurnOrder:
        """The latest start that comes soonest."""
        return "slack"

    @property
    def fleet(self) -> FleetRules:
        """It has to know the deadline of each job."""
        return FleetRules()

    def prepare(self, application: Application, platform: Platform, draws: np.random.Generator) -> ClockworkQueues:  # noqa: ARG002
        """The times of an application, and how much of a request's time each stage leaves to the others."""
        times = WholeWorkers.of(application, platform)
        single = [times.seconds_of(stage, 1) for stage in range(len(application))]
        later = later_seconds(application, single)
        return ClockworkQueues(times, later, tuple(map(sum, zip(single, later, strict=True))))


@dataclass(frozen=True, slots=True)
class ClockworkQueues:
    """Decides for the queues of one application; `reserves` say by how much the latest start precedes the deadline."""

    times: WholeWorkers
    later: tuple[float, ...]
    reserves: tuple[float, ...]

    def decide(self, queue: Queue, capacity: Capacity) -> Decision:  # noqa: ARG002
        """Give up what cannot be in time, or start the largest batch that is."""
        stage = queue.stage
        left = queue.left(self.later[stage])
        single = self.times.seconds_of(stage, 1)
        lost = next((place for place, seconds in enumerate(left) if single <= seconds), len(left))
        if lost:
            return Drop(lost)
        size = self.times.largest_within(stage, left[0], queue.length)
        return Candidates((Choice(self.times.configuration(stage, size)),))
