"""What comes of one simulation forward: when each job starts and finishes, and the numbers that plans compare.

Times are seconds of the wall clock, from the moment at which the simulation began (0); jobs that were there before
have arrived at a negative time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fairway.report.training.record import Outcome
from fairway.sim.training_recorder import JobRow

METRICS: Mapping[str, str] = {
    "mean jct": "mean completion time",
    "p95 jct": "95 % complete within",
    "mean wait": "mean wait",
    "p95 wait": "95 % wait at most",
    "makespan": "all jobs done after",
    "slo": "deadlines met",
    "cost": "cost",
    "unfinished": "jobs that do not finish",
}
"""What each number is, in words."""

HIGHER_IS_BETTER = frozenset({"slo"})


@dataclass(frozen=True, slots=True)
class Forecast:
    """One job: NaN for what does not happen."""

    job: str
    team: str | None
    arrival: float
    start: float
    finish: float
    deadline: float
    cost_dollars: float

    @property
    def jct(self) -> float:
        """From its arrival to its end."""
        return self.finish - self.arrival

    @property
    def wait(self) -> float:
        """From the beginning of the simulation, or its arrival if that is later, to when it starts next."""
        return max(self.start - max(self.arrival, 0.0), 0.0) if self.start == self.start else math.nan


@dataclass(frozen=True, slots=True)
class Outlook:
    """One run. `refused` are jobs that cannot run on the cluster at all."""

    jobs: tuple[Forecast, ...]
    refused: tuple[str, ...] = ()

    def numbers(self) -> dict[str, float]:
        """The metrics; NaN for one that has no jobs to be found from."""
        done = [job for job in self.jobs if not math.isnan(job.finish)]
        jct = np.array([job.jct for job in done])
        wait = np.array([job.wait for job in self.jobs if not math.isnan(job.start)])
        due = [job for job in self.jobs if not math.isnan(job.deadline)]
        return {
            "mean jct": _mean(jct),
            "p95 jct": _percentile(jct),
            "mean wait": _mean(wait),
            "p95 wait": _percentile(wait),
            "makespan": max((job.finish for job in done), default=math.nan),
            "slo": _mean(np.array([job.finish <= job.deadline for job in due], dtype=float)),
            "cost": float(sum(job.cost_dollars for job in self.jobs)),
            "unfinished": float(len(self.jobs) - len(done) + len(self.refused)),
        }


def outlook_of(rows: Sequence[JobRow], begin: float, time_scale: float, refused: Sequence[str] = ()) -> Outlook:
    """The outlook of a run that began at a time of the engine's clock, `time_scale` times as fast as the wall's."""
    never = tuple(row.job.id for row in rows if row.outcome is Outcome.UNRUNNABLE)
    jobs = tuple(
        Forecast(
            row.job.id,
            row.job.entity,
            (row.arrival - begin) / time_scale,
            (row.start - begin) / time_scale,
            (row.finish - begin) / time_scale,
            (row.deadline - begin) / time_scale,
            row.cost_dollars / time_scale,
        )
        for row in rows
        if row.outcome is not Outcome.UNRUNNABLE
    )
    return Outlook(jobs, (*refused, *never))


def _mean(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    return float(values.mean()) if len(values) else math.nan


def _percentile(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    return float(np.percentile(values, 95)) if len(values) else math.nan
