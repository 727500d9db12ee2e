"""One self-contained HTML page about one or more runs: numbers, charts, and what is needed to repeat them.

Everything that comes from files or the command line is escaped. Nothing in it depends on when it was written, so the
same runs give the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fairway.errors import InputError
from fairway.report.page_document import document, parts
from fairway.report.training_charts import (
    Figure,
    clock_unit,
    completion_curves,
    cost_chart,
    fairness_curves,
    group_chart,
    queue_chart,
    utilization_chart,
)
from fairway.report.training_comparison import compare
from fairway.report.training_details import gantt_data, share_charts
from fairway.report.training_record import TrainingRecord
from fairway.report.training_runs import shown_runs
from fairway.report.training_sections import (
    SIMULATED,
    Origin,
    details_section,
    header,
    section,
    settings_section,
    title,
)
from fairway.report.whole_file import write_whole

MOST_STRETCHES = 25_000
"""Of one Gantt chart."""

MOST_STRETCHES_TOGETHER = 120_000
"""Of all Gantt charts of a page: about 25 bytes each."""


def write_page(
    records: Sequence[TrainingRecord], path: str | Path, *, command: str, origin: Origin = SIMULATED
) -> None:
    """Write the page about some runs; `command` repeats them, `origin` says how they came about."""
    write_whole(path, page(records, command=command, origin=origin))


def page(records: Sequence[TrainingRecord], *, command: str, origin: Origin = SIMULATED) -> str:
    """The page's HTML."""
    if not records:
        raise InputError("report: no runs given, expected at least one")
    runs = shown_runs(records)
    comparison = compare([run.summary for run in runs])
    unit = clock_unit(runs)
    figures: dict[str, Figure | None] = {
        "completion": completion_curves(runs, comparison.unit),
        "teams": group_chart(runs, comparison.unit, lambda run: run.summary["teams"]),
        "weights": group_chart(runs, comparison.unit, lambda run: run.summary["weights"]),
        "fairness": fairness_curves(runs),
        "queue": queue_chart(runs, unit),
        "utilization": utilization_chart(runs, unit),
        "cost": cost_chart(runs),
    }
    clock = "h" if unit == "d" else unit  # a Gantt chart shows hours of a run of days
    most = min(MOST_STRETCHES, MOST_STRETCHES_TOGETHER // len(runs))
    shares = share_charts(runs, unit)
    details = [
        {"gantt": gantt_data(run, clock, most) if len(run.record.leases) else None, "shares": parts(share)}
        for run, share in zip(runs, shares, strict=True)
    ]
    data = {"figures": {name: parts(figure) for name, figure in figures.items() if figure}, "details": details}
    shown = [name for name in figures if figures[name] or name not in {"teams", "weights"}]
    body = [
        header(runs, comparison, origin, shown),
        *(section(name, drawn=bool(figures[name])) for name in shown),
        details_section(runs, details),
        settings_section(runs, command, origin),
    ]
    return document(title(runs), "\n".join(body), data)
