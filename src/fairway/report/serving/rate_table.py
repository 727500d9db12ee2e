"""The rates that schedulers hold, for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from fairway.report.training.comparison import digits


def rate_table(rates: Mapping[str, Sequence[float]], part: float) -> Table:
    """A row for each scheduler: the mean of its seeds, and the rate of each; 0 where none was held."""
    seeds = max(map(len, rates.values()))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, caption_justify="left")
    table.add_column("scheduler", overflow="fold", min_width=12)
    table.add_column(f"held at {100 * part:g} %\n(requests/s)", justify="right")
    if seeds > 1:
        table.add_column("± half of\nthe range", justify="right")
        table.add_column("by seed", justify="right")
    most = max(sum(each) / len(each) for each in rates.values())
    for name, each in rates.items():
        mean = sum(each) / len(each)
        cells = [Text(name), Text(digits(mean), style="bold" if mean == most and len(rates) > 1 else "")]
        if seeds > 1:
            cells.append(Text(digits((max(each) - min(each)) / 2)))
            cells.append(Text(", ".join(map(digits, each))))
        table.add_row(*cells)
    if any(not rate for each in rates.values() for rate in each):
        table.caption = Text("0: not even the lowest rate that was tried was held.", style="not italic")
    return table
