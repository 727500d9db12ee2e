"""What every trace becomes once it is read: jobs in order of arrival, and a record of the rows that gave none.

A job says when it arrives, how many workers it asks for and how long it is: in steps, where the trace names its type,
or in seconds, where it only tells how long the job ran. Times are seconds. No row is dropped in silence: one that
gives no job stands in `skipped` with its line and the reason, and `summary()` counts it: those that are left out on
purpose apart from those that cannot be read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType

from fairway.documents import shown
from fairway.errors import InputError
from fairway.magnitudes import AMOUNTS, FACTORS, MOST_WORKERS, Magnitude


@dataclass(frozen=True, slots=True)
class TraceJob:
    """One job of a trace.

    `duration_seconds` is the time it needs on the workers it asks for (on the reference accelerator, where the trace
    was generated); `slo` the multiple of that duration within which it should finish. `accelerators` are the types that
    it may run on, None for any. `gpu_fraction` is the part of each of its `scale_factor` workers that it uses.
    """

    id: str
    arrival: float
    job_type: str | None = None
    scale_factor: int = 1
    total_steps: float | None = None
    duration_seconds: float | None = None
    weight: float = 1.0
    slo: float | None = None
    entity: str | None = None
    user: str | None = None
    accelerators: tuple[str, ...] | None = None
    gpu_fraction: float = 1.0
    status: str | None = None

    def __post_init__(self) -> None:
        if not self.id:
            raise InputError("id: nothing given, expected the name of the job")
        if not 0 <= self.arrival <= AMOUNTS.most:
            raise InputError(
                f"arrival: {self.arrival} given, expected seconds of at least 0 and up to {AMOUNTS.most:g}"
            )
        if not 1 <= self.scale_factor <= MOST_WORKERS:
            raise InputError(
                f"scale_factor: {shown(self.scale_factor)} given, expected a whole number of at least 1 and up to "
                f"{MOST_WORKERS}"
            )
        if self.accelerators is not None and not (self.accelerators and all(self.accelerators)):
            raise InputError("accelerators: an empty name or no name given, expected None where any type will do")
        if not 0 < self.gpu_fraction <= 1:
            raise InputError(f"gpu_fraction: {self.gpu_fraction} given, expected a number above 0 and up to 1")
        _check("total_steps", self.total_steps, AMOUNTS)
        _check("duration_seconds", self.duration_seconds, AMOUNTS)
        _check("weight", self.weight, FACTORS)
        _check("slo", self.slo, FACTORS)


class LeftOutError(InputError):
    """A row that can be read but is left out on purpose, such as that of a job that never ran."""


@dataclass(frozen=True, slots=True)
class SkippedRow:
    """A row of the file that gave no job: its line, counted from 1, and why.

    `on_purpose` says that the row was understood and is not wanted; otherwise it could not be read.
    """

    line: int
    reason: str
    on_purpose: bool = False

    @classmethod
    def because(cls, line: int, error: InputError) -> SkippedRow:
        """The row for which a reader raised this error."""
        return cls(line, str(error), isinstance(error, LeftOutError))


def skipped_words(skipped: Sequence[SkippedRow], reasons: int = 3) -> str:
    """How many rows were left out and how many could not be read, for which most frequent reasons; "" if none was."""
    text = ""
    for on_purpose, what in ((True, "left out"), (False, "cannot be read")):
        first: dict[str, int] = {}
        counts: dict[str, int] = {}
        for row in skipped:
            if row.on_purpose == on_purpose:
                first.setdefault(row.reason, row.line)
                counts[row.reason] = counts.get(row.reason, 0) + 1
        if counts:
            ranked = sorted(counts, key=lambda reason: -counts[reason])
            parts = [f"{counts[reason]} × {reason} (first at line {first[reason]})" for reason in ranked[:reasons]]
            if len(ranked) > reasons:
                parts.append(f"{sum(counts[reason] for reason in ranked[reasons:])} for other reasons")
            text += f"; {_counted(sum(counts.values()), 'row')} {what}: {'; '.join(parts)}"
    return text


@dataclass(frozen=True, slots=True)
class Trace:
    """The jobs of a trace in order of arrival, the format and the file they came from, and the rows left out."""

    jobs: tuple[TraceJob, ...]
    format: str
    source: str
    skipped: tuple[SkippedRow, ...] = ()

    def __post_init__(self) -> None:
        if not self.jobs:
            raise InputError(f"{self.source}: no job could be read{self._first_skipped()}; expected at least one")
        for before, after in pairwise(self.jobs):
            if after.arrival < before.arrival:
                raise InputError(
                    f"{self.source}: job '{after.id}' arrives at {after.arrival} s, before job '{before.id}' at "
                    f"{before.arrival} s; put the jobs in order of arrival"
                )

    @property
    def skipped_by_reason(self) -> Mapping[str, int]:
        """How many rows were left out for each reason, the most frequent first."""
        counts: dict[str, int] = {}
        for row in self.skipped:
            counts[row.reason] = counts.get(row.reason, 0) + 1
        return MappingProxyType(dict(sorted(counts.items(), key=lambda entry: -entry[1])))

    def summary(self, reasons: int = 3) -> str:
        """One line: how many jobs over what time, how many rows were left out and for which most frequent reasons."""
        hours = (self.jobs[-1].arrival - self.jobs[0].arrival) / 3600
        text = f"{self.source}: {_counted(len(self.jobs), 'job')} arriving over {hours:.1f} h ({self.format})"
        return text + skipped_words(self.skipped, reasons)

    @property
    def unreadable(self) -> int:
        """How many rows could not be read."""
        return sum(not row.on_purpose for row in self.skipped)

    def _first_skipped(self) -> str:
        return f" (line {self.skipped[0].line}: {self.skipped[0].reason})" if self.skipped else ""


def _check(name: str, value: float | None, sizes: Magnitude) -> None:
    try:
        if value is not None:
            sizes.above_zero(value)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
