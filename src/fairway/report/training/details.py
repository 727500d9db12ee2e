"""The charts of a single run that a page shows one at a time: the Gantt chart's data and shares over time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from fairway.report.intervals import Series
from fairway.report.training.charts import LINE_AT_ONE, UNIT_NAMES, Figure, plotly_text, short
from fairway.report.training.comparison import SECONDS
from fairway.report.training.gantt import gantt
from fairway.report.training.metrics import teams_of
from fairway.report.training.runs import ShownRun
from fairway.report.training.series import end_of
from fairway.report.training.shares import NO_TEAM, ShareBand, TeamShare, share_band, team_shares

TEAM_COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377")
"""Paul Tol's bright scheme."""

JOB_COLOURS = ("#77aadd", "#ee8866", "#bbcc33", "#ffaabb", "#44bb99", "#eedd88", "#99ddff", "#aaaa00")
"""Paul Tol's light scheme, in an order in which neighbours differ; jobs take them in turn."""

OTHER_COLOUR = "#999999"
"""Of jobs without a team, and of teams beyond those that have a colour."""

HIGHEST_RATIO = 4.0
"""Shares above this multiple of the fair share are cut off: what matters is near 1."""


def coloured_teams(run: ShownRun) -> list[str]:
    """The teams with the most jobs, as many as there are colours, in order of arrival."""
    jobs = Counter(run.record.jobs.entities)
    teams = teams_of(run.record)
    most = set(sorted(teams, key=lambda team: -jobs[team])[: len(TEAM_COLOURS)])
    return [team for team in teams if team in most]


def gantt_data(run: ShownRun, unit: str, most: int) -> dict[str, Any]:
    """What the page's script draws a Gantt chart from; times are in seconds.

    `jobs` has id, type, team and workers of the jobs that `job` and `partner` number, `colour` the place of each job's
    colour among `colours`.
    """
    record = run.record
    chart = gantt(record, most)
    jobs = record.jobs
    numbers = np.unique(np.concatenate([chart.job, chart.partner[chart.partner >= 0]]))
    teams = coloured_teams(run)
    by_team = bool(teams)
    places = {team: place for place, team in enumerate(teams)}
    others = any(team not in places for team in jobs.entities)
    paired = bool((chart.partner >= 0).any())
    decimals = 0 if chart.until >= 36000 else 2
    return {
        "rows": [
            {"name": block.accelerator, "workers": block.workers, "first": block.first, "shown": block.shown}
            for block in chart.rows
            if block.shown
        ],
        "row": chart.row.tolist(),
        "start": _rounded(chart.start, decimals),
        "end": _rounded(chart.end, decimals),
        "job": np.searchsorted(numbers, chart.job).tolist(),
        "partner": np.where(chart.partner >= 0, np.searchsorted(numbers, chart.partner), -1).tolist()
        if paired
        else None,
        "jobs": [
            [jobs.ids[k], jobs.job_types[k], jobs.entities[k], jobs.scale_factor[k].item()] for k in numbers.tolist()
        ],
        "colour": [
            places.get(jobs.entities[k] or "", len(teams)) if by_team else k % len(JOB_COLOURS)
            for k in numbers.tolist()
        ],
        "colours": [*TEAM_COLOURS[: len(teams)], OTHER_COLOUR] if by_team else list(JOB_COLOURS),
        "legend": [*teams, "others"] if by_team and others else teams,
        "until": chart.until,
        "end_of_run": end_of(record),
        "complete": chart.complete,
        "unit": unit,
        "unit_seconds": SECONDS[unit],
        "unit_name": UNIT_NAMES[unit],
    }


def share_charts(runs: Sequence[ShownRun], unit: str) -> list[Figure | None]:
    """For each run the shares of teams, or of jobs where there are no teams; None where no leases are known.

    All have the same height of axis, so that one can be compared with the next.
    """
    charts: list[Figure | None] = []
    highest = 0.0
    for run in runs:
        shares = team_shares(run.record)
        band = None if shares else share_band(run.record)
        if shares:
            highest = max(highest, *(float(max(share.held.values.max(), share.fair.values.max())) for share in shares))
            charts.append(_team_chart(shares, coloured_teams(run), unit))
        elif band is not None:
            highest = max(highest, min(float(np.nanmax(band.p95, initial=1.2)), HIGHEST_RATIO))
            charts.append(_band_chart(run, band, unit))
        else:
            charts.append(None)
    for chart in charts:
        if chart is not None:
            chart.update_yaxes(range=[0, 1.08 * highest])
    return charts


def _team_chart(shares: list[TeamShare], teams: list[str], unit: str) -> Figure:
    figure = go.Figure()
    figure.add_scatter(x=[None], y=[None], mode="lines", name="fair share", line={"dash": "dash", "color": "#888888"})
    for share in shares:
        if share.team not in teams and share.team != NO_TEAM:
            continue
        colour = TEAM_COLOURS[teams.index(share.team)] if share.team in teams else OTHER_COLOUR
        name = {"name": plotly_text(share.team), "legendgroup": plotly_text(share.team)}
        for series, dash, width in ((share.held, "solid", 2.5), (share.fair, "dash", 1.5)):
            what = "held" if dash == "solid" else "fair"
            figure.add_scatter(
                **_steps(series, unit),
                mode="lines",
                line={"shape": "hv", "width": width, "dash": dash, "color": colour},
                hovertemplate=f"{what}: %{{y:.1%}} of all workers",
                showlegend=dash == "solid",
                **name,
            )
    figure.update_yaxes(title="part of all workers", tickformat=".0%")
    figure.update_xaxes(title=f"time since the start ({UNIT_NAMES[unit]})", rangemode="tozero")
    return figure.update_layout(height=400, hovermode="x unified")


def _band_chart(run: ShownRun, band: ShareBand, unit: str) -> Figure:
    figure = go.Figure()
    x = _middles(band.edges, unit)
    colour = run.colour
    mode = "lines" if len(x) > 2 else "lines+markers"
    hidden = {"color": colour, "width": 0.5}
    figure.add_scatter(x=x, y=short(band.p95), mode=mode, line=hidden, showlegend=False, hovertemplate="p95: %{y:.2f}")
    figure.add_scatter(
        x=x,
        y=short(band.p5),
        mode=mode,
        line=hidden,
        fill="tonexty",
        fillcolor=f"rgba({int(colour[1:3], 16)},{int(colour[3:5], 16)},{int(colour[5:], 16)},0.22)",
        name="90 % of jobs",
        hovertemplate="p5: %{y:.2f}",
    )
    figure.add_scatter(
        x=x,
        y=short(band.p50),
        customdata=band.jobs.tolist(),
        mode=mode,
        line={"color": colour, "width": 2.5},
        name="median job",
        hovertemplate="median: %{y:.2f} times its fair share<br>%{customdata} jobs in the system",
    )
    figure.add_scatter(
        x=[None], y=[None], mode="lines", name="fair share", line={"dash": "dash", "color": "#888888", "width": 1.5}
    )
    figure.update_yaxes(title="time held / fair time")
    figure.update_xaxes(title=f"time since the start ({UNIT_NAMES[unit]})", rangemode="tozero")
    return figure.update_layout(height=360, hovermode="x unified", shapes=[LINE_AT_ONE])


def _steps(series: Series, unit: str) -> dict[str, Any]:
    values = np.append(series.values, series.values[-1])
    return {"x": short(series.edges / SECONDS[unit]), "y": short(values)}


def _middles(edges: Any, unit: str) -> Any:
    return short((edges[:-1] + edges[1:]) / (2 * SECONDS[unit]))


def _rounded(values: Any, decimals: int) -> list[float]:
    rounded = np.round(values, decimals)
    return (rounded.astype(np.int64) if decimals == 0 else rounded).tolist()  # type: ignore[no-any-return]
