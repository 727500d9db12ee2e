"""The comparison of serving runs for the terminal: 80 columns are enough."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from fairway.report.serving.comparison import ServingComparison, compare_serving
from fairway.report.serving.metrics import ServingSummary
from fairway.report.training.comparison import digits

_ON_THE_PAGE = frozenset({"energy", "p50 latency", "CPU busy", "local"})
"""What the page and the JSON have, and a terminal has no room for."""

_NAME_WIDTH = 12


def serving_table(runs: Sequence[ServingSummary]) -> Table:
    """A row for each scheduler, the best of each column bold; several seeds are averaged, with ±."""
    comparison = compare_serving(runs)
    shown = [
        place
        for place, measure in enumerate(comparison.measures)
        if measure.title not in _ON_THE_PAGE and (measure.title != "workers" or _some_idle(runs))
    ]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=0, caption_justify="left")
    table.add_column("scheduler", overflow="fold", min_width=_NAME_WIDTH)
    for measure in (comparison.measures[place] for place in shown):
        title = comparison.title(measure).replace(" ", "\n").replace("slow-down", "slow-\ndown")
        table.add_column(Text(title), justify="right", no_wrap=True)
    for row in comparison.rows:
        cells = [Text(_in_lines(row.scheduler))]
        for measure, cell in ((comparison.measures[place], row.cells[place]) for place in shown):
            text = Text(comparison.text(measure, cell.mean), style="bold" if cell.best else "")
            if cell.spread is not None:
                text.append(f"\n±{_spread(comparison, measure.title, cell.spread)}", style="not bold dim")
            cells.append(text)
        table.add_row(*cells)
    notes = comparison.notes()
    if notes:
        table.caption = Text("\n".join(notes), style="not italic")
    return table


def _in_lines(scheduler: str) -> str:
    """A name with its options, and with its placer if that is too long for one line, on lines of their own."""
    lines = scheduler.replace(":", "\n:").split("\n")
    return "\n".join(line if len(line) <= _NAME_WIDTH else line.replace("+", "\n+") for line in lines)


def _some_idle(runs: Sequence[ServingSummary]) -> bool:
    return any(run["workers_used"] < run["workers"] for run in runs)


def _spread(comparison: ServingComparison, title: str, spread: float) -> str:
    measure = next(measure for measure in comparison.measures if measure.title == title)
    return comparison.text(measure, spread) if spread else digits(0.0)
