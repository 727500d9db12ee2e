"""Runs of requests side by side: one row for each scheduler, averaged over its seeds, the best of each column marked.

The terminal's table and the page's are made of these rows, so that they can't tell different things.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from fairway.report.training_comparison import NOTHING, digits

Kind = Literal["seconds", "percent", "number", "joules", "dollars"]

Summary: TypeAlias = Mapping[str, Any]
"""The numbers of a run, of servers or of a serverless platform."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A column: what is compared, and whether less or more of it is better (None: neither)."""

    title: str
    meaning: str
    kind: Kind
    better: Literal["less", "more"] | None
    of: Callable[[Summary], float | None]


def _mean_batch(run: Summary) -> float | None:
    """Of no interest where each runs alone."""
    mean: float | None = run.get("mean_batch")
    return mean if mean is not None and mean > 1 else None


MEASURES: tuple[Measure, ...] = (
    Measure("mean slow-down", "mean latency over lower bound", "number", "less", lambda run: run["slowdown"]["mean"]),
    Measure(
        "p50 slow-down", "median of latency over lower bound", "number", "less", lambda run: run["slowdown"]["p50"]
    ),
    Measure("p99 slow-down", "99th percentile of the same", "number", "less", lambda run: run["slowdown"]["p99"]),
    Measure("mean latency", "from arrival to the end", "seconds", "less", lambda run: run["latency_seconds"]["mean"]),
    Measure("p99 latency", "99th percentile", "seconds", "less", lambda run: run["latency_seconds"]["p99"]),
    Measure(
        "cache hits", "tasks that found their models in memory", "percent", "more", lambda run: run["cache_hit_rate"]
    ),
    Measure("in time", "requests answered within their SLO", "percent", "more", lambda run: run["slo_hit_rate"]),
    Measure("batch", "tasks that ran at once, on average", "number", None, _mean_batch),
    Measure("busy", "part of all worker time in which tasks ran", "percent", None, lambda run: run["utilization"]),
    Measure("workers", "workers that ran a task", "number", None, lambda run: run["workers_used"]),
    Measure("energy", "kilojoules of all workers", "joules", "less", lambda run: run["energy_joules"]),
    Measure("cost", "dollars for all workers", "dollars", "less", lambda run: run["cost_dollars"]),
)


@dataclass(frozen=True, slots=True)
class Cell:
    """The mean over the seeds of a scheduler and half of the range that they span."""

    mean: float | None
    spread: float | None
    best: bool


@dataclass(frozen=True, slots=True)
class Row:
    """A scheduler's cells, in the order of the measures."""

    scheduler: str
    runs: tuple[Summary, ...]
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class ServingComparison:
    """All rows, and the measures that any of them has."""

    rows: tuple[Row, ...]
    measures: tuple[Measure, ...]

    @property
    def seeds(self) -> int:
        """The most runs that a row stands for."""
        return max((len(row.runs) for row in self.rows), default=0)

    def title(self, measure: Measure) -> str:
        """The title of a column with its unit."""
        unit = {"seconds": "s", "percent": "%", "joules": "kJ", "dollars": "$"}.get(measure.kind)
        return f"{measure.title} ({unit})" if unit else measure.title

    def text(self, measure: Measure, value: float | None) -> str:
        """A number of a column, in its unit."""
        return NOTHING if value is None else digits(_in_unit(measure, value))

    def notes(self) -> list[str]:
        """What the averages leave out, a sentence for each."""
        notes = []
        if self.seeds > 1:
            notes.append(f"Means over {self.seeds} runs of a scheduler, ± half of their range.")
        for row in self.rows:
            for run in row.runs:
                name = row.scheduler if len(row.runs) == 1 else f"{row.scheduler}, seed {run['seed']}"
                missing = run["requests"] - run["completed"]
                if missing:
                    told = f"{run['refused']} refused, {missing - run['refused']} not answered when the run ended"
                    notes.append(f"{name}: {run['completed']} of {run['requests']} requests completed; {told}.")
                if run["retried"]:
                    notes.append(f"{name}: {run['retried']} requests had to ask another worker.")
        skipped = max((run["skipped_rows"] for row in self.rows for run in row.runs), default=0)
        if skipped:
            notes.append(f"{skipped} rows of the trace could not be used and are left out.")
        return notes


def compare_serving(runs: Sequence[Summary], columns: Sequence[Measure] = MEASURES) -> ServingComparison:
    """Put runs side by side; schedulers stay in the order in which they first come."""
    groups: dict[str, list[Summary]] = {}
    for run in runs:
        groups.setdefault(run["scheduler"], []).append(run)
    measures = tuple(measure for measure in columns if any(measure.of(run) is not None for run in runs))
    means = {measure.title: {name: _mean(measure, members) for name, members in groups.items()} for measure in measures}
    return ServingComparison(
        tuple(
            Row(
                name, tuple(members), tuple(_cell(measure, means[measure.title], name, members) for measure in measures)
            )
            for name, members in groups.items()
        ),
        measures,
    )


def _cell(measure: Measure, means: dict[str, float | None], name: str, runs: Sequence[Summary]) -> Cell:
    known = [mean for mean in means.values() if mean is not None]
    own = means[name]
    values = [value for run in runs if (value := measure.of(run)) is not None]
    spread = (max(values) - min(values)) / 2 if len(values) > 1 else None
    best = False
    if own is not None and measure.better is not None and len(known) > 1:
        top = min(known) if measure.better == "less" else max(known)
        best = digits(_in_unit(measure, own)) == digits(_in_unit(measure, top))
    return Cell(own, spread, best)


def _mean(measure: Measure, runs: Sequence[Summary]) -> float | None:
    known = [value for run in runs if (value := measure.of(run)) is not None]
    return sum(known) / len(known) if known else None


def _in_unit(measure: Measure, value: float) -> float:
    if measure.kind == "percent":
        return 100 * value
    return value / 1000 if measure.kind == "joules" else value
