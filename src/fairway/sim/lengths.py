"""What is assumed of how long jobs take, by whoever runs the simulator forward from a present state.

Jobs that say how many steps they have left are taken at their word. A job that does not is taken to run for as long as
jobs of its type and team have run that had come as far (`engine.training.lengths`): in the median, and in a sample for
as long as one of them that is drawn. Where hardly any were seen, it is for as long as the others that are here do in
the median, at its fastest. A sample multiplies this, and what jobs say, by draws of a log-normal distribution around 1,
with a spread of 20 % for jobs that say how long they are, and otherwise of a factor of e, since the median of others is
hardly more than a guess.
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.messages import Event, StepsCounted
from fairway.jobs import Job

SPREAD = 0.2
_SPREAD_UNKNOWN = 1.0
_TYPICAL_ROUNDS = 10.0
"""How long a job is taken to run, in rounds, where not one job says how long it is."""


class Lengths:
    """The steps that the jobs of an engine have left, known or assumed.

    `known` marks the jobs that say how many; the others are taken to run for `typical` seconds in the median, and
    `source` says in a few words why.
    """

    def __init__(self, engine: TrainingEngine) -> None:
        jobs = engine.jobs
        self._engine, self._jobs = engine, jobs
        self._fastest = jobs.rates.max(axis=1, initial=0.0)
        self.known = np.isfinite(jobs.left)
        lasting = jobs.left[self.known] / np.maximum(self._fastest[self.known], 1e-300)
        self._of_others = float(np.median(lasting)) if len(lasting) else _TYPICAL_ROUNDS * engine.options.round_seconds
        likely = engine.likely_steps()
        self._by_history = likely is not None and not bool(np.isnan(likely[~self.known]).any())
        self.source = "the median of the others" if len(lasting) else "a guess"
        self.typical = self._of_others
        if likely is not None and self._by_history:
            self.source = "the median of jobs like them before"
            self.typical = float(np.median((likely / self._fastest)[~self.known]))

    def of_new(self, job: Job) -> float:
        """The steps of a job that is not here yet and does not say how many."""
        found = self._engine.arrivals.lengths.left([(job.job_type, job.entity)], np.zeros(1))
        return (self._of_others if found is None else float(found[0])) * max(job.throughputs.values())

    def left(self, draws: np.random.Generator | None = None, *, certain: str | None = None) -> dict[str, float]:
        """The steps left by job; with `draws` those of a sample, in which one job may be `certain`."""
        jobs, unknown = self._jobs, ~self.known
        drawn = np.zeros(len(jobs)) if draws is None else draws.normal(size=len(jobs))
        if certain is not None:
            drawn[jobs.position(certain)] = 0.0
        left = np.where(self.known, jobs.left, self._of_others * self._fastest)
        left *= np.exp(drawn * np.where(self.known, SPREAD, _SPREAD_UNKNOWN))
        if self._by_history:
            chance = np.array([NormalDist().cdf(value) for value in drawn[unknown].tolist()])
            likely = self._engine.likely_steps(chance)
            assert likely is not None
            left[unknown] = likely[unknown]
        return dict(zip(jobs.ids, left.tolist(), strict=True))

    def news(self, left: dict[str, float]) -> list[Event]:
        """The events by which an engine learns these steps of the jobs that say how long they are."""
        ids = self._jobs.ids
        return [StepsCounted(ids[position], left[ids[position]]) for position in np.flatnonzero(self.known).tolist()]
