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
from fairway.report.serving.metrics import ServingSummary, latencies, slowdowns, summarize_serving
from fairway.report.serving.record import FloatArray, IntArray, ServingRecord
from fairway.report.training.charts import Figure, log_ticks, plotly_text, short

MOST_POINTS = 400
MOST_PANELS = 6
"""Workflows with a panel of their own: those that most requests ask for."""

DEADLINE_COLOUR = "#888888"

_INTERVALS = 120


@dataclass(frozen=True, eq=False)
class ServingShown:
    """A record with its numbers, its name among the others, and how its lines are drawn."""

    record: ServingRecord
    summary: ServingSummary
    label: str
    colour: str
    dash: str
    symbol: str
    first: bool


def shown_serving(records: Sequence[ServingRecord]) -> list[ServingShown]:
    """The runs by scheduler and seed, as `looks` names them."""
    summaries = [summarize_serving(record) for record in records]
    looks = looks_of([(record.scheduler, summary["seed"]) for record, summary in zip(records, summaries, strict=True)])
    return [
        ServingShown(record, summary, look.label, look.colour, look.dash, look.symbol, first=look.first)
        for record, summary, look in zip(records, summaries, looks, strict=True)
    ]


def latency_curves(runs: Sequence[ServingShown]) -> Figure | None:
    """The part of the requests that were answered within a time, for each workflow, with its deadline."""
    return _curves(runs, latencies, "latency (s)", deadlines=True)


def slowdown_curves(runs: Sequence[ServingShown]) -> Figure | None:
    """The same for latency over the lower bound."""
    return _curves(runs, slowdowns, "slow-down")


_FOUND = (
    ("in memory", "#009e73"),
    ("on their way", "#e69f00"),
    ("waited for in the queue", "#cc79a7"),
    ("to be fetched", "#d55e00"),
)


def cache_chart(runs: Sequence[ServingShown]) -> Figure | None:
    """How tasks found their models, or None where none needs any."""
    figure = go.Figure()
    labels = [plotly_text(run.label) for run in runs]
    counts = [_found(run.record) for run in runs]
    if not any(map(any, counts)):
        return None
    for place, (name, colour) in enumerate(_FOUND):
        if name == "waited for in the queue" and not any(each[place] for each in counts):
            continue
        figure.add_bar(
            y=labels,
            x=[each[place] / max(sum(each), 1) for each in counts],
            customdata=[each[place] for each in counts],
            orientation="h",
            name=name,
            marker={"color": colour},
            hovertemplate=f"%{{y}}: %{{customdata}} tasks, %{{x:.1%}}<extra>{name}</extra>",
        )
    figure.update_xaxes(title="part of the tasks that need a model", tickformat=".0%", range=[0, 1.005])
    figure.update_yaxes(type="category", autorange="reversed", automargin=True, ticksuffix="  ")
    order = {"traceorder": "normal"}  # of the legend, which plotly turns round beside stacked bars
    return figure.update_layout(height=130 + 36 * len(runs), barmode="stack", bargap=0.3, legend=order)


def _found(record: ServingRecord) -> tuple[int, int, int, int]:
    """How many tasks found their models in each of the ways of `_FOUND`."""
    workers = record.workers
    hits, awaited = int(workers.hits.sum()), int(workers.awaited.sum())
    return max(hits - awaited, 0), int(workers.partial.sum()), min(awaited, hits), int(workers.misses.sum())


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
            **named(run),
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
                y=short(means_in(seen.time, values, edges)),
                mode="lines",
                connectgaps=True,
                line={"color": run.colour, "dash": run.dash, "width": 1.75},
                hovertemplate=f"%{{y:.3g}} at %{{x:.4g}} s<extra>{plotly_text(run.label)}</extra>",
                row=row,
                col=1,
                **(named(run) | {"showlegend": row == 1 and run.first}),
            )
    figure.update_yaxes(title="load off by (s)", rangemode="tozero", row=1, col=1)
    figure.update_yaxes(title="models wrong", rangemode="tozero", tickformat=".1%", row=2, col=1)
    figure.update_xaxes(rangemode="tozero")
    figure.update_xaxes(title="time since the start (seconds)", row=2, col=1)
    return figure.update_layout(height=440) if figure.data else None


def _curves(
    runs: Sequence[ServingShown],
    values_of: Callable[[ServingRecord, Any], FloatArray],
    title: str,
    *,
    deadlines: bool = False,
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
        place = {"row": panel // columns + 1, "col": panel % columns + 1}
        extremes: list[float] = []
        for run in runs:
            requests = run.record.requests
            among = np.ones(len(requests), dtype=np.bool_) if number < 0 else requests.workflow == number
            values = np.sort(values_of(run.record, among))
            values = values[values > 0]
            if not len(values):
                continue
            extremes += [float(values[0]), float(values[-1])]
            drawn = np.unique(np.linspace(0, len(values) - 1, min(len(values), MOST_POINTS)).round().astype(np.int64))
            total = int((among & requests.counted).sum())
            figure.add_scatter(
                x=short(values[drawn]),
                y=short((drawn + 1) / max(total, 1)),
                mode="lines",
                line={"shape": "hv", "color": run.colour, "dash": run.dash, "width": 2},
                hovertemplate=f"%{{y:.1%}} within %{{x:.3g}}<extra>{plotly_text(run.label)}</extra>",
                **place,
                **(named(run) | {"showlegend": panel == 0 and run.first}),
            )
        if deadlines and number >= 0 and extremes and workflows[number].slo_seconds > 0:
            deadline = workflows[number].slo_seconds
            extremes.append(deadline)
            figure.add_scatter(
                x=[deadline] * 2,
                y=[0, 1.02],
                mode="lines",
                line={"color": DEADLINE_COLOUR, "dash": "dot", "width": 1.5},
                hovertemplate="%{x:.4g} s<extra>deadline</extra>",
                name="deadline",
                legendgroup="deadline",
                showlegend=panel == 0,
                **place,
            )
        if extremes:
            figure.update_xaxes(**log_ticks(min(extremes), max(extremes)), **place)
    if not figure.data:
        return None
    figure.update_xaxes(title=f"{title}, logarithmic", row=rows)
    figure.update_yaxes(tickformat=".0%", range=[0, 1.02])
    return figure.update_layout(height=90 + 250 * rows, legend={"y": 1.0 + 0.12 / rows})


def means_in(time: FloatArray, values: FloatArray | IntArray, edges: FloatArray) -> FloatArray:
    """The mean of the values in each interval, NaN without any; what lies outside all of them is left out."""
    inside = (time >= edges[0]) & (time <= edges[-1])
    place = np.clip(np.searchsorted(edges, time[inside], side="right") - 1, 0, len(edges) - 2)
    number = np.bincount(place, minlength=len(edges) - 1)
    total = np.bincount(place, weights=values[inside], minlength=len(edges) - 1)
    means = np.divide(total, number, out=np.full(len(number), np.nan), where=number > 0)
    return np.asarray(means, dtype=np.float64)


def named(run: ServingShown) -> dict[str, Any]:
    """How a line of a run stands in the legend: once for all runs of its scheduler."""
    name = plotly_text(run.record.scheduler)
    return {"name": name, "legendgroup": name, "showlegend": run.first}
