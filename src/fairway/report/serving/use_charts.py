"""The charts of what requests used: dollars, shares of workers, and copies of models that were not there.

Each takes the runs and gives a plotly figure, or None where the runs have nothing of it: no bill, tasks that are all of
one size, or no model that had to come.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from fairway.report.serving.charts import ServingShown, means_in, named
from fairway.report.serving.record import RunColumns
from fairway.report.training.charts import Figure, plotly_text, short

_INTERVALS = 90

_POSITIONS = ("bottom center", "top center", "middle left", "middle right")
"""Where names of points are written, in turn, so that those of points that lie together do not cover each other."""


def trade_chart(runs: Sequence[ServingShown]) -> Figure | None:
    """Requests in time against dollars: a point for each run whose use is billed."""
    figure = go.Figure()
    for number, run in enumerate(runs):
        hit, cost = run.summary["slo_hit_rate"], run.summary["cost_per_1000_requests"]
        if run.record.requests.cost is None or hit is None or cost is None:
            continue
        figure.add_scatter(
            x=[cost],
            y=[hit],
            mode="markers+text" if run.first else "markers",
            text=[plotly_text(run.record.scheduler)],
            textposition=_POSITIONS[sum(other.first for other in runs[: number + 1]) % len(_POSITIONS)],
            marker={"color": run.colour, "symbol": run.symbol, "size": 12, "opacity": 0.85},
            hovertemplate=f"%{{y:.1%}} in time for $%{{x:.4f}}<extra>{plotly_text(run.label)}</extra>",
            **named(run),
        )
    figure.update_xaxes(title="dollars per 1000 requests", rangemode="tozero")
    figure.update_yaxes(title="requests in time", tickformat=".0%", range=[-0.03, 1.1])
    return figure.update_layout(height=460, showlegend=False) if figure.data else None


def sizes_chart(runs: Sequence[ServingShown]) -> Figure | None:
    """The mean batch, slices and CPUs of the tasks that started at a time."""
    if not any(_differ(run.record.runs) for run in runs):
        return None
    figure = make_subplots(rows=3, cols=1, shared_xaxes=True, vertical_spacing=0.06)
    for run in runs:
        tasks, window = run.record.runs, run.record.window
        lead = tasks.member == 0
        edges = np.linspace(0.0, max(run.record.end_seconds if window is None else window[1], 1e-9), _INTERVALS + 1)
        for row, values in enumerate((tasks.batch, tasks.gpu, tasks.cpu), start=1):
            figure.add_scatter(
                x=short((edges[:-1] + edges[1:]) / 2),
                y=short(means_in(tasks.start[lead], values[lead], edges)),
                mode="lines",
                connectgaps=True,
                line={"color": run.colour, "dash": run.dash, "width": 1.75},
                hovertemplate=f"%{{y:.3g}} at %{{x:.4g}} s<extra>{plotly_text(run.label)}</extra>",
                row=row,
                col=1,
                **(named(run) | {"showlegend": row == 1 and run.first}),
            )
    for row, title in enumerate(("jobs", "GPU slices", "CPUs"), start=1):
        figure.update_yaxes(title=title, rangemode="tozero", row=row, col=1)
    figure.update_xaxes(title="time since the start (seconds)", row=3, col=1)
    return figure.update_layout(height=520)


def cold_chart(runs: Sequence[ServingShown]) -> Figure | None:
    """How many copies of models had been begun by a time: because a job waited, and ahead of any."""
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.08)
    if not any((~run.record.copies.evicted).any() for run in runs):
        return None
    for run in runs:
        copies = run.record.copies
        for row, ahead in enumerate((False, True), start=1):
            times = np.sort(copies.start[~copies.evicted & (copies.ahead == ahead)])
            figure.add_scatter(
                x=short(np.concatenate([[0.0], times, [run.record.end_seconds]])),
                y=[*range(len(times) + 1), len(times)],
                mode="lines",
                line={"shape": "hv", "color": run.colour, "dash": run.dash, "width": 1.75},
                hovertemplate=f"%{{y}} by %{{x:.4g}} s<extra>{plotly_text(run.label)}</extra>",
                row=row,
                col=1,
                **(named(run) | {"showlegend": row == 1 and run.first}),
            )
    figure.update_yaxes(title="waited for", rangemode="tozero", row=1, col=1)
    figure.update_yaxes(title="begun ahead", rangemode="tozero", row=2, col=1)
    figure.update_xaxes(title="time since the start (seconds)", row=2, col=1)
    return figure.update_layout(height=440)


def _differ(tasks: RunColumns) -> bool:
    """Whether the tasks of a run had different sizes."""
    return any(len(values) and values.min() != values.max() for values in (tasks.batch, tasks.gpu, tasks.cpu))
