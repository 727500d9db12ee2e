"""What is assumed of how long jobs take, by whoever runs the simulator forward from a present state.

Jobs that say how many steps they have left are taken at their word. A job that does not is taken to run for as long as
the others do in the median, at its fastest. A sample multiplies both by draws of a log-normal distribution around 1,
with a spread of 20 % for jobs that say how long they are, and of a factor of e for those that do not, since the median
of others is hardly more than a guess.
"""

from __future__ import annotations

import numpy as np

from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.messages import Event, StepsCounted

SPREAD = 0.2
_SPREAD_UNKNOWN = 1.0
_TYPICAL_ROUNDS = 10.0
"""How long a job is taken to run, in rounds, where not one job says how long it is."""


class Lengths:
    """The steps that the jobs of an engine have left, known or assumed.

    `known` marks the jobs that say how many; the others are taken to run for `typical` seconds, which is the median of
    the others if `from_others`.
    """

    def __init__(self, engine: TrainingEngine) -> None:
        jobs = engine.jobs
        self._jobs = jobs
        self._fastest = jobs.rates.max(axis=1, initial=0.0)
        self.known = np.isfinite(jobs.left)
        lasting = jobs.left[self.known] / np.maximum(self._fastest[self.known], 1e-300)
        self.from_others = len(lasting) > 0
        rounds = _TYPICAL_ROUNDS * engine.options.round_seconds
        self.typical = float(np.median(lasting)) if self.from_others else rounds

    def left(self, draws: np.random.Generator | None = None, *, certain: str | None = None) -> dict[str, float]:
        """The steps left by job; with `draws` those of a sample, in which one job may be `certain`."""
        jobs = self._jobs
        factors = np.ones(len(jobs))
        if draws is not None:
            factors = np.exp(draws.normal(size=len(jobs)) * np.where(self.known, SPREAD, _SPREAD_UNKNOWN))
        left = np.where(self.known, jobs.left, self.typical * self._fastest) * factors
        if certain is not None:
            position = jobs.position(certain)
            left[position] /= factors[position]
        return dict(zip(jobs.ids, left.tolist(), strict=True))

    def news(self, left: dict[str, float]) -> list[Event]:
        """The events by which an engine learns these steps of the jobs that say how long they are."""
        ids = self._jobs.ids
        return [StepsCounted(ids[position], left[ids[position]]) for position in np.flatnonzero(self.known).tolist()]
