"""What came of runs at several loads, for the page: curves over the load with a table beside them, instead of a run.

A sweep gives mean times with their intervals and what deadlines cost; a search for rates, the part in time at each rate
that was tried. Each point says in a sentence what it is, so that the page needs to know neither.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairway.errors import InputError
from fairway.experiments.analysis import Curve
from fairway.report.plain_json import plain
from fairway.report.training.comparison import SECONDS, digits, time_unit

UNIT_NAMES = {"h": "hours", "min": "minutes", "s": "seconds"}

_INTERVALS = (
    "Everything here is simulated, in virtual time. Each number is a mean over seeds, with the 95 % interval of "
    "Student's t; where there is one seed, there is no interval."
)


@dataclass(frozen=True, slots=True)
class RateCurve:
    """A scheduler and a seed: the rate that it holds, None if none, and the part in time at each rate tried."""

    scheduler: str
    seed: int
    rate: float | None
    in_time: Mapping[float, float]


class LoadPage:
    """The tables of such a page as they are filled: charts with their points, columns and rows with their cells."""

    def __init__(self) -> None:
        self.charts: list[dict[str, Any]] = []
        self.points: dict[str, list[Any]] = {
            name: [] for name in ("chart", "curve", "look", "seed", "x", "y", "half", "open", "joined", "told")
        }
        self.columns: dict[str, list[Any]] = {"title": [], "meaning": []}
        self.rows: dict[str, list[Any]] = {"name": [], "look": []}
        self.cells: dict[str, list[Any]] = {name: [] for name in ("row", "column", "text", "spread", "best")}

    def chart(
        self, title: str, note: str, x: str, y: str, *, form: tuple[str, str], across: float | None = None
    ) -> None:
        """Begin a chart; the points that follow are in it."""
        self.charts.append(
            {"title": title, "note": note, "x": x, "y": y, "x_form": form[0], "y_form": form[1], "across": across}
        )

    def point(
        self,
        curve: str,
        look: int,
        at: tuple[float, float],
        told: str,
        *,
        seed: int = 0,
        half: float = math.nan,
        hollow: bool = False,
        joined: bool = True,
    ) -> None:
        """A point of a curve of the last chart."""
        values = (
            len(self.charts) - 1, curve, look, seed, float(at[0]), float(at[1]), None if math.isnan(half) else half,
            hollow, joined, told,
        )  # fmt: skip
        for column, value in zip(self.points.values(), values, strict=True):
            column.append(value)

    def column(self, title: str, meaning: str) -> None:
        """A column of the table."""
        self.columns["title"].append(title)
        self.columns["meaning"].append(meaning)

    def row(self, name: str, look: int) -> None:
        """A row of the table."""
        self.rows["name"].append(name)
        self.rows["look"].append(look)

    def cell(self, column: int, text: str, spread: str = "", *, best: bool = False) -> None:
        """What stands in a column of the last row."""
        values = (len(self.rows["name"]) - 1, column, text, spread, best)
        for name, value in zip(self.cells.values(), values, strict=True):
            name.append(value)

    def run(self, label: str, *, of: str, about: str, finding: str, settings: Mapping[str, Any]) -> dict[str, Any]:
        """All of it as a run of a saved run."""
        return {
            "kind": "curves",
            "label": label,
            "policy": None,
            "settings": plain(settings),
            "summary": {},
            "begins_at": None,
            "end": 0.0,
            "of": of,
            "about": about,
            "finding": finding,
            "charts": self.charts,
            "columns": self.columns,
            "rows": self.rows,
            "cells": self.cells,
            "points": self.points,
        }


def saved_sweep(
    curves: Sequence[Curve], *, of: str, time: str, load: str, about: str, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """A sweep; `of` says what a curve is, `time` what is measured, `load` what the rates are."""
    if not curves:
        raise InputError("report: no runs given, expected at least one")
    page = LoadPage()
    unit = time_unit(max((mean for curve in curves for mean in curve.means), default=0.0))
    page.chart(
        f"{time} against load",
        "Lower is better. Bars are 95 % intervals over seeds; a hollow point marks the knee, the load at which the "
        f"{time} is twice that at the lightest load.",
        load,
        f"{time} ({UNIT_NAMES[unit]})",
        form=("number", "number"),
    )
    for look, curve in enumerate(curves):
        for at, mean, half in zip(curve.loads, curve.means, curve.halves, strict=True):
            told = f"{curve.name}: {digits(mean / SECONDS[unit])} {unit} at {at:g} {load}"
            page.point(curve.name, look, (at, mean / SECONDS[unit]), told, half=half / SECONDS[unit])
        if curve.knee is not None:
            told = f"knee of {curve.name}: {digits(curve.knee)} {load}"
            where = (curve.knee, 2 * curve.means[0] / SECONDS[unit])
            page.point(curve.name, look, where, told, hollow=True, joined=False)
    _trade(page, curves, load)
    _times(page, curves, time, load, unit)
    return page.run(
        f"{len(curves)} {'policies' if of == 'policy' else 'schedulers'} under load",
        of=of,
        about=f"{about}. {_INTERVALS}",
        finding=_finding(curves, load),
        settings=settings,
    )


def _trade(page: LoadPage, curves: Sequence[Curve], load: str) -> None:
    known = [
        (look, curve, at)
        for look, curve in enumerate(curves)
        for at in range(len(curve.loads))
        if not (math.isnan(curve.costs[at]) or math.isnan(curve.hits[at]))
    ]
    if not known:
        return
    page.chart(
        "Cost against hit rate",
        "Further left and higher is better: what a run cost, and the part of deadlines that it met, at each load. "
        "Filled points are those that no other policy beats in both at the same load.",
        "cost of a run (dollars)",
        "deadlines met",
        form=("dollars", "percent"),
    )
    for look, curve, at in known:
        cost, hits = curve.costs[at], curve.hits[at]
        told = f"{curve.name} at {curve.loads[at]:g} {load}: ${digits(cost)}, {100 * hits:.3g} % in time"
        page.point(curve.name, look, (cost, hits), told, hollow=not curve.best[at])


def _times(page: LoadPage, curves: Sequence[Curve], time: str, load: str, unit: str) -> None:
    loads = sorted({each for curve in curves for each in curve.loads})
    page.column(f"knee ({load})", "the load at which the time is twice that at the lightest load")
    for each in loads:
        page.column(f"at {each:g} ({unit})", f"{time} at {each:g} {load}")
    for look, curve in enumerate(curves):
        page.row(curve.name, look)
        page.cell(0, "none" if curve.knee is None else digits(curve.knee))
        for column, each in enumerate(loads, 1):
            if each not in curve.loads:
                continue
            at = curve.loads.index(each)
            half = curve.halves[at]
            others = [other.means[other.loads.index(each)] for other in curves if each in other.loads]
            page.cell(
                column,
                digits(curve.means[at] / SECONDS[unit]),
                "" if math.isnan(half) else f"± {digits(half / SECONDS[unit])}",
                best=len(others) > 1 and curve.means[at] <= min(others),
            )


def _finding(curves: Sequence[Curve], load: str) -> str:
    bent = {curve.name: curve.knee for curve in curves if curve.knee is not None}
    straight = [curve.name for curve in curves if curve.knee is None]
    if not bent:
        return "No policy reaches its knee at any of these loads."
    last = straight or [max(bent, key=lambda name: bent[name])]
    first = min(bent, key=lambda name: bent[name])
    if straight:
        return f"{first} bends first, at {digits(bent[first])} {load}; {', '.join(last)} does not bend at these loads."
    return f"{last[0]} bends last, at {digits(bent[last[0]])} {load}; {first} first, at {digits(bent[first])}."


def saved_rates(curves: Sequence[RateCurve], part: float, *, settings: Mapping[str, Any]) -> dict[str, Any]:
    """A search for the highest rate at which a part of the requests is in time."""
    if not curves:
        raise InputError("report: no runs given, expected at least one")
    rates: dict[str, list[float]] = {}
    for curve in curves:
        rates.setdefault(curve.scheduler, []).append(curve.rate or 0.0)
    means = {name: sum(each) / len(each) for name, each in rates.items()}
    best = max(means, key=lambda name: means[name])
    names = list(rates)
    page = LoadPage()
    page.chart(
        "In time against the rate",
        "Higher and further right is better: the part of the requests that were answered within their SLO. The line "
        f"across is the {100 * part:g} % that was searched for; each scheduler has a line for each seed.",
        "requests per second",
        "in time",
        form=("number", "percent"),
        across=part,
    )
    seen: dict[str, int] = {}
    for curve in curves:
        seed = seen[curve.scheduler] = seen.get(curve.scheduler, -1) + 1
        label = curve.scheduler if len(rates[curve.scheduler]) == 1 else f"{curve.scheduler}, seed {curve.seed}"
        for rate, hits in sorted(curve.in_time.items()):
            told = f"{label}: {100 * hits:.3g} % at {rate:.4g} per second"
            page.point(label, names.index(curve.scheduler), (rate, hits), told, seed=seed)
    page.column("held (requests/s)", f"the highest rate at which {100 * part:g} % of the requests are in time")
    for look, (name, each) in enumerate(rates.items()):
        page.row(name, look)
        spread = f"± {digits((max(each) - min(each)) / 2)}" if len(each) > 1 else ""
        page.cell(0, digits(means[name]), spread, best=len(rates) > 1 and means[name] == max(means.values()))
    return page.run(
        "rates that are held",
        of="scheduler",
        about=f"The highest rate of requests at which {100 * part:g} % are in time, and what comes at other rates. "
        "Everything here is simulated, in virtual time.",
        finding=f"{best} holds the highest rate: {digits(means[best])} requests per second."
        if means[best]
        else "No scheduler holds any of the rates that were tried.",
        settings=settings,
    )
