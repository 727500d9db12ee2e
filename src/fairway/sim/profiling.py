"""What the scheduler believes about jobs that share, when only some of it has been measured (Gavel §3.3 and §7.5).

The table is the truth that jobs run by. Some of its job types are references, measured next to each other. A job type
that comes for the first time is measured next to a fraction of the references, drawn at random, and the rest is
estimated; what the simulator then sees while two jobs share replaces the estimate.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from fairway.errors import InputError
from fairway.profiles import Estimator, MatrixCompletion, ThroughputTable, estimator_of, sample_references


@dataclass(frozen=True, slots=True)
class Profiling:
    """Measure each new job type next to this fraction of so many reference job types, and estimate the rest.

    What is seen while two jobs share replaces the estimate if it `watches`.
    """

    fraction: float = 0.2
    references: int = 16
    estimator: str | Estimator = MatrixCompletion.name
    watches: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.fraction <= 1:
            raise InputError(f"profiling: a fraction of {self.fraction} given, expected a number from 0 to 1")
        if self.references < 1:
            raise InputError(f"profiling: {self.references} references given, expected at least 1")
        estimator_of(self.estimator)


class ProfiledPartners:
    """Pair rates as the scheduler believes them: of single workers, since only these have been measured together."""

    def __init__(self, table: ThroughputTable, profiling: Profiling, seed: int) -> None:
        self._table = table
        self._fraction = profiling.fraction
        self._draws = random.Random(seed + 4)
        self._references = sample_references(table, profiling.references, self._draws)
        self._accelerators = sorted({name for reference in self._references for name in table.rates(reference, 1)})
        self._estimator = estimator_of(profiling.estimator).prepare(table, self._references)
        self._known = set(self._references)

    def pair_rates(self, job_type: str, partner: str, scale_factor: int) -> dict[str, tuple[float, float]]:
        """Steps per second of both while they share, by accelerator type."""
        if scale_factor != 1:
            return self._table.pair_rates(job_type, partner, scale_factor)
        for name in (job_type, partner):
            if name not in self._known:
                self._profile(name)
        estimates = self._estimator.pair_rates(job_type, partner)
        return {accelerator: estimate.steps_per_second for accelerator, estimate in estimates.items()}

    def _profile(self, job_type: str) -> None:
        alone = self._table.rates(job_type, 1)
        measured = {}
        for accelerator in self._accelerators:
            for reference in self._references:
                if self._draws.random() < self._fraction:
                    together = self._table.pair_rates(job_type, reference, 1).get(accelerator, (math.nan, math.nan))[0]
                    rate = alone.get(accelerator, 0.0)
                    if rate > 0 and not math.isnan(together):
                        measured[accelerator, reference] = min(together / rate, 1.0)
        self._estimator.add(job_type, alone, measured)
        self._known.add(job_type)
