"""One self-contained HTML page about the rates that schedulers hold: the part of requests in time against the rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from fairway.errors import InputError
from fairway.report.looks import Look, border_style, looks_of
from fairway.report.page_document import (
    Column,
    NumberCell,
    NumberRow,
    Numbers,
    Page,
    chart_section,
    render,
    title_of,
)
from fairway.report.serving.page import SIMULATED
from fairway.report.training.charts import Figure, plotly_text
from fairway.report.training.comparison import digits


@dataclass(frozen=True, slots=True)
class RateCurve:
    """A scheduler and a seed: the rate that it holds, None if none, and the part in time at each rate tried."""

    scheduler: str
    seed: int
    rate: float | None
    in_time: Mapping[float, float]


def rate_page(curves: Sequence[RateCurve], part: float, *, command: str, settings: Mapping[str, Any]) -> str:
    """The page's HTML."""
    if not curves:
        raise InputError("report: no runs given, expected at least one")
    looks = looks_of([(curve.scheduler, curve.seed) for curve in curves])
    rates: dict[str, list[float]] = {}
    for curve in curves:
        rates.setdefault(curve.scheduler, []).append(curve.rate or 0.0)
    means = {name: sum(each) / len(each) for name, each in rates.items()}
    best = max(means, key=lambda name: means[name])
    section = chart_section(
        "in-time",
        "In time against the rate",
        "in time",
        f"Higher and further right is better: the part of the requests that were answered within their SLO. The line "
        f"across is the {100 * part:g} % that was searched for; each scheduler has a line for each seed.",
        _chart(curves, looks, part),
    )
    assert section is not None
    return render(
        Page(
            title=title_of([curve.scheduler for curve in curves], "schedulers at their limits"),
            about=f"The highest rate of requests at which {100 * part:g} % are in time, and what comes at other rates",
            finding=f"{best} holds the highest rate: {digits(means[best])} requests per second."
            if means[best]
            else "No scheduler holds any of the rates that were tried.",
            numbers=_numbers(
                rates, means, {curve.scheduler: look for curve, look in zip(curves, looks, strict=True)}, part
            ),
            sections=(section,),
            labels=(),
            origin=SIMULATED,
            command=command,
            settings=settings,
        )
    )


def _numbers(
    rates: Mapping[str, Sequence[float]], means: Mapping[str, float], looks: Mapping[str, Look], part: float
) -> Numbers:
    most, rows = max(means.values()), []
    for name, each in rates.items():
        spread = f"± {digits((max(each) - min(each)) / 2)}" if len(each) > 1 else ""
        look = looks[name]
        cell = NumberCell(digits(means[name]), spread, best=len(rates) > 1 and means[name] == most)
        rows.append(NumberRow(name, look.colour, border_style(look.dash), (cell,)))
    title = Column("held (requests/s)", f"the highest rate at which {100 * part:g} % of the requests are in time")
    return Numbers("scheduler", (title,), tuple(rows), ())


def _chart(curves: Sequence[RateCurve], looks: Sequence[Look], part: float) -> Figure:
    figure = go.Figure()
    for curve, look in zip(curves, looks, strict=True):
        points = sorted(curve.in_time.items())
        figure.add_scatter(
            x=[rate for rate, _ in points],
            y=[hits for _, hits in points],
            mode="lines+markers",
            name=plotly_text(look.label),
            legendgroup=curve.scheduler,
            line={"color": look.colour, "dash": look.dash, "width": 2},
            marker={"symbol": look.symbol, "size": 6},
            hovertemplate=f"{plotly_text(look.label)}: %{{y:.1%}} at %{{x:.4g}} per second<extra></extra>",
        )
    figure.add_hline(y=part, line={"dash": "dot", "width": 1})
    figure.update_xaxes(title="requests per second", rangemode="tozero")
    figure.update_yaxes(title="in time", tickformat=".0%", range=[-0.02, 1.02])
    return figure.update_layout(height=460)
