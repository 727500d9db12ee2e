"""The charts of a page about serverless runs: each takes the runs and gives a plotly figure, or None without data.

Figures have no colours of paper, text or grid: the page adds those of its light or dark theme.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from fairway.report.looks import looks_of
from fairway.report.serverless_metrics import ServerlessSummary, counts, latencies, summarize_serverless
from fairway.report.serverless_record import FloatArray, ServerlessRecord
from fairway.report.training_charts import Figure, plotly_text, short

MOST_POINTS = 400
_INTERVALS = 90


@dataclass(frozen=True, eq=False)
class ServerlessShown:
    """A record with its numbers, its name among the others, and how its lines are drawn."""

    record: ServerlessRecord
    summary: ServerlessSummary
    label: str
    colour: str
    dash: str
    symbol: str
    first: bool


def shown_serverless(records: Sequence[ServerlessRecord]) -> list[ServerlessShown]:
    """The runs by scheduler and seed, as `looks` names them."""
    summaries = [summarize_serverless(record) for record in records]
    looks = looks_of([(record.scheduler, summary["seed"]) for record, summary in zip(records, summaries, strict=True)])
    return [
        ServerlessShown(record, summary, look.label, look.colour, look.dash, look.symbol, first=look.first)
        for record, summary, look in zip(records, summaries, looks, strict=True)
    ]


def trade_chart(runs: Sequence[ServerlessShown]) -> Figure | None:
    """Requests in time against dollars: a point for each run."""
    figure = go.Figure()
    for run in runs:
        hit, cost = run.summary["slo_hit_rate"], run.summary["cost_per_1000_requests"]
        if hit is None or cost is None:
            continue
        figure.add_scatter(
            x=[cost],
            y=[hit],
            mode="markers+text" if run.first else "markers",
            text=[plotly_text(run.record.scheduler)],
            textposition="top center",
            marker={"color": run.colour, "symbol": run.symbol, "size": 12, "opacity": 0.85},
            hovertemplate=f"%{{y:.1%}} in time for $%{{x:.4f}}<extra>{plotly_text(run.label)}</extra>",
            **_named(run),
        )
    figure.update_xaxes(title="dollars per 1000 requests", rangemode="tozero")
    figure.update_yaxes(title="requests in time", tickformat=".0%", range=[-0.03, 1.1])
    return figure.update_layout(height=460, showlegend=False) if figure.data else None


def deadline_curves(runs: Sequence[ServerlessShown]) -> Figure | None:
    """The part of the requests that were answered within a time, for each application, with its deadline."""
    applications = runs[0].record.applications
    columns = 2 if len(applications) > 1 else 1
    rows = -(-len(applications) // columns)
    figure = make_subplots(
        rows=rows,
        cols=columns,
        subplot_titles=[plotly_text(facts.name) for facts in applications],
        shared_yaxes=True,
        horizontal_spacing=0.05,
        vertical_spacing=0.3 / rows,
    )
    for panel, facts in enumerate(applications):
        place = {"row": panel // columns + 1, "col": panel % columns + 1}
        for run in runs:
            among = np.asarray(run.record.requests.application == panel, np.bool_)
            values = np.sort(latencies(run.record, among))
            if not len(values):
                continue
            drawn = np.unique(np.linspace(0, len(values) - 1, min(len(values), MOST_POINTS)).round().astype(np.int64))
            total = max(int((among & counts(run.record)).sum()), 1)
            figure.add_scatter(
                x=short(values[drawn]),
                y=short((drawn + 1) / total),
                mode="lines",
                line={"shape": "hv", "color": run.colour, "dash": run.dash, "width": 2},
                hovertemplate=f"%{{y:.1%}} within %{{x:.4g}} s<extra>{plotly_text(run.label)}</extra>",
                **place,
                **(_named(run) | {"showlegend": panel == 0 and run.first}),
            )
        figure.add_vline(x=facts.slo_seconds, line={"dash": "dot", "width": 1.5}, **place)
        figure.update_xaxes(range=[0, 2.5 * facts.slo_seconds], **place)
    if not figure.data:
        return None
    figure.update_xaxes(title="latency (s)", row=rows)
    figure.update_yaxes(tickformat=".0%", range=[0, 1.02])
    return figure.update_layout(height=90 + 250 * rows, legend={"y": 1.0 + 0.12 / rows})


def sizes_chart(runs: Sequence[ServerlessShown]) -> Figure | None:
    """The mean batch, slices and CPUs of the tasks that started at a time."""
    figure = make_subplots(rows=3, cols=1, shared_xaxes=True, vertical_spacing=0.06)
    for run in runs:
        tasks = run.record.tasks
        if not len(tasks):
            continue
        edges = np.linspace(0.0, max(run.record.window[1], 1e-9), _INTERVALS + 1)
        for row, values in enumerate((tasks.jobs, tasks.gpu, tasks.cpu), start=1):
            figure.add_scatter(
                x=short((edges[:-1] + edges[1:]) / 2),
                y=short(_means(tasks.start, values.astype(np.float64), edges)),
                mode="lines",
                connectgaps=True,
                line={"color": run.colour, "dash": run.dash, "width": 1.75},
                hovertemplate=f"%{{y:.3g}} at %{{x:.4g}} s<extra>{plotly_text(run.label)}</extra>",
                row=row,
                col=1,
                **(_named(run) | {"showlegend": row == 1 and run.first}),
            )
    for row, title in enumerate(("jobs", "GPU slices", "CPUs"), start=1):
        figure.update_yaxes(title=title, rangemode="tozero", row=row, col=1)
    figure.update_xaxes(title="time since the start (seconds)", row=3, col=1)
    return figure.update_layout(height=520) if figure.data else None


def cold_chart(runs: Sequence[ServerlessShown]) -> Figure | None:
    """How many containers had been begun by a time: because a job waited, and ahead of any."""
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.08)
    for run in runs:
        begun = run.record.containers
        if not len(begun):
            continue
        for row, ahead in enumerate((False, True), start=1):
            times = np.sort(begun.start[begun.ahead == ahead])
            figure.add_scatter(
                x=short(np.concatenate([[0.0], times, [run.record.end_seconds]])),
                y=[*range(len(times) + 1), len(times)],
                mode="lines",
                line={"shape": "hv", "color": run.colour, "dash": run.dash, "width": 1.75},
                hovertemplate=f"%{{y}} by %{{x:.4g}} s<extra>{plotly_text(run.label)}</extra>",
                row=row,
                col=1,
                **(_named(run) | {"showlegend": row == 1 and run.first}),
            )
    figure.update_yaxes(title="waited for", rangemode="tozero", row=1, col=1)
    figure.update_yaxes(title="begun ahead", rangemode="tozero", row=2, col=1)
    figure.update_xaxes(title="time since the start (seconds)", row=2, col=1)
    return figure.update_layout(height=440) if figure.data else None


def _means(time: FloatArray, values: FloatArray, edges: FloatArray) -> FloatArray:
    """The mean of the values in each interval, NaN without any."""
    inside = (time >= edges[0]) & (time < edges[-1])
    place = np.searchsorted(edges, time[inside], side="right") - 1
    number = np.bincount(place, minlength=len(edges) - 1)
    total = np.bincount(place, weights=values[inside], minlength=len(edges) - 1)
    means = np.divide(total, number, out=np.full(len(number), np.nan), where=number > 0)
    return np.asarray(means, np.float64)


def _named(run: ServerlessShown) -> dict[str, Any]:
    name = plotly_text(run.record.scheduler)
    return {"name": name, "legendgroup": name, "showlegend": run.first}
