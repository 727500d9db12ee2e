"""One self-contained HTML page about one or more serving runs: numbers, charts, and what is needed to repeat them.

Here are the heading of the page, the finding, the numbers and the settings; `serving_sections` has the charts.
Nothing on the page depends on when it was written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fairway.errors import InputError
from fairway.report.looks import border_style
from fairway.report.page_document import (
    Column,
    NumberCell,
    NumberRow,
    Numbers,
    Origin,
    Page,
    render,
    title_of,
)
from fairway.report.plain_json import plain
from fairway.report.serving.charts import ServingShown, shown_serving
from fairway.report.serving.comparison import ServingComparison, compare_serving
from fairway.report.serving.record import ServingRecord
from fairway.report.serving.sections import SECTIONS
from fairway.report.serving.timeline import MOST_WORKERS
from fairway.report.training.comparison import digits
from fairway.report.whole_file import write_whole

SIMULATED = Origin(
    "simulated",
    "Everything here is simulated, in virtual time: no accelerator ran any of these tasks. Run times, sizes and speeds "
    "are those of the scenario, which may be synthetic; energy is counted from the power of an accelerator that does "
    "nothing, runs a task, or copies.",
)


def write_serving_page(records: Sequence[ServingRecord], path: str | Path, *, command: str) -> None:
    """Write the page about some runs; `command` repeats them."""
    write_whole(path, serving_page(records, command=command))


def serving_page(records: Sequence[ServingRecord], *, command: str) -> str:
    """The page's HTML."""
    if not records:
        raise InputError("report: no runs given, expected at least one")
    runs = shown_serving(records)
    comparison = compare_serving([run.summary for run in runs])
    looks = {run.record.scheduler: (run.colour, run.dash) for run in runs}
    return render(
        Page(
            title=title_of([run.record.scheduler for run in runs], "schedulers compared on the same requests"),
            about=_about(runs[0].record),
            finding=_finding(comparison),
            numbers=_numbers(looks, comparison),
            sections=tuple(section for make in SECTIONS if (section := make(runs)) is not None),
            labels=tuple(run.label for run in runs),
            origin=SIMULATED,
            command=command,
            settings=_settings(runs),
        )
    )


def _about(record: ServingRecord) -> str:
    """How many requests there were, and on how many workers."""
    return (
        f"{len(record.requests)} requests for {len(record.workflows)} workflows on {len(record.workers.names)} "
        f"workers{_shape(record)}; averages are over {int(record.requests.counted.sum())} of them"
    )


def _shape(record: ServingRecord) -> str:
    """What a worker has, where tasks run on parts of it."""
    shapes = set(zip(record.workers.cpus.tolist(), record.workers.slices.tolist(), strict=True))
    if len(shapes) != 1 or shapes == {(1, 1)}:
        return ""
    ((cpus, slices),) = shapes
    return f" of {cpus} CPUs and {slices} GPU slices"


def _finding(comparison: ServingComparison) -> str:
    """The one sentence that a reader in a hurry should take away: about deadlines where a window counts."""
    if any(run["window"] is not None for row in comparison.rows for run in row.runs):
        hits = _means(comparison, "in time")
        if not hits:
            return "No request counts, so there is nothing to compare."
        best, *others = sorted(hits, key=hits.__getitem__, reverse=True)
        most = f"{best} answers {digits(100 * hits[best])} % of the requests in time"
        return f"{most}; {others[-1]} {digits(100 * hits[others[-1]])} %." if others else f"{most}."
    means = _means(comparison, "mean slow-down")
    if not means:
        return "No request was answered, so there is nothing to compare."
    best, *others = sorted(means, key=means.__getitem__)
    fastest = f"{best} answers in {digits(means[best])} times the time that a request needs at least, on average"
    return f"{fastest}; {others[-1]} in {digits(means[others[-1]])} times." if others else f"{fastest}."


def _means(comparison: ServingComparison, title: str) -> dict[str, float]:
    """By scheduler, the number of a column, where there is one."""
    place = next((place for place, each in enumerate(comparison.measures) if each.title == title), None)
    if place is None:
        return {}
    means = {row.scheduler: row.cells[place].mean for row in comparison.rows}
    return {name: mean for name, mean in means.items() if mean is not None}


def _numbers(looks: Mapping[str, tuple[str, str]], comparison: ServingComparison) -> Numbers:
    """The comparison in print."""
    rows = []
    for row in comparison.rows:
        colour, dash = looks[row.scheduler]
        cells = tuple(
            NumberCell(
                comparison.text(measure, cell.mean),
                "" if cell.spread is None else f"±{comparison.text(measure, cell.spread)}",
                cell.best,
            )
            for measure, cell in zip(comparison.measures, row.cells, strict=True)
        )
        rows.append(NumberRow(row.scheduler, colour, border_style(dash), cells))
    columns = tuple(Column(comparison.title(measure), measure.meaning) for measure in comparison.measures)
    return Numbers("scheduler", columns, tuple(rows), tuple(comparison.notes()))


def _settings(runs: Sequence[ServingShown]) -> dict[str, Any]:
    """What repeats the runs: the workers, the workflows and the options of each."""
    workers = runs[0].record.workers
    return {
        "workers": [
            {"name": name, "accelerator": accelerator}
            for name, accelerator in zip(workers.names[:MOST_WORKERS], workers.accelerators[:MOST_WORKERS], strict=True)
        ],
        "workflows": plain(runs[0].record.workflows),
        "runs": [plain(run.record.settings) for run in runs],
    }
