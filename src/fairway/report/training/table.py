"""The comparison of runs for the terminal: 80 columns are enough."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from fairway.report.training.comparison import Comparison, Row, compare, digits, shortfalls
from fairway.report.training.metrics import RunSummary

_NARROW = {
    "mean JCT": "mean\nJCT",
    "makespan": "make-\nspan",
    "preemptions per job": "preempt\n/job",
    "mean ρ": "mean\nρ",
}


def comparison_table(runs: Sequence[RunSummary]) -> Table:
    """A row for each policy, the best of each column bold; several seeds of a policy are averaged, with ±."""
    comparison = compare(runs)
    several = len(comparison.rows) > 1
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=0, caption_justify="left")
    table.add_column("policy", overflow="fold", min_width=16)
    for measure in comparison.measures:
        title = comparison.title(measure)
        name = measure.title
        title = title.replace(name, _NARROW[name]) if name in _NARROW else title.replace(" (", "\n(")
        table.add_column(Text(title), justify="right", no_wrap=True)
        if several and measure is comparison.measures[0]:
            table.add_column("to\nfirst", justify="right", no_wrap=True)
    for row in comparison.rows:
        table.add_row(*_cells(comparison, row, several))
    notes = shortfalls(comparison)
    if comparison.seeds > 1:
        notes.insert(0, f"Means over {comparison.seeds} runs of a policy, ± half of their range.")
    if notes:
        table.caption = Text("\n".join(notes), style="not italic")
    return table


def _cells(comparison: Comparison, row: Row, several: bool) -> list[Text]:
    # Options of a policy may go to the next line, its name should not be cut.
    cells = [Text(row.policy.replace(":", "\n:"))]
    for measure, cell in zip(comparison.measures, row.cells, strict=True):
        text = Text(comparison.text(measure, cell.mean), style="bold" if cell.best else "")
        if cell.spread is not None:
            text.append(f"\n{comparison.spread(measure, cell)}", style="not bold dim")
        cells.append(text)
        if several and measure is comparison.measures[0]:
            cells.append(Text("" if row.ratio is None else digits(row.ratio)))
    return cells
