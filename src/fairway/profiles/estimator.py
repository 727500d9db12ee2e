"""How fast two jobs run while they share, when it was not measured: the throughput estimator.

Reference job types are measured with each other. A new job is measured next to a few of them; what it keeps of its own
rate next to the others is completed from the references (`completion`), and the reference whose fractions are the most
alike stands for it as a partner. So job i next to job j runs at

    alone rate of i on the accelerator  x  fraction that i keeps next to the reference nearest to j,

where a reference is its own nearest. Once the pair has run, what was measured counts and not the estimate.
"""

from __future__ import annotations

import difflib
import math
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fairway.errors import InputError
from fairway.profiles.completion import Matrix, complete
from fairway.profiles.tables import ThroughputTable

Source = Literal["measured", "estimated", "reference"]
Entry = tuple[str, str]
"""An accelerator type and the reference job type that shares it."""


@dataclass(frozen=True, slots=True)
class PairEstimate:
    """Steps per second of two jobs while they share, and how we know; zeros where they do not fit together."""

    steps_per_second: tuple[float, float]
    source: Source


@dataclass(frozen=True, slots=True)
class Colocation:
    """The fraction of its own rate that a job keeps next to each reference, and the reference most like it."""

    job: str
    fractions: Mapping[Entry, float]
    measured: frozenset[Entry]
    nearest: str


def sample_references(
    table: ThroughputTable, count: int, generator: random.Random, *, scale_factor: int = 1
) -> tuple[str, ...]:
    """Draw reference job types from those of the table that have rates with a partner at this scale factor."""
    pairs = [pair for pair in table.shared if pair.scale_factor == scale_factor]
    known = sorted({name for pair in pairs for name in (pair.job_type, pair.partner)})
    if not known:
        raise InputError(
            f"the table ({table.source}) has no rates of jobs that share at scale factor {scale_factor}; add rows with "
            "a partner, or use another table"
        )
    if not 1 <= count <= len(known):
        raise InputError(
            f"{count} references asked for, expected 1 to {len(known)}: the job types with pair rates at scale factor "
            f"{scale_factor} in the table ({table.source})"
        )
    return tuple(sorted(generator.sample(known, count)))


class ThroughputEstimator:
    """Pair rates of jobs, from reference job types, profiles of new jobs and what was measured since.

    Jobs are known by name: references by their job type, new jobs by the name with which they were added (a job type,
    or an id). All have the same scale factor. `alpha` is the weight of a new measurement against the earlier ones.
    """

    def __init__(
        self,
        table: ThroughputTable,
        references: Iterable[str],
        *,
        scale_factor: int = 1,
        rank: int = 10,
        regularisation: float = 0.1,
        alpha: float = 0.5,
    ) -> None:
        if not 0 < alpha <= 1:
            raise InputError(f"alpha: {alpha} given, expected more than 0 and at most 1")
        # Sorted, so that the order in which the caller names them cannot matter.
        self.references = tuple(sorted(set(references)))
        if not self.references:
            raise InputError("references: none given, expected at least one job type of the table")
        self.table, self.scale_factor = table, scale_factor
        self.rank, self.regularisation, self.alpha = rank, regularisation, alpha
        self._alone: dict[str, Mapping[str, float]] = {
            name: table.rates(name, scale_factor) for name in self.references
        }
        self.accelerators = tuple(sorted({accelerator for rates in self._alone.values() for accelerator in rates}))
        self._entries = [(accelerator, name) for accelerator in self.accelerators for name in self.references]
        self._matrix = self._reference_matrix()
        rows = zip(self.references, self._complete(self._matrix), self._matrix, strict=True)
        self._jobs = {name: self._colocation(name, row, measured, name) for name, row, measured in rows}
        # Under both orders of the names, each with its own order of the rates.
        self._observed: dict[str, dict[str, dict[str, PairEstimate]]] = {}

    def add(self, job: str, alone: Mapping[str, float], measured: Mapping[Entry, float]) -> Colocation:
        """Make a new job known by its rates alone and a few measured fractions of them; again to replace them.

        `measured` has the fraction of its own rate that the job keeps on an accelerator next to a reference.
        """
        if job in self.references:
            raise InputError(f"{job!r} is a reference already; add a new job under another name")
        for accelerator, rate in alone.items():
            _check_rate(f"{job!r} alone on {accelerator!r}", rate)
        for (accelerator, reference), fraction in measured.items():
            self._check_entry(job, accelerator, reference, fraction)
        row = np.array([measured.get(entry, math.nan) for entry in self._entries])
        rows = self._complete(np.vstack([self._matrix, row]))
        self._alone[job] = dict(alone)
        nearest = self.references[_nearest(rows[-1], rows[:-1])]
        self._jobs[job] = self._colocation(job, rows[-1], row, nearest)
        return self._jobs[job]

    def forget(self, job: str) -> None:
        """Drop a job that was added, with everything measured about it."""
        if job in self.references:
            raise InputError(f"{job!r} is a reference and stays; only jobs that were added can be forgotten")
        self.colocation(job)
        del self._jobs[job], self._alone[job]
        for partner in self._observed.pop(job, {}):
            if partner != job:
                del self._observed[partner][job]

    def colocation(self, job: str) -> Colocation:
        """What is known or estimated about this job next to each reference."""
        if job not in self._jobs:
            nearest = difflib.get_close_matches(job, self._jobs, n=1, cutoff=0.0)[0]
            raise InputError(f"{job!r} is neither a reference nor a job that was added; the nearest is {nearest!r}")
        return self._jobs[job]

    def pair_rates(self, job: str, partner: str) -> dict[str, PairEstimate]:
        """The rates of both while they share, by accelerator: measured, else of the table, else estimated."""
        first, second = self.colocation(job), self.colocation(partner)
        alone, partner_alone = self._alone[job], self._alone[partner]
        found = {}
        for accelerator in self.accelerators:
            if accelerator in alone and accelerator in partner_alone:
                both = (
                    alone[accelerator] * first.fractions[accelerator, second.nearest],
                    partner_alone[accelerator] * second.fractions[accelerator, first.nearest],
                )
                found[accelerator] = PairEstimate(both if min(both) > 0 else (0.0, 0.0), "estimated")
        if job in self.references and partner in self.references:
            for accelerator, both in self.table.pair_rates(job, partner, self.scale_factor).items():
                found[accelerator] = PairEstimate(both, "reference")
        return found | self._observed.get(job, {}).get(partner, {})

    def observe(self, job: str, partner: str, accelerator: str, measured: tuple[float, float]) -> PairEstimate:
        """Take in the rates of a pair that ran.

        They replace an estimate, and are averaged with what was measured before (the rates of references were, too):
        alpha · measured + (1 - alpha) · before. A rate of 0 says that the two do not fit together: both become 0.
        """
        before = self.pair_rates(job, partner).get(accelerator)
        for name, rate in zip((job, partner), measured, strict=True):
            if accelerator not in self._alone[name]:
                raise InputError(f"{name!r} has no rate alone on {accelerator!r}; known: {_names(self._alone[name])}")
            _check_rate(f"{name!r} sharing {accelerator!r}", rate)
        a, b = measured
        if job == partner:
            a = b = (a + b) / 2
        if min(a, b) == 0:
            a = b = 0.0
        elif before is not None and before.source != "estimated" and min(before.steps_per_second) > 0:
            a, b = (
                self.alpha * new + (1 - self.alpha) * old
                for new, old in zip((a, b), before.steps_per_second, strict=True)
            )
        self._observed.setdefault(partner, {}).setdefault(job, {})[accelerator] = PairEstimate((b, a), "measured")
        now = PairEstimate((a, b), "measured")
        self._observed.setdefault(job, {}).setdefault(partner, {})[accelerator] = now
        return now

    def _reference_matrix(self) -> Matrix:
        """A row per reference and a column per entry: the fraction that the row's job keeps, NaN where unknown."""
        matrix = np.full((len(self.references), len(self._entries)), math.nan)
        for i, name in enumerate(self.references):
            alone = self._alone[name]
            together = {partner: self.table.pair_rates(name, partner, self.scale_factor) for partner in self.references}
            for j, (accelerator, partner) in enumerate(self._entries):
                if accelerator in together[partner] and alone[accelerator] > 0:
                    # Measurements vary: a job that nothing slows down may seem faster with a partner than alone.
                    matrix[i, j] = min(together[partner][accelerator][0] / alone[accelerator], 1.0)
        if np.isnan(matrix).all():
            raise InputError(
                f"no rates of the references with each other at scale factor {self.scale_factor} in the table "
                f"({self.table.source}); give rows with a partner, or other references"
            )
        return matrix

    def _complete(self, matrix: Matrix) -> Matrix:
        return complete(matrix, rank=self.rank, regularisation=self.regularisation)

    def _colocation(self, job: str, row: Matrix, measured: Matrix, nearest: str) -> Colocation:
        return Colocation(
            job,
            dict(zip(self._entries, row.tolist(), strict=True)),
            frozenset(entry for entry, value in zip(self._entries, measured, strict=True) if not math.isnan(value)),
            nearest,
        )

    def _check_entry(self, job: str, accelerator: str, reference: str, fraction: float) -> None:
        where = f"measured entry of {job!r} on {accelerator!r} next to {reference!r}"
        if accelerator not in self.accelerators:
            raise InputError(f"{where}: unknown accelerator, expected one of {_names(self.accelerators)}")
        if reference not in self.references:
            nearest = difflib.get_close_matches(reference, self.references, n=1, cutoff=0.0)[0]
            raise InputError(f"{where}: not a reference job type; the nearest is {nearest!r}")
        if not 0 <= fraction <= 1:
            raise InputError(f"{where}: {fraction} given, expected a fraction of its own rate, from 0 to 1")


def _nearest(row: Matrix, references: Matrix) -> int:
    """The index of the reference at the smallest cosine distance; the first of equals, and a row of zeros is far."""
    norms = np.linalg.norm(references, axis=1) * np.linalg.norm(row)
    cosines = np.divide(references @ row, norms, out=np.zeros(len(references)), where=norms > 0)
    return int(np.argmax(cosines))


def _check_rate(what: str, rate: float) -> None:
    if not (math.isfinite(rate) and rate >= 0):
        raise InputError(f"{what}: {rate} given, expected steps per second of at least 0")


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"{name!r}" for name in names)
