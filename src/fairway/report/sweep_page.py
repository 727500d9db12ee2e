"""One self-contained HTML page about a sweep: time against load, the knee of each policy, cost against hit rate.

It is made of the numbers that `fairway.experiments.analysis` finds, which come in here as plain values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from fairway.errors import InputError
from fairway.report.looks import Look, border_style, looks_of
from fairway.report.page_document import Column, NumberCell, NumberRow, Numbers, Origin, Page, chart_section, render
from fairway.report.training.charts import UNIT_NAMES, Figure, plotly_text
from fairway.report.training.comparison import SECONDS, digits, time_unit

SIMULATED = Origin(
    "simulated",
    "Everything here is simulated, in virtual time. Each number is a mean over seeds, with the 95 % interval of "
    "Student's t; where there is one seed, there is no interval.",
)


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


def sweep_page(
    curves: Sequence[Curve], *, of: str, time: str, load: str, about: str, command: str, settings: Mapping[str, Any]
) -> str:
    """The page's HTML; `of` says what a curve is, `time` what is measured, `load` what the rates are."""
    if not curves:
        raise InputError("report: no runs given, expected at least one")
    looks = looks_of([(curve.name, None) for curve in curves])
    unit = time_unit(max((mean for curve in curves for mean in curve.means), default=0.0))
    sections = (
        chart_section(
            "load",
            f"{time} against load",
            "load",
            f"Lower is better. Bars are 95 % intervals over seeds; a diamond marks the knee, the load at which the "
            f"{time} is twice that at the lightest load.",
            _load_chart(curves, looks, unit, time, load),
            empty="No run has completed anything.",
        ),
        chart_section(
            "pareto",
            "Cost against hit rate",
            "cost and hits",
            "Further left and higher is better: what a run cost, and the part of deadlines that it met, at each load. "
            "Filled points are those that no other policy beats in both at the same load.",
            _pareto_chart(curves, looks, load),
        ),
    )
    return render(
        Page(
            title=f"{len(curves)} {'policies' if of == 'policy' else 'schedulers'} under load",
            about=about,
            finding=_finding(curves, load),
            numbers=_numbers(curves, looks, of=of, time=time, unit=unit, load=load),
            sections=tuple(section for section in sections if section is not None),
            labels=(),
            origin=SIMULATED,
            command=command,
            settings=settings,
        )
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


def _numbers(curves: Sequence[Curve], looks: Sequence[Look], *, of: str, time: str, unit: str, load: str) -> Numbers:
    loads = sorted({each for curve in curves for each in curve.loads})
    columns = [Column(f"knee ({load})", "the load at which the time is twice that at the lightest load")]
    columns += [Column(f"at {each:g} ({unit})", f"{time} at {each:g} {load}") for each in loads]
    rows = []
    for curve, look in zip(curves, looks, strict=True):
        cells = [NumberCell("none" if curve.knee is None else digits(curve.knee))]
        for each in loads:
            if each not in curve.loads:
                cells.append(NumberCell(""))
                continue
            at = curve.loads.index(each)
            half = curve.halves[at]
            others = [other.means[other.loads.index(each)] for other in curves if each in other.loads]
            cells.append(
                NumberCell(
                    digits(curve.means[at] / SECONDS[unit]),
                    "" if math.isnan(half) else f"± {digits(half / SECONDS[unit])}",
                    best=len(others) > 1 and curve.means[at] <= min(others),
                )
            )
        rows.append(NumberRow(curve.name, look.colour, border_style(look.dash), tuple(cells)))
    return Numbers(of, tuple(columns), tuple(rows), ())


def _load_chart(curves: Sequence[Curve], looks: Sequence[Look], unit: str, time: str, load: str) -> Figure | None:
    figure = go.Figure()
    for curve, look in zip(curves, looks, strict=True):
        if not curve.loads:
            continue
        scale = SECONDS[unit]
        figure.add_scatter(
            x=list(curve.loads),
            y=[mean / scale for mean in curve.means],
            error_y={"type": "data", "array": [None if math.isnan(half) else half / scale for half in curve.halves]},
            mode="lines+markers",
            name=plotly_text(look.label),
            line={"color": look.colour, "dash": look.dash, "width": 2.5},
            marker={"symbol": look.symbol},
            hovertemplate=f"{plotly_text(look.label)}: %{{y:.3g}} {unit} at %{{x:g}} {load}<extra></extra>",
        )
        if curve.knee is not None:
            figure.add_scatter(
                x=[curve.knee],
                y=[2 * curve.means[0] / scale],
                mode="markers",
                showlegend=False,
                marker={"symbol": "diamond-open", "size": 13, "color": look.colour},
                hovertemplate=f"knee of {plotly_text(look.label)}: %{{x:.3g}} {load}<extra></extra>",
            )
    if not figure.data:
        return None
    figure.update_xaxes(title=load, rangemode="tozero")
    figure.update_yaxes(title=f"{time} ({UNIT_NAMES[unit]})", rangemode="tozero")
    return figure.update_layout(height=460)


def _pareto_chart(curves: Sequence[Curve], looks: Sequence[Look], load: str) -> Figure | None:
    figure = go.Figure()
    for curve, look in zip(curves, looks, strict=True):
        known = [
            at for at in range(len(curve.loads)) if not (math.isnan(curve.costs[at]) or math.isnan(curve.hits[at]))
        ]
        if known:
            figure.add_scatter(
                x=[curve.costs[at] for at in known],
                y=[curve.hits[at] for at in known],
                customdata=[curve.loads[at] for at in known],
                mode="lines+markers",
                name=plotly_text(look.label),
                line={"color": look.colour, "dash": look.dash, "width": 1},
                marker={
                    "symbol": [look.symbol if curve.best[at] else f"{look.symbol}-open" for at in known],
                    "size": 10,
                },
                hovertemplate=f"{plotly_text(look.label)} at %{{customdata:g}} {load}: "
                "$%{x:.3g}, %{y:.1%} in time<extra></extra>",
            )
    if not figure.data:
        return None
    figure.update_xaxes(title="cost of a run (dollars)", rangemode="tozero")
    figure.update_yaxes(title="deadlines met", tickformat=".0%")
    return figure.update_layout(height=460)
