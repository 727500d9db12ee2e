"""Seeded allocation problems, and the scores of any answer to them, ours or a peer's, by the same formulas.

A job has the rates of a job type of the built-in catalog on one worker. For distinct jobs every rate is multiplied by
its own factor from uniform(0.8, 1.25), so that no two jobs are alike. Steps left follow the durations of the original's
workloads: 10^uniform(1.5, 3) minutes for 80 % of the jobs, 10^uniform(3, 4) for the others, at the rate of a V100.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fairway import Allocation, Pairs, Problem
from fairway.profiles.catalog import builtin

FloatArray = npt.NDArray[np.float64]

TYPES = ("v100", "p100", "k80")

CANNOT_SHARE = 0.05
"""The part of the pairs of job types that do not fit together on a worker."""


@dataclass(frozen=True, eq=False)
class Instance:
    """One problem as arrays. Shares of time have a row for every job and, after those, one for every pair."""

    workers: dict[str, int]
    rates: FloatArray
    weights: FloatArray
    steps_left: FloatArray
    elapsed: FloatArray
    isolated_elapsed: FloatArray
    pairs: Pairs | None = None

    def __len__(self) -> int:
        return len(self.rates)

    def problem(self) -> Problem:
        """A new problem, which knows nothing yet of what earlier decisions computed."""
        return Problem.of_arrays(
            self.workers,
            self.rates,
            weights=self.weights,
            steps_left=self.steps_left,
            elapsed=self.elapsed,
            isolated_elapsed=self.isolated_elapsed,
            pairs=self.pairs,
        )

    @property
    def capacity(self) -> FloatArray:
        """Workers of each type."""
        return np.array(list(self.workers.values()), dtype=float)

    @property
    def level_rates(self) -> FloatArray:
        """What each type adds to the level of a job: its rate / (weight * rate on a proportional share)."""
        proportional = self.rates @ self.capacity / self.capacity.sum()
        return np.asarray(self.rates / (self.weights * proportional)[:, None])

    @property
    def isolated_rates(self) -> FloatArray:
        """The rate of each job on 1/n of every type."""
        share = self.capacity / len(self)
        isolated: FloatArray = self.rates @ (share / max(share.sum(), 1.0))
        return isolated

    @property
    def isolated_seconds(self) -> FloatArray:
        """From its arrival to its end, for each job on 1/n of every type."""
        return self.isolated_elapsed + self.steps_left / self.isolated_rates

    def shares_of(self, allocation: Allocation) -> FloatArray:
        """The shares of an allocation of ours, with a row for every job and every pair."""
        first, second, jobs = allocation.first, allocation.second, len(self)
        pairs = 0 if self.pairs is None else len(self.pairs)
        # Pairs are in the order of np.triu_indices.
        row = np.where(second < 0, first, jobs + first * jobs - first * (first + 1) // 2 + second - first - 1)
        shares = np.zeros((jobs + pairs, len(self.workers)))
        np.add.at(shares, row, allocation.shares)
        return shares

    def fitted(self, shares: FloatArray) -> FloatArray:
        """The same without what a solver's tolerance let through: nothing negative, no job or type overbooked."""
        shares = np.maximum(shares, 0.0)
        busy = np.maximum(self._by_job(shares, np.ones_like(shares), np.ones_like(shares)).sum(axis=1), 1.0)
        shares[: len(self)] /= busy[:, None]
        if self.pairs is not None:
            shares[len(self) :] /= np.maximum(busy[self.pairs.first], busy[self.pairs.second])[:, None]
        return np.asarray(shares / np.maximum(shares.sum(axis=0) / self.capacity, 1.0))

    def job_rates(self, shares: FloatArray) -> FloatArray:
        """The effective rate of each job."""
        first, second = self.rates, self.rates
        if self.pairs is not None:
            first = np.concatenate([self.rates, self.pairs.rates[:, :, 0]])
            second = np.concatenate([self.rates, self.pairs.rates[:, :, 1]])
        rates: FloatArray = self._by_job(shares, first, second).sum(axis=1)
        return rates

    def _by_job(self, shares: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
        """Shares times a factor for the first and one for the second member of a row, added up for each job."""
        jobs = len(self)
        total = shares[:jobs] * first[:jobs]
        if self.pairs is not None:
            np.add.at(total, self.pairs.first, shares[jobs:] * first[jobs:])
            np.add.at(total, self.pairs.second, shares[jobs:] * second[jobs:])
        return total

    def levels(self, shares: FloatArray) -> FloatArray:
        """The level of each job: rate / (weight * proportional rate)."""
        return self.job_rates(shares) * self.level_rates[:, 0] / self.rates[:, 0]

    def lowest_level(self, shares: FloatArray) -> float:
        """What max-min fairness maximises."""
        return float(self.levels(shares).min())

    def makespan(self, shares: FloatArray) -> float:
        """Seconds until the last job is done."""
        return float((self.steps_left / self.job_rates(shares)).max())

    def worst_finish(self, shares: FloatArray) -> float:
        """The highest rho: time from arrival to end, relative to that on 1/n of every type."""
        return float(((self.elapsed + self.steps_left / self.job_rates(shares)) / self.isolated_seconds).max())


def distinct_jobs(jobs: int, workers_per_type: int, *, priorities: Sequence[float] = (1.0,), seed: int = 0) -> Instance:
    """Jobs that are all different and have been under way for a while, but not for long.

    Each has done uniform(0, 0.3) of its steps. Its isolated time is what these take on 1/n of every type, its elapsed
    time uniform(0.8, 1.2) of that. So the workers, not the past, decide how fair the end can be (their prices are
    positive): of jobs that are nearly done or far behind, one would set the highest rho alone, whatever others get.
    """
    rng = np.random.default_rng(seed)
    catalog = _catalog()
    rates = catalog[rng.integers(len(catalog), size=jobs)] * rng.uniform(0.8, 1.25, (jobs, len(TYPES)))
    long = rng.random(jobs) >= 0.8
    minutes = 10 ** np.where(long, rng.uniform(3, 4, jobs), rng.uniform(1.5, 3, jobs))
    steps = minutes * 60 * rates[:, 0]
    done = rng.uniform(0, 0.3, jobs)
    share = workers_per_type / max(jobs, workers_per_type * len(TYPES))
    isolated_elapsed = steps * done / (rates.sum(axis=1) * share)
    return Instance(
        workers=dict.fromkeys(TYPES, workers_per_type),
        rates=rates,
        weights=rng.choice(np.array(priorities), jobs),
        steps_left=steps * (1 - done),
        elapsed=isolated_elapsed * rng.uniform(0.8, 1.2, jobs),
        isolated_elapsed=isolated_elapsed,
    )


def sharing_jobs(jobs: int, workers_per_type: int, *, distinct: bool, seed: int = 0) -> Instance:
    """Jobs that may share workers two by two: all pairs, with what sharing leaves of a rate drawn by job types.

    Members of a pair keep the same fraction, uniform(0.4, 0.9), of their own rates; 5 % of the job types do not fit
    together. Unless distinct, jobs have exactly the rates of their type, of which there are 26.
    """
    rng = np.random.default_rng(seed)
    catalog = _catalog()
    kinds = len(catalog)
    kind = rng.integers(kinds, size=jobs)
    kept = rng.uniform(0.4, 0.9, (kinds, kinds, len(TYPES)))
    kept[rng.random((kinds, kinds)) < CANNOT_SHARE] = 0.0
    rates = catalog[kind] * (rng.uniform(0.8, 1.25, (jobs, len(TYPES))) if distinct else 1.0)
    first, second = np.triu_indices(jobs, 1)
    fraction = kept[np.minimum(kind[first], kind[second]), np.maximum(kind[first], kind[second])]
    together = np.stack([rates[first] * fraction, rates[second] * fraction], axis=2)
    nothing = np.zeros(jobs)
    return Instance(
        workers=dict.fromkeys(TYPES, workers_per_type),
        rates=rates,
        weights=np.ones(jobs),
        steps_left=nothing,
        elapsed=nothing,
        isolated_elapsed=nothing,
        pairs=Pairs(first, second, together),
    )


def _catalog() -> FloatArray:
    table = builtin()
    return np.array([[table.rate(name, 1, accelerator) for accelerator in TYPES] for name in table.job_types])
