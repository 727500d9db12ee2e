"""Estimators by name: how the rates of jobs that share are guessed where they were not measured.

An estimator is a small class with parameters and one verb, `prepare`, that is asked once, with the table and the
reference job types whose rates with each other are known. What it returns is told of new jobs, and asked for pairs.
`matrix-completion` is Gavel's (§3.3); a class of any module has `module:Class` for a name (`fairway.parts`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, Protocol, runtime_checkable

from fairway.parts import Parts
from fairway.profiles.estimator import Entry, PairEstimate, ThroughputEstimator
from fairway.profiles.tables import ThroughputTable


class PairEstimator(Protocol):
    """Knows the references, is told of other jobs, and says how fast two of them run together."""

    def add(self, job: str, alone: Mapping[str, float], measured: Mapping[Entry, float]) -> object:
        """Learn of a new job: its rates alone by accelerator type, and a few measured fractions of them.

        `measured` has the fraction of its own rate that the job keeps on an accelerator type next to a reference.
        """
        ...

    def pair_rates(self, job: str, partner: str) -> Mapping[str, PairEstimate]:
        """The rates of both while they share, by accelerator type."""
        ...


@runtime_checkable
class Estimator(Protocol):
    """Makes the estimator of a run; `table` is the truth, of which it may look at the references' rates alone."""

    name: ClassVar[str]

    def prepare(self, table: ThroughputTable, references: Sequence[str]) -> PairEstimator:
        """Begin with what is known of the references."""
        ...


@dataclass(frozen=True, slots=True)
class MatrixCompletion:
    """Complete the fractions of a new job from those of the references, as a matrix of low rank (Gavel §3.3)."""

    name: ClassVar[str] = "matrix-completion"
    rank: int = 10
    regularisation: float = 0.1
    alpha: float = 0.5

    def prepare(self, table: ThroughputTable, references: Sequence[str]) -> ThroughputEstimator:
        """Begin with what is known of the references."""
        return ThroughputEstimator(
            table, references, rank=self.rank, regularisation=self.regularisation, alpha=self.alpha
        )


ESTIMATORS: Mapping[str, Callable[..., Estimator]] = MappingProxyType({MatrixCompletion.name: MatrixCompletion})
"""All estimators, by name."""

ESTIMATOR_PARTS: Parts[Estimator] = Parts("estimator", "fairway.estimators", Estimator, ESTIMATORS)


def estimator_of(given: str | Estimator) -> Estimator:
    """The estimator that a name with options stands for; an object is refused if it is no estimator."""
    return ESTIMATOR_PARTS.of(given)
