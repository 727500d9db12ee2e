"""The charts of a page about serving runs: each takes the runs and gives a plotly figure, or None without data.

Figures have no colours of paper, text or grid: the page adds those of its light or dark theme. Plotly takes a few tags
and entities in any text, so names from outside go through `plotly_text`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from fairway.report.intervals import held_between
from fairway.report.looks import looks_of
from fairway.report.serving_metrics import ServingSummary, latencies, slowdowns, summarize_serving
from fairway.report.serving_record import FloatArray, ServingRecord
from fairway.report.training_charts import Figure, plotly_text, short

MOST_POINTS = 400
MOST_PANELS = 6
"""Workflows with a panel of their own: those that most requests ask for."""

_INTERVALS = 120


@dataclass(frozen=True, eq=False)
class ServingShown:
    """A record with its numbers, its name among the others, and how its lines are drawn."""

    record: ServingRecord
    summary: ServingSummary
    label: str
    colour: str
    dash: str
    first: bool


def shown_serving(records: Sequence[ServingRecord]) -> list[ServingShown]:
    """The runs by scheduler and seed, as `looks` names them."""
    summaries = [summarize_serving(record) for record in records]
    looks = looks_of([(record.scheduler, summary["seed"]) for record, summary in zip(records, summaries, strict=True)])
    return [
        ServingShown(record, summary, look.label, look.colour, look.dash, first=look.first)
        for record, summary, look in zip(records, summaries, looks, strict=True)
    ]


def latency_curves(runs: Sequence[ServingShown]) -> Figure | None:
    """The part of the requests that were answered within a time, for each workflow."""
    return _curves(runs, latencies, "latency (s)")


def slowdown_curves(runs: Sequence[ServingShown]) -> Figure | None:
    """The same for latency over the lower bound."""
    return _curves(runs, slowdowns, "slow-down")


def cache_chart(runs: Sequence[ServingShown]) -> Figure | None:
    """How tasks found their models."""
    figure = go.Figure()
    colours = ("#009e73", "#e69f00", "#d55e00")
    parts = (("in memory", "hits"), ("on their way", "partial"), ("to be fetched", "misses"))
    labels = [plotly_text(run.label) for run in runs]
    totals = [
        max(int(run.record.workers.hits.sum() + run.record.workers.partial.sum() + run.record.workers.misses.sum()), 1)
        for run in runs
    ]
    for (name, column), colour in zip(parts, colours, strict=True):
        counts = [int(getattr(run.record.workers, column).sum()) for run in runs]
        figure.add_bar(
            y=labels,
            x=[count / total for count, total in zip(counts, totals, strict=True)],
            customdata=counts,
            orientation="h",
            name=name,
            marker={"color": colour},
            hovertemplate=f"%{{y}}: %{{customdata}} tasks, %{{x:.1%}}<extra>{name}</extra>",
        )
    figure.update_xaxes(title="part of the tasks that need a model", tickformat=".0%", range=[0, 1])
    figure.update_yaxes(autorange="reversed", automargin=True, ticksuffix="  ")
    return figure.update_layout(height=130 + 36 * len(runs), barmode="stack", bargap=0.3)


def queue_chart(runs: Sequence[ServingShown]) -> Figure | None:
    """How many tasks waited, all workers together."""
    figure = go.Figure()
    for run in runs:
        tasks, end = run.record.runs, run.record.end_seconds
        if not len(tasks) or end <= 0:
            continue
        edges = np.linspace(0.0, end, _INTERVALS + 1)
        waiting = held_between(tasks.queued, tasks.turn, np.ones(len(tasks)), edges) / np.diff(edges)
        figure.add_scatter(
            x=short(edges),
            y=short(np.append(waiting, waiting[-1])),
            mode="lines",
            line={"shape": "hv", "color": run.colour, "dash": run.dash, "width": 1.75},
            hovertemplate=f"%{{y:.3g}} tasks waiting at %{{x:.4g}} s<extra>{plotly_text(run.label)}</extra>",
            **_named(run),
        )
    figure.update_xaxes(title="time since the start (seconds)", rangemode="tozero")
    figure.update_yaxes(title="tasks waiting", rangemode="tozero")
    return figure.update_layout(height=340) if figure.data else None


def staleness_chart(runs: Sequence[ServingShown]) -> Figure | None:
    """How far what planners saw of the other workers was from the truth."""
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.08)
    for run in runs:
        seen = run.record.staleness
        if not len(seen.time):
            continue
        edges = np.linspace(0.0, max(run.record.end_seconds, 1e-9), _INTERVALS + 1)
        for row, values in enumerate((seen.load_seconds, seen.models_wrong), start=1):
            figure.add_scatter(
                x=short((edges[:-1] + edges[1:]) / 2),
                y=short(_means(seen.time, values, edges)),
                mode="lines",
                connectgaps=True,
                line={"color": run.colour, "dash": run.dash, "width": 1.75},
                hovertemplate=f"%{{y:.3g}} at %{{x:.4g}} s<extra>{plotly_text(run.label)}</extra>",
                row=row,
                col=1,
                **(_named(run) | {"showlegend": row == 1 and run.first}),
            )
    figure.update_yaxes(title="load off by (s)", rangemode="tozero", row=1, col=1)
    figure.update_yaxes(title="models wrong", rangemode="tozero", tickformat=".1%", row=2, col=1)
    figure.update_xaxes(title="time since the start (seconds)", row=2, col=1)
    return figure.update_layout(height=440) if figure.data else None


def _curves(
    runs: Sequence[ServingShown], values_of: Callable[[ServingRecord, Any], FloatArray], title: str
) -> Figure | None:
    workflows = runs[0].record.workflows
    asked = np.bincount(runs[0].record.requests.workflow, minlength=len(workflows))
    most = sorted(np.argsort(-asked, kind="stable")[:MOST_PANELS].tolist())
    names = [workflows[number].name for number in most]
    if len(workflows) > MOST_PANELS:
        most, names = [-1, *most[: MOST_PANELS - 1]], ["all requests", *names[: MOST_PANELS - 1]]
    columns = 2 if len(most) > 1 else 1
    rows = -(-len(most) // columns)
    figure = make_subplots(
        rows=rows,
        cols=columns,
        subplot_titles=[plotly_text(name) for name in names],
        shared_yaxes=True,
        horizontal_spacing=0.05,
        vertical_spacing=0.3 / rows,
    )
    for panel, number in enumerate(most):
        for run in runs:
            requests = run.record.requests
            among = np.ones(len(requests), dtype=np.bool_) if number < 0 else requests.workflow == number
            values = np.sort(values_of(run.record, among))
            values = values[values > 0]
            if not len(values):
                continue
            drawn = np.unique(np.linspace(0, len(values) - 1, min(len(values), MOST_POINTS)).round().astype(np.int64))
            total = int((among & requests.counted).sum())
            figure.add_scatter(
                x=short(values[drawn]),
                y=short((drawn + 1) / max(total, 1)),
                mode="lines",
                line={"shape": "hv", "color": run.colour, "dash": run.dash, "width": 2},
                hovertemplate=f"%{{y:.1%}} within %{{x:.3g}}<extra>{plotly_text(run.label)}</extra>",
                row=panel // columns + 1,
                col=panel % columns + 1,
                **(_named(run) | {"showlegend": panel == 0 and run.first}),
            )
    if not figure.data:
        return None
    figure.update_xaxes(type="log")
    figure.update_xaxes(title=f"{title}, logarithmic", row=rows)
    figure.update_yaxes(tickformat=".0%", range=[0, 1.02])
    return figure.update_layout(height=90 + 250 * rows, legend={"y": 1.0 + 0.12 / rows})


def _means(time: FloatArray, values: FloatArray, edges: FloatArray) -> FloatArray:
    """The mean of the values in each interval, NaN without any."""
    place = np.clip(np.searchsorted(edges, time, side="right") - 1, 0, len(edges) - 2)
    number = np.bincount(place, minlength=len(edges) - 1)
    total = np.bincount(place, weights=values, minlength=len(edges) - 1)
    means = np.divide(total, number, out=np.full(len(number), np.nan), where=number > 0)
    return np.asarray(means, dtype=np.float64)


def _named(run: ServingShown) -> dict[str, Any]:
    name = plotly_text(run.record.scheduler)
    return {"name": name, "legendgroup": name, "showlegend": run.first}
