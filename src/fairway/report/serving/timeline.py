"""What each worker did in one serving run: the tasks that it ran, the models that it loaded and gave up.

A batch is one stretch. Where tasks run side by side on their shares of a worker, its row has a lane for each. A chart
shows a bounded number of workers and stretches, so what does not fit is left out from the end, and said.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from fairway.report.serving.charts import ServingShown
from fairway.report.serving.record import FloatArray, RunColumns
from fairway.report.training.charts import Figure, plotly_text, short
from fairway.report.training.details import JOB_COLOURS, OTHER_COLOUR

MOST_WORKERS = 48
MOST_STRETCHES = 6000
WAIT_COLOUR = "#888888"
LOAD_COLOUR = "#aa3377"
EVICTION_COLOUR = "#bb0000"


def timeline(run: ServingShown) -> Figure | None:
    """A row for each worker: tasks coloured by workflow, those that wait above, loads below, evictions as marks."""
    record = run.record
    tasks, copies = record.runs, record.copies
    if not len(tasks):
        return None
    workers = min(len(record.workers.names), MOST_WORKERS)
    until = drawn_until(run)
    figure = go.Figure()
    workflow = record.requests.workflow[tasks.request]
    here = (tasks.worker < workers) & (tasks.start < until)
    lead = here & (tasks.member == 0)
    lane, lanes = _lanes(tasks, np.flatnonzero(lead))
    for number, facts in enumerate(record.workflows):
        mine = np.flatnonzero(lead & (workflow == number))
        if not len(mine):
            continue
        labels = [
            f"{plotly_text(facts.name)}, {plotly_text(facts.stages[stage])}, request {request}{together}"
            for stage, request, together in zip(
                tasks.stage[mine].tolist(), tasks.request[mine].tolist(), _together(tasks, mine), strict=True
            )
        ]
        colour = JOB_COLOURS[number] if number < len(JOB_COLOURS) else OTHER_COLOUR
        x, y, text = _stretches(tasks.start[mine], tasks.end[mine], tasks.worker[mine] + lane[mine], labels)
        _add(figure, x, y, text, plotly_text(facts.name), colour, max(8.0 / lanes, 2.0))
    waits = np.flatnonzero(here & (tasks.turn > tasks.queued))
    if len(waits):
        labels = [f"request {request} waits" for request in tasks.request[waits].tolist()]
        x, y, text = _stretches(tasks.queued[waits], tasks.turn[waits], tasks.worker[waits] - 0.36, labels)
        _add(figure, x, y, text, "tasks waiting", WAIT_COLOUR, 4.0)
        figure.data[-1].opacity = 0.3  # where several wait, their lines add up
    loads = np.flatnonzero(~copies.evicted & (copies.worker < workers) & (copies.start < until))
    if len(loads):
        labels = [f"loads {plotly_text(record.models[model])}" for model in copies.model[loads].tolist()]
        x, y, text = _stretches(copies.start[loads], copies.end[loads], copies.worker[loads] + 0.33, labels)
        _add(figure, x, y, text, "loads a model", LOAD_COLOUR, 3.0)
    gone = np.flatnonzero(copies.evicted & (copies.worker < workers) & (copies.start < until))
    if len(gone):
        figure.add_scatter(
            x=short(copies.start[gone]),
            y=(copies.worker[gone] + 0.33).tolist(),
            mode="markers",
            marker={"symbol": "x", "size": 6, "color": EVICTION_COLOUR},
            text=[f"gives up {plotly_text(record.models[model])}" for model in copies.model[gone].tolist()],
            hovertemplate="%{text} at %{x:.4g} s<extra></extra>",
            name="gives up a model",
        )
    span = min(until, 60.0 * max(until / max(len(tasks) / workers, 1.0), 1e-9))
    figure.update_xaxes(title="time since the start (seconds)", range=[0, span])
    names = [plotly_text(name) for name in record.workers.names[:workers]]
    figure.update_yaxes(
        tickvals=list(range(workers)), ticktext=names, range=[workers - 0.3, -0.7], showgrid=False, fixedrange=True
    )
    return figure.update_layout(height=130 + (19 + 3 * lanes) * workers, dragmode="pan", hovermode="closest")


def drawn_until(run: ServingShown) -> float:
    """When the chart of a run ends: with it, or before if not all of it fits."""
    tasks = run.record.runs
    starts = np.sort(tasks.start[tasks.worker < MOST_WORKERS])
    return float(starts[MOST_STRETCHES]) if len(starts) > MOST_STRETCHES else run.record.end_seconds


def side_by_side(run: ServingShown) -> bool:
    """Whether workers ran several tasks at the same time."""
    tasks = run.record.runs
    drawn = (tasks.worker < MOST_WORKERS) & (tasks.start < drawn_until(run)) & (tasks.member == 0)
    return _lanes(tasks, np.flatnonzero(drawn))[1] > 1


def _lanes(tasks: RunColumns, which: npt.NDArray[np.intp]) -> tuple[FloatArray, int]:
    """How far below the middle of its row each task lies, and how many run beside each other at most.

    A task has the first lane of its worker that is free when it starts.
    """
    lane = np.zeros(len(tasks), np.int64)
    until: dict[int, list[float]] = {}
    for task in which[np.argsort(tasks.start[which], kind="stable")].tolist():
        ends = until.setdefault(int(tasks.worker[task]), [])
        start, end = float(tasks.start[task]), float(tasks.end[task])
        free = next((place for place, before in enumerate(ends) if before <= start + 1e-9), len(ends))
        ends[free : free + 1] = [end]
        lane[task] = free
    lanes = max(map(len, until.values()), default=1)
    return np.asarray(0.5 * lane / max(lanes - 1, 1) - (0.25 if lanes > 1 else 0.0)), lanes


def _together(tasks: RunColumns, which: npt.NDArray[np.intp]) -> list[str]:
    """How many others each task ran with, where there were any."""
    return [f" in a batch of {size}" if size > 1 else "" for size in tasks.batch[which].tolist()]


def _stretches(
    start: FloatArray, end: FloatArray, row: npt.NDArray[Any], labels: list[str]
) -> tuple[FloatArray, FloatArray, list[str]]:
    """Lines with gaps between them, and the text of each."""
    x, y = np.full(3 * len(start), np.nan), np.full(3 * len(start), np.nan)
    x[0::3], x[1::3] = start, end
    y[0::3] = y[1::3] = row
    return x, y, [text for label in labels for text in (label, label, "")]


def _add(figure: Figure, x: FloatArray, y: FloatArray, text: list[str], name: str, colour: str, width: float) -> None:
    figure.add_scatter(
        x=[None if np.isnan(value) else round(value, 4) for value in x.tolist()],
        y=[None if np.isnan(value) else value for value in y.tolist()],
        text=text,
        mode="lines",
        line={"color": colour, "width": width},
        name=name,
        hovertemplate="%{text}<br>%{x:.4g} s<extra></extra>",
    )
