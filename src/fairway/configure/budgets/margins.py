"""How much time to keep back because run times vary: from the measured noise, not fixed.

If stage i takes w_i of the rest of the time, each time multiplied by its own factor exp(σ·z) with z standard normal,
then the whole varies by about σ · sqrt(Σ w_i²) / Σ w_i of itself. Planning for `deviations` times that on top means a

    margin = 1 - 1 / (1 + deviations · σ · sqrt(Σ w_i²) / Σ w_i)

The fewer stages are left, the larger it is: their noise no longer evens out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from fairway.configure.budgets.shares import Shares

DEVIATIONS = 2.0
"""Two standard deviations: about one request in forty takes longer."""


def spread_of(shares: Shares, stage: int) -> float:
    """sqrt(Σ w²) / Σ w along the longest way from a stage to the end: 1 for one stage, less for several."""
    squares, at = shares.weights[stage] ** 2, stage
    while after := shares.workflow.successors[at]:
        at = max(after, key=lambda each: shares.rests[each])
        squares += shares.weights[at] ** 2
    return math.sqrt(squares) / shares.rests[stage] if shares.rests[stage] > 0 else 0.0


def margin_of_noise(spread: float, noise: float, deviations: float = DEVIATIONS) -> float:
    """The part of the time left to keep back, given the spread of what is left and the noise of one stage."""
    return 1.0 - 1.0 / (1.0 + deviations * noise * spread)


@dataclass(slots=True)
class NoiseEstimate:
    """The noise of finished tasks: the root mean square of log(time / profile), with a prior of so many tasks."""

    prior: float = 0.0
    prior_tasks: float = 10.0
    tasks: int = 0
    squares: float = 0.0

    def add(self, seconds: float, profile_seconds: float) -> None:
        """A task has run for so long, where its profile has so much."""
        if seconds > 0 and profile_seconds > 0:
            self.tasks += 1
            self.squares += math.log(seconds / profile_seconds) ** 2

    @property
    def noise(self) -> float:
        """The estimate so far."""
        weight = self.tasks + self.prior_tasks
        return math.sqrt((self.squares + self.prior_tasks * self.prior**2) / weight) if weight > 0 else 0.0
