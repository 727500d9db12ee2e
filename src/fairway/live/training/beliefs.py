"""What the controller believes of how fast a job runs on each accelerator type, before and after it was measured.

The description of a job says so, or names a job type in the table of profiles. Of a job whose description does neither
the controller knows only how much faster one accelerator type is than another for the jobs of the table, on the whole;
once the job was measured on one type, the same proportions say what to expect on the others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from fairway.jobs.description import JobDescription
from fairway.live.training.engine_job import is_unknown
from fairway.magnitudes import FACTORS
from fairway.profiles.tables import ThroughputTable

_TELLING = 0.05
"""A measurement that differs less than this from the belief is noise; every other one makes the engine decide anew."""


def relative_speeds(types: Sequence[str], table: ThroughputTable | None) -> dict[str, float]:
    """How fast each type is, compared to the others: the geometric mean over the job types of the table."""
    logs: dict[str, list[float]] = {name: [] for name in types}
    if table is not None:
        common = [name for name in types if name in table.accelerators]
        for job_type in table.job_types:
            rates = table.rates(job_type, 1) if 1 in table.scale_factors(job_type) else {}
            if all(rates.get(name, 0.0) > 0 for name in common):
                centre = sum(math.log(rates[name]) for name in common) / max(len(common), 1)
                for name in common:
                    logs[name].append(math.log(rates[name]) - centre)
    return {name: math.exp(sum(values) / len(values)) if values else 1.0 for name, values in logs.items()}


class Beliefs:
    """The rates of jobs as far as their descriptions, the table and measurements say."""

    def __init__(self, types: Sequence[str], table: ThroughputTable | None) -> None:
        self._speeds = relative_speeds(types, table)

    def first(
        self, spec: JobDescription, rates: Mapping[str, float], measured: Mapping[str, float]
    ) -> dict[str, float]:
        """What to believe of a job: `rates` by its description (0: it cannot run there), replaced by what was seen."""
        believed = dict(rates)
        if is_unknown(spec):
            believed = {name: rate and self._speeds[name] for name, rate in rates.items()}
            if measured:
                seen = next(iter(measured))
                believed = {name: rate and self.elsewhere(seen, measured[seen], name) for name, rate in rates.items()}
        return {name: measured.get(name, rate) if rate else rate for name, rate in believed.items()}

    def elsewhere(self, seen_on: str, rate: float, name: str) -> float:
        """What a rate on one type lets one expect on another."""
        return FACTORS.clamped(rate * self._speeds[name] / self._speeds[seen_on])


def is_telling(measured: float, believed: float) -> bool:
    """Whether a measurement says something new."""
    return measured > 0 and abs(measured - believed) > _TELLING * believed
