"""What follows of a sweep: means with intervals over seeds, the knee of each policy, the runs that no other beats, and
whether two policies differ.

An interval is that of Student's t at 95 % over seeds. The knee of a policy is the load at which its mean time is twice
that at its lightest load, between two loads in proportion. A policy is on the Pareto front of a load if no other has a
lower cost and at least its hit rate, or its cost and a higher rate. Two policies are compared run by run, where all but
the policy is the same: by the mean ratio of their numbers (of logarithms, with an interval of t) and by Wilcoxon's
signed-rank test, which takes no distribution for granted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy import stats

from fairway.errors import InputError
from fairway.experiments.rows import Row
from fairway.options import nearest

KNEE = 2.0
"""So many times the time at the lightest load."""

LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over seeds; `half` is half of its interval, NaN with a single seed."""

    mean: float
    half: float
    count: int


def estimate(values: Sequence[float]) -> Estimate:
    """The mean of some values, with its interval."""
    count = len(values)
    mean = float(np.mean(values)) if count else math.nan
    if count < 2:
        return Estimate(mean, math.nan, count)
    spread = float(np.std(values, ddof=1)) / math.sqrt(count)
    return Estimate(mean, spread * float(stats.t.ppf((1 + LEVEL) / 2, count - 1)), count)


def who_of(rows: Sequence[Row]) -> str:
    """The column of what is compared."""
    return "policy" if "policy" in rows[0] else "scheduler"


def time_of(rows: Sequence[Row]) -> str:
    """The column of the mean time that a load is judged by."""
    return "jct_mean" if "jct_mean" in rows[0] else "latency_mean"


def series_of(row: Row, rows: Sequence[Row]) -> str:
    """The curve that a row is a point of: its policy, and whatever else varies beside rate and seed."""
    who = who_of(rows)
    varied = [name for name in _settings(row, rows) if len({each[name] for each in rows}) > 1]
    return ", ".join([str(row[who]), *(f"{name} {row[name]}" for name in varied)])


def _settings(row: Row, rows: Sequence[Row]) -> list[str]:
    """The columns that say what a run was, beside who, rate and seed; they stand before the rate."""
    names = list(row)
    return [name for name in names[: names.index("rate")] if name != who_of(rows)]


def curves(rows: Sequence[Row], column: str) -> dict[str, dict[float, Estimate]]:
    """By curve and rate, the mean over seeds of a column; runs without the number are left out."""
    found: dict[str, dict[float, list[float]]] = {}
    for row in rows:
        at = found.setdefault(series_of(row, rows), {}).setdefault(row["rate"], [])
        if row.get(column) is not None:
            at.append(row[column])
    return {
        name: {rate: estimate(values) for rate, values in sorted(by_rate.items()) if values}
        for name, by_rate in found.items()
    }


def knee_of(curve: Mapping[float, Estimate]) -> float | None:
    """The load at which the mean is `KNEE` times that at the lightest; None if it never is."""
    points = sorted((rate, each.mean) for rate, each in curve.items())
    if not points:
        return None
    limit = KNEE * points[0][1]
    for (before, low), (after, high) in pairwise(points):
        if high > limit:
            return before + (after - before) * max(limit - low, 0.0) / (high - low)
    return None


def pareto(points: Mapping[str, tuple[float, float]]) -> list[str]:
    """Of names with a cost and a hit rate, those that no other beats, the cheapest first."""
    front = [
        name
        for name, (cost, hits) in points.items()
        if not any(
            (other_cost <= cost and other_hits >= hits) and (other_cost, other_hits) != (cost, hits)
            for other_cost, other_hits in points.values()
        )
    ]
    return sorted(front, key=lambda name: points[name])


@dataclass(frozen=True, slots=True)
class Comparison:
    """B over A on `pairs` runs that differ in nothing else: `ratio` with its interval, and the probability `p` that a
    difference as large comes about by chance; NaN with too few runs, 1 where no run differs.
    """

    column: str
    pairs: int
    ratio: float
    low: float
    high: float
    lower: int
    p: float


def compared(rows: Sequence[Row], a: str, b: str, column: str | None = None) -> Comparison:
    """Compare two policies, or schedulers, of a sweep run by run."""
    who = who_of(rows)
    names = list(dict.fromkeys(row[who] for row in rows))
    for name in (a, b):
        if name not in names:
            raise InputError(
                f"{who} '{name}' is not among the results{nearest(name, names)}; there are {', '.join(names)}"
            )
    column = column or time_of(rows)
    if column not in rows[0]:
        numbers = [name for name, value in rows[0].items() if isinstance(value, float | int) and name != "seed"]
        raise InputError(f"--metric: '{column}' is not known{nearest(column, numbers)}; known: {', '.join(numbers)}")
    first, second = (_by_run(rows, who, name, column) for name in (a, b))
    runs = [run for run in first if run in second]
    pairs = [(first[run], second[run]) for run in runs if first[run] > 0 and second[run] > 0]
    if not pairs:
        raise InputError(f"no run of '{a}' and '{b}' differs in nothing but the {who} and has a {column} above 0")
    logs = [math.log(y / x) for x, y in pairs]
    mean = estimate(logs)
    differs = any(value != 0 for value in logs)
    p = float(stats.wilcoxon(logs).pvalue) if differs and len(logs) > 1 else (math.nan if differs else 1.0)
    bounds = (mean.mean - mean.half, mean.mean + mean.half)
    return Comparison(
        column,
        len(pairs),
        math.exp(mean.mean),
        math.exp(bounds[0]),
        math.exp(bounds[1]),
        sum(value < 0 for value in logs),
        p,
    )


def _by_run(rows: Sequence[Row], who: str, name: str, column: str) -> dict[tuple[object, ...], float]:
    runs: dict[tuple[object, ...], float] = {}
    for row in rows:
        if row[who] == name and row.get(column) is not None:
            keys = list(row)
            others = [key for key in keys[: keys.index("fixed") + 1] if key != who]
            runs[tuple(row[key] for key in others)] = float(row[column])
    return runs


@dataclass(frozen=True, slots=True)
class Curve:
    """One policy, or one policy on one cluster: its means at each load, in seconds, and half of their intervals.

    `knee` is the load at which the mean is twice that at the lightest, None if it stays below. `costs` and `hits` are
    means by load, NaN where they are not known; `best` says at which loads no other curve beats it in both.
    """

    name: str
    loads: tuple[float, ...]
    means: tuple[float, ...]
    halves: tuple[float, ...]
    knee: float | None
    costs: tuple[float, ...]
    hits: tuple[float, ...]
    best: tuple[bool, ...]


def page_curves(rows: Sequence[Row]) -> list[Curve]:
    """The curves of a page about a sweep."""
    times, costs, hits = (curves(rows, column) for column in (time_of(rows), "cost_dollars", "hit_rate"))
    fronts: dict[float, list[str]] = {}
    for rate in sorted({row["rate"] for row in rows}):
        both = {
            name: (costs[name][rate].mean, hits[name][rate].mean)
            for name in times
            if rate in costs[name] and rate in hits[name]
        }
        fronts[rate] = pareto(both)
    nothing = Estimate(math.nan, math.nan, 0)
    return [
        Curve(
            name,
            tuple(curve),
            tuple(each.mean for each in curve.values()),
            tuple(each.half for each in curve.values()),
            knee_of(curve),
            tuple(costs[name].get(rate, nothing).mean for rate in curve),
            tuple(hits[name].get(rate, nothing).mean for rate in curve),
            tuple(name in fronts[rate] for rate in curve),
        )
        for name, curve in times.items()
    ]
