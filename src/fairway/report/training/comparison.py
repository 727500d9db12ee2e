"""Runs side by side: one row for each policy, averaged over its seeds, with the best of each column marked.

The terminal's table and the page's are made of these rows, so that the two can't differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from fairway.report.left_out import rows_left_out
from fairway.report.training.metrics import RunSummary

Kind = Literal["seconds", "percent", "number", "dollars"]

SECONDS = {"d": 86400.0, "h": 3600.0, "min": 60.0, "s": 1.0}
"""What a unit of time stands for."""

NOTHING = "–"
"""Stands where there is no number."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A column: what is compared, and whether less or more of it is better."""

    title: str
    meaning: str
    kind: Kind
    better: Literal["less", "more"]
    of: Callable[[RunSummary], float | None]


MEASURES: tuple[Measure, ...] = (
    Measure("mean JCT", "mean job completion time", "seconds", "less", lambda run: run["jct_seconds"]["mean"]),
    Measure("p50", "median job completion time", "seconds", "less", lambda run: run["jct_seconds"]["p50"]),
    Measure("p99", "99th percentile of completion times", "seconds", "less", lambda run: run["jct_seconds"]["p99"]),
    Measure("makespan", "time at which the run ended", "seconds", "less", lambda run: run["makespan_seconds"]),
    Measure("busy", "part of all worker time in use", "percent", "more", lambda run: run["utilization"]),
    Measure("mean ρ", "mean of JCT over JCT on an equal share", "number", "less", lambda run: run["rho"]["mean"]),
    Measure(
        "preemptions per job",
        "how often a job was stopped or moved",
        "number",
        "less",
        lambda run: run["preemptions_per_job"],
    ),
    Measure("cost", "dollars for all jobs", "dollars", "less", lambda run: run["cost_dollars"]),
)


@dataclass(frozen=True, slots=True)
class Cell:
    """The mean over the seeds of a policy and half of the range that they span."""

    mean: float | None
    spread: float | None = None
    best: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """A policy's cells, in the order of the measures, and its mean JCT over that of the first policy."""

    policy: str
    runs: tuple[RunSummary, ...]
    cells: tuple[Cell, ...]
    ratio: float | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """All rows, the measures that any of them has, and the unit in which times are printed."""

    rows: tuple[Row, ...]
    measures: tuple[Measure, ...]
    unit: str

    @property
    def seeds(self) -> int:
        """The most runs that a row stands for."""
        return max((len(row.runs) for row in self.rows), default=0)

    def title(self, measure: Measure) -> str:
        """The title of a column with its unit."""
        unit = {"seconds": self.unit, "percent": "%", "dollars": "$"}.get(measure.kind)
        return f"{measure.title} ({unit})" if unit else measure.title

    def text(self, measure: Measure, value: float | None) -> str:
        """A number of a column, in its unit."""
        return NOTHING if value is None else digits(_in_unit(measure, value, self.unit))

    def spread(self, measure: Measure, cell: Cell) -> str:
        """The spread of a cell, with as many digits as its mean."""
        if cell.mean is None or cell.spread is None:
            return ""
        mean = digits(_in_unit(measure, cell.mean, self.unit))
        thousands = mean.endswith("k")
        decimals = len(mean.rstrip("k").partition(".")[2])
        spread = _in_unit(measure, cell.spread, self.unit) / (1000 if thousands else 1)
        return f"±{spread:.{decimals}f}{'k' if thousands else ''}"


def compare(runs: Sequence[RunSummary]) -> Comparison:
    """Put runs side by side; policies stay in the order in which they first come."""
    groups: dict[str, list[RunSummary]] = {}
    for run in runs:
        groups.setdefault(run["policy"], []).append(run)
    measures = tuple(measure for measure in MEASURES if any(measure.of(run) is not None for run in runs))
    longest = max((_mean(MEASURES[0], members)[0] or 0.0 for members in groups.values()), default=0.0)
    unit = time_unit(longest)
    columns = [_column(measure, groups, unit) for measure in measures]
    first = next(iter(groups), None)
    rows = tuple(
        Row(
            policy,
            tuple(members),
            tuple(column[policy] for column in columns),
            _ratio(members, groups[first or policy]),
        )
        for policy, members in groups.items()
    )
    return Comparison(rows, measures, unit)


def time_unit(seconds: float) -> str:
    """The unit in which a time reads well. Days are left to charts: hours are what papers compare."""
    return next((unit for unit in ("h", "min") if seconds >= 2 * SECONDS[unit]), "s")


def digits(value: float) -> str:
    """Three or four significant digits; k stands for thousands."""
    size = abs(value)
    if size >= 9999.5:
        return f"{value / 1000:.0f}k" if size >= 99950 else f"{value / 1000:.1f}k"
    if size >= 99.95:
        return f"{value:.0f}"
    if size >= 9.995:
        return f"{value:.1f}"
    return f"{value:.2f}" if size >= 0.0995 or value == 0 else f"{value:.1g}"


def shortfalls(comparison: Comparison) -> list[str]:
    """What the averages leave out, a sentence for each: jobs that did not complete, rows that could not be read."""
    notes = []
    for row in comparison.rows:
        for run in row.runs:
            name = row.policy if len(row.runs) == 1 else f"{row.policy}, seed {run['seed']}"
            parts = [
                f"{count} {what}"
                for count, what in (
                    (run["unfinished"], "not finished when the run ended"),
                    (len(run["unrunnable"]), "that can never run"),
                    (run["failed"], "failed or cancelled"),
                )
                if count
            ]
            if parts:
                notes.append(f"{name}: {run['completed']} of {run['jobs']} jobs completed; {', '.join(parts)}.")
    notes += rows_left_out(run for row in comparison.rows for run in row.runs)
    return notes


def _in_unit(measure: Measure, value: float, unit: str) -> float:
    if measure.kind == "seconds":
        return value / SECONDS[unit]
    return 100 * value if measure.kind == "percent" else value


def _column(measure: Measure, groups: Mapping[str, Sequence[RunSummary]], unit: str) -> dict[str, Cell]:
    values = {policy: _mean(measure, members) for policy, members in groups.items()}
    known = [mean for mean, _ in values.values() if mean is not None]
    best = None
    if len(known) > 1:
        best = min(known) if measure.better == "less" else max(known)

    def wins(mean: float | None) -> bool:
        """Whether a mean is the best, or looks the same in print."""
        if mean is None or best is None:
            return False
        return digits(_in_unit(measure, mean, unit)) == digits(_in_unit(measure, best, unit))

    return {policy: Cell(mean, spread, wins(mean)) for policy, (mean, spread) in values.items()}


def _mean(measure: Measure, runs: Sequence[RunSummary]) -> tuple[float | None, float | None]:
    """The mean over the runs that have the number, and half of their range where there are several runs."""
    known = [value for run in runs if (value := measure.of(run)) is not None]
    if not known:
        return None, None
    return sum(known) / len(known), (max(known) - min(known)) / 2 if len(runs) > 1 else None


def _ratio(runs: Sequence[RunSummary], first: Sequence[RunSummary]) -> float | None:
    own, base = _mean(MEASURES[0], runs)[0], _mean(MEASURES[0], first)[0]
    return own / base if own is not None and base else None
