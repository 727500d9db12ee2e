"""More or less load from the same trace: jobs come faster, fewer of them, or each of them several times.

`speed_up` divides the time between arrivals; how long jobs run stays as it is. `fraction` keeps that part of the jobs,
drawn evenly with a seed, at their times. `replicate` lets every job come so many times at the same moment. They are
applied in the order fraction, replicate, speed-up; each multiplies the load by its number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from random import Random

from fairway.errors import InputError
from fairway.traces.trace import Trace, TraceJob

_MOST = 1e6
_MOST_COPIES = 10_000


@dataclass(frozen=True, slots=True)
class Scaling:
    """How the load of a trace is changed; `seed` draws the jobs that are kept."""

    speed_up: float = 1.0
    fraction: float = 1.0
    replicate: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.speed_up) and 1 / _MOST <= self.speed_up <= _MOST):
            raise InputError(
                f"speed-up: {self.speed_up:g} given, expected a number above 0 and up to {_MOST:g}, as in 4"
            )
        if not 0 < self.fraction <= 1:
            raise InputError(f"fraction: {self.fraction:g} given, expected a number above 0 and up to 1, as in 0.1")
        if not 1 <= self.replicate <= _MOST_COPIES:
            raise InputError(
                f"replicate: {self.replicate} given, expected a whole number of at least 1 and up to {_MOST_COPIES}"
            )

    @property
    def changes_nothing(self) -> bool:
        """Whether the trace stays as it is."""
        return (self.speed_up, self.fraction, self.replicate) == (1.0, 1.0, 1)

    def words(self) -> str:
        """What becomes of the load, in a few words."""
        parts = []
        if self.fraction < 1:
            parts.append(f"{self.fraction:.3g} of them kept")
        if self.replicate > 1:
            parts.append(f"each {self.replicate} times")
        if self.speed_up != 1:
            parts.append(f"arriving {self.speed_up:g} times as fast")
        return ", ".join(parts)

    def jobs_of(self, number: int) -> int:
        """How many jobs become of so many; at least one stays."""
        return max(round(self.fraction * number), 1) * self.replicate

    def applied(self, trace: Trace) -> Trace:
        """The trace under this load."""
        if self.changes_nothing:
            return trace
        jobs: tuple[TraceJob, ...] = trace.jobs
        if self.fraction < 1:
            kept = self.jobs_of(len(jobs)) // self.replicate
            jobs = tuple(jobs[position] for position in sorted(Random(self.seed).sample(range(len(jobs)), kept)))
        first = jobs[0].arrival
        return replace(
            trace,
            jobs=tuple(
                replace(
                    job,
                    id=job.id if copy == 0 else f"{job.id}~{copy + 1}",
                    arrival=(job.arrival - first) / self.speed_up + first,
                )
                for job in jobs
                for copy in range(self.replicate)
            ),
        )


UNSCALED = Scaling()
"""The load as it is."""
