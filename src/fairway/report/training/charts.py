"""The charts of a page: each takes the runs and gives a plotly figure, or None where there is nothing to draw.

Figures have no colours of paper, text or grid: the page adds those of its light or dark theme. Plotly takes a few tags
and entities in any text, so names from outside go through `plotly_text`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from fairway.report.intervals import Series
from fairway.report.training.comparison import SECONDS, time_unit
from fairway.report.training.metrics import GroupSummary, completed
from fairway.report.training.record import FloatArray, IntArray
from fairway.report.training.runs import ShownRun
from fairway.report.training.series import end_of, queue_length, utilization_by_type

Figure: TypeAlias = Any  # plotly has no types
UNIT_NAMES = {"d": "days", "h": "hours", "min": "minutes", "s": "seconds"}
MOST_POINTS = 800
"""A curve of sorted jobs is drawn with at most so many of them."""

MOST_GROUPS = 20

LINE_AT_ONE = {
    "type": "line",
    "xref": "paper",
    "x0": 0,
    "x1": 1,
    "y0": 1,
    "y1": 1,
    "line": {"width": 1.5, "dash": "dash"},
}


def plotly_text(text: object) -> str:
    """Text that plotly shows as it is: it reads tags and entities in any text, and `%{x}` in those for the pointer."""
    escaped = str(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return escaped.replace("%{", "%&#123;")


def clock_unit(runs: Sequence[ShownRun]) -> str:
    """The unit of the time axes: that of the longest run."""
    longest = max((end_of(run.record) for run in runs), default=0.0)
    return "d" if longest >= 4 * SECONDS["d"] else time_unit(longest)


def completion_curves(runs: Sequence[ShownRun], unit: str) -> Figure | None:
    """The part of the jobs that finished within a time. Jobs that never finished keep a curve below 100 %."""
    figure = go.Figure()
    extremes: list[float] = []
    for run in runs:
        jobs = run.record.jobs
        done = np.flatnonzero(completed(run.record, jobs.counted))
        seconds = jobs.finish[done] - jobs.arrival[done]
        positive = seconds > 0  # the axis is logarithmic
        done, seconds = done[positive], seconds[positive]
        order = np.argsort(seconds, kind="stable")
        shown = _spread(len(order))
        part = (shown + 1) / max(int(jobs.counted.sum()), 1)
        if len(shown):
            extremes += [float(seconds.min()) / SECONDS[unit], float(seconds.max()) / SECONDS[unit]]
            figure.add_scatter(
                x=short(seconds[order][shown] / SECONDS[unit]),
                y=short(part),
                customdata=[plotly_text(jobs.ids[k]) for k in done[order][shown].tolist()],
                mode="lines",
                hovertemplate=_hover(run, f"%{{y:.1%}} of jobs within %{{x:.3g}} {unit}<br>(job %{{customdata}})"),
                line={"shape": "hv", **_line(run, 2.5)},
                **_name(run),
            )
    if not extremes:
        return None
    ticks = log_ticks(min(extremes), max(extremes))
    figure.update_xaxes(title=f"job completion time ({UNIT_NAMES[unit]}, logarithmic)", **ticks)
    figure.update_yaxes(title="part of jobs finished", tickformat=".0%", range=[0, 1.02])
    return figure.update_layout(height=420)


def fairness_curves(runs: Sequence[ShownRun]) -> Figure | None:
    """Rho of each job, sorted: the part of the curve above 1 is jobs that an equal share would have served better."""
    figure = go.Figure()
    extremes: list[float] = []
    for run in runs:
        jobs = run.record.jobs
        done = np.flatnonzero(completed(run.record, jobs.counted) & (jobs.isolated_seconds > 0))
        rho = (jobs.finish[done] - jobs.arrival[done]) / jobs.isolated_seconds[done]
        order = np.argsort(rho, kind="stable")
        shown = _spread(len(order))
        if not len(shown):
            continue
        extremes += [float(rho.min()), float(rho.max())]
        figure.add_scatter(
            x=short((shown + 0.5) / len(order)),
            y=short(rho[order][shown]),
            customdata=[plotly_text(jobs.ids[k]) for k in done[order][shown].tolist()],
            mode="lines",
            hovertemplate=_hover(run, "job %{customdata}: ρ = %{y:.3g}<br>%{x:.0%} of jobs have less"),
            line=_line(run, 2.5),
            **_name(run),
        )
    if not extremes:
        return None
    low, high = min(extremes), max(extremes)
    linear = {"range": [0, 1.05 * max(high, 1.05)]}
    figure.update_xaxes(title="jobs, sorted by ρ", tickformat=".0%", range=[0, 1.005])
    figure.update_yaxes(title="ρ", **(log_ticks(low, max(high, 1.0)) if 0 < 10 * low < high else linear))
    return figure.update_layout(height=380, shapes=[LINE_AT_ONE])


def queue_chart(runs: Sequence[ShownRun], unit: str) -> Figure | None:
    """Jobs that wait above jobs that run."""
    figure = _panels(["jobs waiting", "jobs running"], height=170)
    for run in runs:
        for row, series in enumerate(queue_length(run.record), start=1):
            _add_steps(figure, row, run, series, unit, "%{y:.3g} jobs")
    figure.update_yaxes(rangemode="tozero")
    return _on_clock(figure, unit) if figure.data else None


def utilization_chart(runs: Sequence[ShownRun], unit: str) -> Figure | None:
    """How busy each accelerator type was."""
    names = [name for name, count in runs[0].record.cluster.workers.items() if count] if runs else []
    if not names:
        return None
    figure = _panels([plotly_text(name) for name in names], height=110 if len(names) > 2 else 150)
    for run in runs:
        for name, series in utilization_by_type(run.record).items():
            if name in names:
                _add_steps(figure, names.index(name) + 1, run, series, unit, "%{y:.0%} busy")
    figure.update_yaxes(tickformat=".0%", range=[0, 1.05], tickvals=[0, 0.5, 1])
    return _on_clock(figure, unit) if figure.data else None


def group_chart(
    runs: Sequence[ShownRun], unit: str, groups: Callable[[ShownRun], Mapping[str, GroupSummary]]
) -> Figure | None:
    """Mean completion time by team, or by weight: of those with the most jobs, where there are many."""
    sizes: dict[str, int] = {}
    for run in runs:
        for name, group in groups(run).items():
            sizes[name] = max(sizes.get(name, 0), group["jobs"])
    largest = set(sorted(sizes, key=lambda name: -sizes[name])[:MOST_GROUPS])
    names = [name for name in sizes if name in largest]
    figure = go.Figure()
    for run in runs:
        own = groups(run)
        means = [own[name]["jct_seconds"]["mean"] if name in own else None for name in names]
        if any(mean is not None for mean in means):
            figure.add_bar(
                x=[plotly_text(name) for name in names],
                y=[None if mean is None else mean / SECONDS[unit] for mean in means],
                customdata=[[own[name]["completed"], own[name]["jobs"]] if name in own else [0, 0] for name in names],
                hovertemplate=_hover(
                    run, f"%{{x}}: %{{y:.3g}} {unit}<br>%{{customdata[0]}} of %{{customdata[1]}} jobs"
                ),
                marker=_fill(run),
                **_name(run),
            )
    if not figure.data:
        return None
    figure.update_xaxes(type="category")
    figure.update_yaxes(title=f"mean JCT ({UNIT_NAMES[unit]})", rangemode="tozero")
    return figure.update_layout(height=340, barmode="group", bargap=0.3)


def cost_chart(runs: Sequence[ShownRun]) -> Figure | None:
    """Dollars for all jobs, and for each job that completed."""
    priced = [(run, cost) for run in runs if (cost := run.summary["cost_dollars"]) is not None]
    if not priced:
        return None
    figure = make_subplots(rows=1, cols=2, shared_yaxes=True, horizontal_spacing=0.06)
    for run, cost in priced:
        done = int((run.record.jobs.outcome == 0).sum())
        for column, value in ((1, cost), (2, cost / done if done else None)):
            if value is None:
                continue
            figure.add_bar(
                y=[plotly_text(run.label)],
                x=[value],
                orientation="h",
                text=[f"${value:,.0f}" if value >= 100 else f"${value:,.2f}"],
                textposition="auto",
                insidetextfont={"color": "white"},
                cliponaxis=False,
                hovertemplate="%{y}: %{text}<extra></extra>",
                marker=_fill(run),
                showlegend=False,
                row=1,
                col=column,
            )
    figure.update_yaxes(type="category", autorange="reversed", automargin=True, ticksuffix="  ")
    figure.update_xaxes(rangemode="tozero", tickprefix="$", nticks=5)
    figure.update_xaxes(title="all jobs", row=1, col=1)
    figure.update_xaxes(title="for each completed job", row=1, col=2)
    return figure.update_layout(height=110 + 34 * len(priced), bargap=0.25)


def _name(run: ShownRun) -> dict[str, Any]:
    """What makes the runs of a policy one entry of the legend, and names each run where it is pointed at."""
    policy = plotly_text(run.record.policy)
    return {"name": policy, "legendgroup": policy, "showlegend": run.first_of_policy}


def _hover(run: ShownRun, text: str) -> str:
    return f"{text}<extra>{plotly_text(run.label)}</extra>"


def _line(run: ShownRun, width: float) -> dict[str, Any]:
    """Runs over several seeds are drawn thinner: there are more of them, and they belong together."""
    return {"width": width if run.alone else 0.6 * width, "dash": run.dash, "color": run.colour}


def _fill(run: ShownRun) -> dict[str, Any]:
    shape = "" if run.dash == "solid" else "/"
    return {"color": run.colour, "pattern": {"shape": shape, "fillmode": "overlay", "fgcolor": "white", "size": 6}}


def log_ticks(low: float, high: float) -> dict[str, Any]:
    """A logarithmic axis with 1, 2 and 5 of each power of ten, written out; with plotly's ticks where these are few."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
    if sum(low <= tick <= high for tick in ticks) < 2:
        return {"type": "log", "nticks": 6}
    if len(ticks) > 15:
        ticks = [10.0**power for power in powers]
    return {"type": "log", "tickvals": ticks, "ticktext": [f"{tick:g}" for tick in ticks]}


def _panels(titles: Sequence[str], height: int) -> Figure:
    """One panel above the other over the same time."""
    figure = make_subplots(rows=len(titles), cols=1, shared_xaxes=True, vertical_spacing=0.14 / len(titles))
    for row, title in enumerate(titles, start=1):
        figure.update_yaxes(title=title, row=row, col=1)
    return figure.update_layout(height=height * len(titles) + 90)


def _add_steps(figure: Figure, row: int, run: ShownRun, series: Series, unit: str, value: str) -> None:
    if not len(series.values):
        return
    figure.add_scatter(
        x=short(series.edges / SECONDS[unit]),
        y=short(np.append(series.values, series.values[-1])),
        hovertemplate=_hover(run, f"{value} at %{{x:.3g}} {unit}"),
        line={"shape": "hv", **_line(run, 1.75)},
        mode="lines",
        row=row,
        col=1,
        **(_name(run) | {"showlegend": row == 1 and run.first_of_policy}),
    )


def _on_clock(figure: Figure, unit: str) -> Figure:
    figure.update_xaxes(rangemode="tozero")
    rows = sum(1 for _ in figure.select_yaxes())
    figure.update_xaxes(title=f"time since the start ({UNIT_NAMES[unit]})", row=rows, col=1)
    return figure


def _spread(number: int) -> IntArray:
    """Numbers of sorted jobs to draw: all, or evenly spread ones with the first and the last."""
    return np.unique(np.linspace(0, number - 1, min(number, MOST_POINTS)).round().astype(np.int64))


def short(values: FloatArray) -> Any:
    """Half the bytes; a chart shows no more than six digits."""
    return values.astype(np.float32)
