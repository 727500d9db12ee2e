"""One self-contained HTML page about one or more serving runs: numbers, charts, and what is needed to repeat them.

Everything that comes from files or the command line is escaped. Nothing in it depends on when it was written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from fairway.errors import InputError
from fairway.report.page_document import document, parts
from fairway.report.plain_json import plain
from fairway.report.serving_charts import (
    ServingShown,
    cache_chart,
    latency_curves,
    queue_chart,
    shown_serving,
    slowdown_curves,
    staleness_chart,
)
from fairway.report.serving_comparison import ServingComparison, compare_serving
from fairway.report.serving_record import ServingRecord
from fairway.report.serving_timeline import MOST_WORKERS, drawn_until, timeline
from fairway.report.training_charts import Figure
from fairway.report.training_comparison import digits
from fairway.report.whole_file import write_whole

_SECTIONS: Mapping[str, tuple[str, str, str]] = {
    "latency": (
        "How long requests took",
        "latency",
        "Further left and higher is better: the part of the requests that were answered within a time after their "
        "arrival, for each workflow.",
    ),
    "slowdown": (
        "How much longer than necessary",
        "slow-down",
        "Latency over the lower bound of the workflow: its longest chain of stages, with no waiting, no transfers and "
        "nothing to load. 1 is as good as it gets.",
    ),
    "cache": (
        "How tasks found their models",
        "memory",
        "In memory; on their way, since they were asked for before the task had its turn; or still to be fetched.",
    ),
    "queue": ("How many tasks waited", "queues", "A queue that keeps growing says that requests come too fast."),
    "staleness": (
        "How wrong planners were about the others",
        "staleness",
        "What the planner of each request believed of the other workers against the truth: the mean distance of a "
        "load, and the part of all models and workers that it had wrong.",
    ),
}


def write_serving_page(records: Sequence[ServingRecord], path: str | Path, *, command: str) -> None:
    """Write the page about some runs; `command` repeats them."""
    write_whole(path, serving_page(records, command=command))


def serving_page(records: Sequence[ServingRecord], *, command: str) -> str:
    """The page's HTML."""
    if not records:
        raise InputError("report: no runs given, expected at least one")
    runs = shown_serving(records)
    figures: dict[str, Figure | None] = {
        "latency": latency_curves(runs),
        "slowdown": slowdown_curves(runs),
        "cache": cache_chart(runs),
        "queue": queue_chart(runs),
        "staleness": staleness_chart(runs),
    }
    shown = {name: figure for name, figure in figures.items() if figure is not None}
    details = [{"timeline": parts(timeline(run))} for run in runs]
    body = [
        _header(runs, compare_serving([run.summary for run in runs]), list(shown)),
        *(_section(name) for name in shown),
        _details(runs, details),
        _settings(runs, command),
    ]
    data = {"figures": {name: parts(figure) for name, figure in shown.items()}, "details": details}
    return document(_title(runs), "\n".join(body), data)


def _title(runs: Sequence[ServingShown]) -> str:
    names = list(dict.fromkeys(run.record.scheduler for run in runs))
    if len(names) > 3:
        return f"{len(names)} schedulers compared on the same requests"
    return " against ".join(names) if len(names) < 3 else f"{names[0]}, {names[1]} and {names[2]}"


def _header(runs: Sequence[ServingShown], comparison: ServingComparison, shown: Sequence[str]) -> str:
    first = runs[0]
    counted = int(first.record.requests.counted.sum())
    about = (
        f"{len(first.record.requests)} requests for {len(first.record.workflows)} workflows on "
        f"{len(first.record.workers.names)} workers; averages are over {counted} of them"
    )
    links = "".join(f'<a href="#about-{name}">{_SECTIONS[name][1]}</a>' for name in shown)
    links += '<a href="#about-timeline">workers</a><a href="#about-settings">settings</a>'
    looks = {run.record.scheduler: (run.colour, run.dash) for run in runs}
    return (
        f'<header><h1>{escape(_title(runs))}<span class="badge">simulated</span></h1>'
        f'<p class="quiet">{escape(about)}.</p><p class="finding">{escape(_finding(comparison))}</p>'
        f"{comparison_table(looks, comparison)}<nav>{links}</nav></header>"
    )


def _finding(comparison: ServingComparison) -> str:
    """The one sentence that a reader in a hurry should take away."""
    means = {row.scheduler: mean for row in comparison.rows if (mean := row.cells[0].mean if row.cells else None)}
    if not means:
        return "No request was answered, so there is nothing to compare."
    best, *others = sorted(means, key=means.__getitem__)
    told = f"{best} answers in {digits(means[best])} times the time that a request needs at least, on average"
    if not others:
        return f"{told}."
    worst = others[-1]
    return f"{told}; {worst} in {digits(means[worst])} times."


def comparison_table(looks: Mapping[str, tuple[str, str]], comparison: ServingComparison) -> str:
    """The numbers side by side, and what they leave out; `looks` has the colour and the dash of each scheduler."""
    head = ["<th scope=col>scheduler</th>"]
    for measure in comparison.measures:
        head.append(f'<th scope=col title="{escape(measure.meaning)}">{escape(comparison.title(measure))}</th>')
    lines = []
    for row in comparison.rows:
        colour, dash = looks[row.scheduler]
        style = {"solid": "solid", "dot": "dotted"}.get(dash, "dashed")
        cells = [
            f"<td{' class=best' if cell.best else ''}>{comparison.text(measure, cell.mean)}"
            f"{f'<small>±{comparison.text(measure, cell.spread)}</small>' if cell.spread is not None else ''}</td>"
            for measure, cell in zip(comparison.measures, row.cells, strict=True)
        ]
        name = f'<i style="border-top-color:{colour};border-top-style:{style}"></i>{escape(row.scheduler)}'
        lines.append(f"<tr><th scope=row>{name}</th>{''.join(cells)}</tr>")
    notes = "".join(f"<li>{escape(note)}</li>" for note in comparison.notes())
    return (
        f'<div class="scroll"><table id="numbers"><thead><tr>{"".join(head)}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>{f'<ul class=notes>{notes}</ul>' if notes else ''}"
    )


def _section(name: str) -> str:
    heading, _, meaning = _SECTIONS[name]
    return (
        f'<section id="about-{name}"><h2>{heading}</h2><p>{meaning}</p><div class="chart" id="{name}"></div></section>'
    )


def _details(runs: Sequence[ServingShown], details: Sequence[Mapping[str, Any]]) -> str:
    heading = "What each worker did"
    if not any(detail["timeline"] for detail in details):
        empty = '<p class="empty">The tasks of these runs were not kept, so nothing can be shown here.</p>'
        return f'<section id="about-timeline"><h2>{heading}</h2>{empty}</section>'
    buttons = "".join(f'<button type="button" aria-pressed="false">{escape(run.label)}</button>' for run in runs)
    choose = f'<div class="choices" id="runs" role="group" aria-label="run">{buttons}</div>' if len(runs) > 1 else ""
    notes = []
    if len(runs[0].record.workers.names) > MOST_WORKERS:
        notes.append(f"the first {MOST_WORKERS} workers")
    if any(drawn_until(run) < run.record.end_seconds for run in runs):
        notes.append(f"the first {digits(min(map(drawn_until, runs)))} s")
    note = f" To keep the page small, only {' and '.join(notes)} are drawn." if notes else ""
    return (
        f'<section id="about-timeline"><h2>{heading}</h2><p>Each row is a worker: the tasks that it ran, coloured by '
        "workflow; above them, grey, those that waited, darker where there were more; below them, thin, the models "
        "that it loaded, and crosses where it gave one up. Drag to move; "
        f"the buttons of the chart zoom; point at something to read it.{note}</p>{choose}"
        '<div class="chart" id="timeline"></div>'
        '<p class="empty" id="no-timeline" hidden>No task ran in this run.</p></section>'
    )


def _settings(runs: Sequence[ServingShown], command: str) -> str:
    told = {
        "workers": [
            {"name": name, "accelerator": accelerator}
            for name, accelerator in zip(
                runs[0].record.workers.names[:MOST_WORKERS],
                runs[0].record.workers.accelerators[:MOST_WORKERS],
                strict=True,
            )
        ],
        "workflows": plain(runs[0].record.workflows),
        "runs": [plain(run.record.settings) for run in runs],
    }
    text = json.dumps(told, indent=2, ensure_ascii=False, allow_nan=False)
    return (
        '<section id="about-settings"><h2>How to repeat it</h2><p>Everything here is simulated, in virtual time: no '
        "accelerator ran any of these tasks. Run times, sizes and speeds are those of the scenario; energy is counted "
        "from the power of an accelerator that does nothing, runs a task, or copies.</p>"
        f'<pre class="command">{escape(command)}</pre>'
        f"<details><summary>All settings as JSON</summary><pre>{escape(text)}</pre></details></section>"
    )
