"""How fast each job type runs on each accelerator type: alone, spread over nodes, and sharing with another job.

A table is built once from rows and never changes. A rate is the steps per second of a whole gang of `scale_factor`
workers of one type; 0 says that the job cannot run there, while a rate that was not measured has no row at all. Only
gangs of equal size share their workers, and only two at a time (Gavel §3.1).
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from fairway.documents import shown
from fairway.errors import InputError
from fairway.jobs import Job, Pair
from fairway.magnitudes import FACTORS, MOST_WORKERS

_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class IsolatedRate:
    """The rate of a gang that has its workers to itself.

    `spread_steps_per_second` is its rate when the workers sit on several nodes; None says that it is not known to
    differ. `origin` is where the row was read; it stands in front of every error about the row.
    """

    job_type: str
    scale_factor: int
    accelerator: str
    steps_per_second: float
    spread_steps_per_second: float | None = None
    origin: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        _check_name(self, "job_type", self.job_type)
        _check_scale_factor(self)
        _check_name(self, "accelerator", self.accelerator)
        _check_rate(self, "steps_per_second", self.steps_per_second)
        if self.spread_steps_per_second is not None:
            _check_rate(self, "spread_steps_per_second", self.spread_steps_per_second)
            if self.scale_factor == 1:
                raise _error(
                    self,
                    f"spread_steps_per_second: {self.spread_steps_per_second} given with a scale_factor of 1, expected "
                    "none, since a single worker is never spread",
                )


@dataclass(frozen=True, slots=True)
class PairRate:
    """The rates of two gangs of the same size while they share the same workers of one type."""

    job_type: str
    partner: str
    scale_factor: int
    accelerator: str
    steps_per_second: float
    partner_steps_per_second: float
    origin: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        _check_name(self, "job_type", self.job_type)
        _check_name(self, "partner", self.partner)
        _check_scale_factor(self)
        _check_name(self, "accelerator", self.accelerator)
        _check_rate(self, "steps_per_second", self.steps_per_second)
        _check_rate(self, "partner_steps_per_second", self.partner_steps_per_second)
        if self.job_type == self.partner and self.steps_per_second != self.partner_steps_per_second:
            raise _error(
                self,
                f"partner_steps_per_second: {self.partner_steps_per_second} given, expected "
                f"{self.steps_per_second}, since {self.job_type!r} is paired with itself",
            )


@dataclass(frozen=True, slots=True)
class ThroughputTable:
    """Rates by job type, scale factor and accelerator type, with the source of the numbers.

    A pair may be given in both orders if the rates agree. `accelerators` and `job_types` stand in the order in which
    the rows name them.
    """

    isolated: tuple[IsolatedRate, ...] = field(repr=False)
    shared: tuple[PairRate, ...] = field(default=(), repr=False)
    source: str = field(kw_only=True)
    accelerators: tuple[str, ...] = field(init=False, compare=False)
    job_types: tuple[str, ...] = field(init=False, repr=False, compare=False)
    _alone: dict[tuple[str, int], dict[str, IsolatedRate]] = field(init=False, repr=False, compare=False)
    _together: dict[tuple[str, str, int], dict[str, tuple[float, float]]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.source:
            raise InputError("source: nothing given, expected where the rates come from")
        if not self.isolated:
            raise InputError(f"{self.source}: no rates given, expected at least one")
        object.__setattr__(self, "accelerators", tuple(dict.fromkeys(row.accelerator for row in self.isolated)))
        object.__setattr__(self, "job_types", tuple(dict.fromkeys(row.job_type for row in self.isolated)))
        object.__setattr__(self, "_alone", {})
        object.__setattr__(self, "_together", {})
        for row in self.isolated:
            self._add_alone(row)
        for pair in self.shared:
            self._add_together(pair)

    def _add_alone(self, row: IsolatedRate) -> None:
        rates = self._alone.setdefault((row.job_type, row.scale_factor), {})
        first = rates.setdefault(row.accelerator, row)
        if first is not row:
            elsewhere = f" (first at {first.origin})" if first.origin else ""
            raise _error(row, f"a second rate of {_gang(row)} on {row.accelerator!r} given{elsewhere}; keep one")

    def _add_together(self, pair: PairRate) -> None:
        a, b, s = pair.job_type, pair.partner, pair.scale_factor
        for job_type in (a, b):
            if pair.accelerator not in self._alone.get((job_type, s), {}):
                raise _error(
                    pair, f"no rate of {job_type!r} (scale factor {s}) alone on {pair.accelerator!r}; give that as well"
                )
        rates = (pair.steps_per_second, pair.partner_steps_per_second)
        first = self._together.setdefault((a, b, s), {}).setdefault(pair.accelerator, rates)
        if first != rates:
            raise _error(
                pair,
                f"rates {rates} of {_gang(pair)} with {b!r} on {pair.accelerator!r} given, but {first} given before; "
                "keep one",
            )
        self._together.setdefault((b, a, s), {})[pair.accelerator] = rates[::-1]

    def scale_factors(self, job_type: str) -> tuple[int, ...]:
        """The gang sizes for which the rates of this job type are known, in increasing order."""
        known = sorted(s for name, s in self._alone if name == job_type)
        if not known:
            given = job_type[:_LONGEST_NAME]  # to compare long text takes long
            nearest = difflib.get_close_matches(given, self.job_types, n=1, cutoff=0.0)[0]
            raise InputError(f"job type {given!r} is not in the table ({self.source}); the nearest is {nearest!r}")
        return tuple(known)

    def rate(self, job_type: str, scale_factor: int, accelerator: str, *, spread: bool = False) -> float:
        """Steps per second on one accelerator type; see `rates`."""
        row = self._rows(job_type, scale_factor).get(accelerator)
        if row is None:
            raise InputError(
                f"{job_type!r} (scale factor {scale_factor}) has no rate on {accelerator!r} in the table "
                f"({self.source}); known: {_names(self._rows(job_type, scale_factor))}"
            )
        return _rate(row, spread)

    def rates(self, job_type: str, scale_factor: int, *, spread: bool = False) -> dict[str, float]:
        """Steps per second by accelerator type, for the types that have a rate.

        `spread` asks for the rates of a gang that spans nodes: the consolidated rate where no other is known.
        """
        return {name: _rate(row, spread) for name, row in self._rows(job_type, scale_factor).items()}

    def pair_rates(self, job_type: str, partner: str, scale_factor: int) -> dict[str, tuple[float, float]]:
        """Steps per second of both while they share, by accelerator type; zeros where the two do not fit together."""
        self._rows(job_type, scale_factor)
        self._rows(partner, scale_factor)
        return dict(self._together.get((job_type, partner, scale_factor), {}))

    def job(self, job_id: str, job_type: str, scale_factor: int = 1, **fields: Any) -> Job:
        """A job with the rates of this type; `fields` are the other fields of `Job`."""
        rows = self._rows(job_type, scale_factor).values()
        spread = any(row.spread_steps_per_second is not None for row in rows)
        return Job(
            id=job_id,
            throughputs=self.rates(job_type, scale_factor),
            scale_factor=scale_factor,
            spread_throughputs=self.rates(job_type, scale_factor, spread=True) if spread else None,
            job_type=job_type,
            **fields,
        )

    def pairs(self, jobs: Sequence[tuple[str, str, int]]) -> list[Pair]:
        """Every two of these jobs (id, job type, scale factor) that can share, with the types on which both advance."""
        found = []
        by_types: dict[tuple[str, str, int], dict[str, tuple[float, float]]] = {}
        for (id_a, a, s), (id_b, b, s_b) in combinations(jobs, 2):
            if s == s_b:
                rates = by_types.get((a, b, s))
                if rates is None:
                    rates = {name: both for name, both in self.pair_rates(a, b, s).items() if min(both) > 0}
                    by_types[a, b, s] = rates
                if rates:
                    found.append(Pair(jobs=(id_a, id_b), throughputs=rates))
        return found

    def _rows(self, job_type: str, scale_factor: int) -> dict[str, IsolatedRate]:
        rows = self._alone.get((job_type, scale_factor))
        if rows is None:
            known = ", ".join(map(str, self.scale_factors(job_type)))
            raise InputError(
                f"{job_type!r} has no rates at scale factor {scale_factor} in the table ({self.source}); known: {known}"
            )
        return rows


def _rate(row: IsolatedRate, spread: bool) -> float:
    if spread and row.spread_steps_per_second is not None:
        return row.spread_steps_per_second
    return row.steps_per_second


def _gang(row: IsolatedRate | PairRate) -> str:
    return f"{row.job_type!r} (scale factor {row.scale_factor})"


def _names(names: dict[str, IsolatedRate]) -> str:
    return ", ".join(f"{name!r}" for name in names)


def _error(row: IsolatedRate | PairRate, fact: str) -> InputError:
    return InputError(f"{row.origin}: {fact}" if row.origin else fact)


def _check_name(row: IsolatedRate | PairRate, column: str, name: str) -> None:
    if not name or name != name.strip() or not name.isprintable():
        raise _error(row, f"{column}: {name!r} given, expected printable text without spaces around it")


def _check_scale_factor(row: IsolatedRate | PairRate) -> None:
    if not 1 <= row.scale_factor <= MOST_WORKERS:
        raise _error(
            row,
            f"scale_factor: {shown(row.scale_factor)} given, expected a whole number of at least 1 and up to "
            f"{MOST_WORKERS}",
        )


def _check_rate(row: IsolatedRate | PairRate, column: str, rate: float) -> None:
    try:
        FACTORS.zero_or_more(rate)
    except InputError as error:
        raise _error(row, f"{column}: {error} (steps per second)") from None
