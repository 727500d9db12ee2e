"""One self-contained HTML page about one or more runs: numbers, charts, and what is needed to repeat them.

Here are the heading of the page, the finding, the numbers and the settings; `training_sections` has the charts.
Nothing on the page depends on when it was written, so the same runs give the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fairway.errors import InputError
from fairway.report.looks import border_style
from fairway.report.page_document import Column, NumberCell, NumberRow, Numbers, Origin, Page, render, title_of
from fairway.report.plain_json import plain
from fairway.report.training.charts import clock_unit
from fairway.report.training.comparison import MEASURES, Comparison, Row, compare, digits, shortfalls
from fairway.report.training.record import TrainingRecord
from fairway.report.training.runs import ShownRun, shown_runs
from fairway.report.training.sections import SECTIONS, TrainingShown
from fairway.report.whole_file import write_whole

SIMULATED = Origin(
    "simulated",
    "Everything here is simulated, in virtual time: no accelerator ran any of these jobs. How fast a job runs on each "
    "accelerator type, alone and beside another job, comes from a table of profiles, and every job runs at exactly "
    "that rate; a restart costs what the settings say; machines do not fail.",
)


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
    shown = TrainingShown(runs, compare([run.summary for run in runs]), clock_unit(runs))
    return render(
        Page(
            title=title_of([run.record.policy for run in runs], "policies compared on the same training jobs"),
            about=_about(runs),
            finding=_finding(shown.comparison),
            numbers=_numbers(runs, shown.comparison),
            sections=tuple(section for make in SECTIONS if (section := make(shown)) is not None),
            labels=tuple(run.label for run in runs),
            origin=origin,
            command=command,
            settings=_settings(runs),
        )
    )


def _about(runs: Sequence[ShownRun]) -> str:
    """How many jobs there were, and on what cluster."""
    cluster = runs[0].record.cluster.workers
    machines = ", ".join(f"{count} {name}" for name, count in cluster.items())
    jobs = {len(run.record.jobs) for run in runs}
    counted = {run.summary["jobs"] for run in runs}
    number = "–".join(f"{value}" for value in sorted({min(jobs), max(jobs)}))
    about = f"{number} training jobs on {sum(cluster.values())} accelerators ({machines})"
    return about if counted == jobs else f"{about}; averages are over {max(counted)} of them"


def _finding(comparison: Comparison) -> str:
    """The one sentence that a reader in a hurry should take away."""
    means = {row.policy: mean for row in comparison.rows if (mean := row.cells[0].mean if row.cells else None)}
    if not means or comparison.measures[0] is not MEASURES[0]:
        return "No job completed, so there are no completion times to compare."
    texts = {policy: f"{comparison.text(MEASURES[0], mean)} {comparison.unit}" for policy, mean in means.items()}
    best, *others = sorted(means, key=means.__getitem__)
    if not others:
        return f"A job took {texts[best]} on average from its arrival to its end."
    soonest = f"{best} finishes jobs soonest, in {texts[best]} on average"
    first = comparison.rows[0].policy
    if first in others:
        return f"{soonest}: {digits(means[best] / means[first])} times the {texts[first]} of {first}."
    return f"{soonest}; next is {others[0]} with {texts[others[0]]}."


def _numbers(runs: Sequence[ShownRun], comparison: Comparison) -> Numbers:
    """The comparison in print; where there are several policies, the second column compares each with the first."""
    looks = {run.record.policy: run for run in runs}
    several = len(comparison.rows) > 1
    columns = [Column(comparison.title(measure), measure.meaning) for measure in comparison.measures]
    if several:
        columns.insert(1, Column("to first", "mean JCT over that of the first policy"))
    notes = shortfalls(comparison)
    if comparison.seeds > 1:
        notes.insert(0, f"Means over {comparison.seeds} runs of each policy, ± half of their range.")
    rows = [
        NumberRow(
            row.policy,
            looks[row.policy].colour,
            border_style(looks[row.policy].dash),
            _cells(comparison, row, several),
        )
        for row in comparison.rows
    ]
    return Numbers("policy", tuple(columns), tuple(rows), tuple(notes))


def _cells(comparison: Comparison, row: Row, several: bool) -> tuple[NumberCell, ...]:
    cells = [
        NumberCell(comparison.text(measure, cell.mean), comparison.spread(measure, cell), cell.best)
        for measure, cell in zip(comparison.measures, row.cells, strict=True)
    ]
    if several:
        cells.insert(1, NumberCell("" if row.ratio is None else f"{digits(row.ratio)}×"))
    return tuple(cells)


def _settings(runs: Sequence[ShownRun]) -> dict[str, Any]:
    """What repeats the runs: what they have in common once, and of each what it has for itself."""
    settings = [plain(run.record.settings) for run in runs]
    common = {
        key: value for key, value in settings[0].items() if all(key in own and own[key] == value for own in settings)
    }
    return {
        "cluster": plain(runs[0].record.cluster),
        "settings": common,
        "runs": [
            {"policy": run.record.policy, **{key: value for key, value in own.items() if key not in common}}
            for run, own in zip(runs, settings, strict=True)
        ],
    }
