"""Runs of requests side by side: one row for each scheduler, averaged over its seeds, the best of each column marked.

The terminal's table and the page's are made of these rows, so that the two can't differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from fairway.report.left_out import rows_left_out
from fairway.report.serving.metrics import ServingSummary
from fairway.report.training.comparison import NOTHING, digits

Kind = Literal["seconds", "percent", "number", "joules", "dollars"]


@dataclass(frozen=True, slots=True)
class Measure:
    """A column: what is compared, and whether less or more of it is better (None: neither)."""

    title: str
    meaning: str
    kind: Kind
    better: Literal["less", "more"] | None
    of: Callable[[ServingSummary], float | None]


def _mean_batch(run: ServingSummary) -> float | None:
    """Of no interest where each runs alone."""
    mean = run["mean_batch"]
    return mean if mean is not None and mean > 1 else None


_IN_TIME = Measure("in time", "requests answered within their SLO", "percent", "more", lambda run: run["slo_hit_rate"])

WHOLE_RUN: tuple[Measure, ...] = (
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
    _IN_TIME,
    Measure("batch", "tasks that ran at once, on average", "number", None, _mean_batch),
    Measure("busy", "part of all worker time in which tasks ran", "percent", None, lambda run: run["utilization"]),
    Measure("workers", "workers that ran a task", "number", None, lambda run: run["workers_used"]),
    Measure("energy", "kilojoules of all workers", "joules", "less", lambda run: run["energy_joules"]),
    Measure("cost", "dollars for all workers", "dollars", "less", lambda run: run["cost_dollars"]),
)
"""The columns of runs that count as a whole."""

IN_A_WINDOW: tuple[Measure, ...] = (
    _IN_TIME,
    Measure(
        "cost per 1000", "dollars for a thousand requests", "dollars", "less", lambda run: run["cost_per_1000_requests"]
    ),
    Measure(
        "p50 latency", "median from arrival to the end", "seconds", "less", lambda run: run["latency_seconds"]["p50"]
    ),
    Measure("p95 latency", "95th percentile", "seconds", "less", lambda run: run["latency_seconds"]["p95"]),
    Measure(
        "p95 of SLO", "95th percentile of latency over SLO", "number", "less", lambda run: run["latency_of_slo"]["p95"]
    ),
    Measure("jobs", "mean jobs of a task", "number", None, lambda run: run["mean_batch"]),
    Measure("slices", "mean GPU slices of a task", "number", None, lambda run: run["slices_per_task"]),
    Measure("CPUs", "mean CPUs of a task", "number", None, lambda run: run["cpus_per_task"]),
    Measure("GPU busy", "part of all slices that tasks held", "percent", None, lambda run: run["utilization"]),
    Measure("CPU busy", "part of all CPUs that tasks held", "percent", None, lambda run: run["cpu_utilization"]),
    Measure("local", "inputs that were on the worker", "percent", None, lambda run: run["local_fetch_rate"]),
    Measure("cold starts", "copies of models that a job waited for", "number", "less", lambda run: run["cold_starts"]),
)
"""The columns of runs in which a window counts: requests in time against dollars, and how the scheduler came to it."""


def measures_of(runs: Sequence[ServingSummary]) -> tuple[Measure, ...]:
    """The columns for these runs: those that any of them has a number for."""
    kinds = dict.fromkeys(WHOLE_RUN if run["window"] is None else IN_A_WINDOW for run in runs)
    columns = dict.fromkeys(measure for kind in kinds for measure in kind)
    return tuple(measure for measure in columns if any(measure.of(run) is not None for run in runs))


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
    runs: tuple[ServingSummary, ...]
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
                    reasons = f"{run['refused']} refused, {missing - run['refused']} not answered when the run ended"
                    notes.append(f"{name}: {run['completed']} of {run['requests']} requests completed; {reasons}.")
                if run["retried"]:
                    notes.append(f"{name}: {run['retried']} requests had to ask another worker.")
        notes += rows_left_out(run for row in self.rows for run in row.runs)
        return notes


def compare_serving(runs: Sequence[ServingSummary]) -> ServingComparison:
    """Put runs side by side; schedulers stay in the order in which they first come."""
    groups: dict[str, list[ServingSummary]] = {}
    for run in runs:
        groups.setdefault(run["scheduler"], []).append(run)
    measures = measures_of(runs)
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


def _cell(measure: Measure, means: dict[str, float | None], name: str, runs: Sequence[ServingSummary]) -> Cell:
    known = [mean for mean in means.values() if mean is not None]
    own = means[name]
    values = [value for run in runs if (value := measure.of(run)) is not None]
    spread = (max(values) - min(values)) / 2 if len(values) > 1 else None
    best = False
    if own is not None and measure.better is not None and len(known) > 1:
        top = min(known) if measure.better == "less" else max(known)
        best = digits(_in_unit(measure, own)) == digits(_in_unit(measure, top))
    return Cell(own, spread, best)


def _mean(measure: Measure, runs: Sequence[ServingSummary]) -> float | None:
    known = [value for run in runs if (value := measure.of(run)) is not None]
    return sum(known) / len(known) if known else None


def _in_unit(measure: Measure, value: float) -> float:
    if measure.kind == "percent":
        return 100 * value
    return value / 1000 if measure.kind == "joules" else value
