"""Aquatope (ASPLOS'23): one plan per application, found by Bayesian optimisation before it serves.

`bayesian` searches batches, CPUs and slices of all stages together. With `exact`, a search that knows everything takes
its place: the cheapest plan of single jobs that is in time (`exact_plan`), then larger batches where they save. The
plan is not made again; a queue that cannot fill its batch runs what it has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fairway.configure.application import Application
from fairway.configure.configurator import TurnOrder
from fairway.configure.platform import Platform
from fairway.configure.search.bayesian import trained_plan
from fairway.configure.search.exact_plan import cheapest_in_time
from fairway.configure.search.static_plan import PlannedQueues, Samples, with_batches


@dataclass(frozen=True, slots=True)
class Aquatope:
    """Search one plan with so many simulated requests to judge it; with `exact`, the best there is.

    `bootstrap` plans are tried at random, then `rounds` times the most promising.
    """

    name: ClassVar[str] = "aquatope"
    exact: bool = False
    samples: int = 2000
    seed: int = 12345
    bootstrap: int = 100
    rounds: int = 20

    @property
    def placer(self) -> str:
        """Near the data, as ESG's."""
        return "near-data"

    @property
    def turns(self) -> TurnOrder:
        """Around all queues."""
        return "ring"

    def prepare(self, application: Application, platform: Platform, draws: np.random.Generator) -> PlannedQueues:
        """Make the plan. The exact one has samples from a seed of its own, so that it is the same in every run."""
        application = application.within(platform.cpu, platform.gpu)
        if self.exact:
            own = np.random.Generator(np.random.PCG64(self.seed))
            samples = Samples.drawn(application, platform, own, self.samples)
            return PlannedQueues(application, with_batches(samples, cheapest_in_time(samples)))
        return PlannedQueues(application, trained_plan(application, platform, draws, self.bootstrap, self.rounds))
