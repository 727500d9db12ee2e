"""Prints what `fairway profile` has measured as tables."""

from __future__ import annotations

from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from fairway.live.serving.application.measurements import MeasuredApplication


def print_profile(measured: MeasuredApplication, output: Path) -> None:
    """A row for each stage with its times, a row for each model with what it needs, and where the profile is."""
    console = Console(highlight=False)
    for name, stages in measured.stages.items():
        table = Table(box=SIMPLE_HEAD, title=f"{name}: milliseconds for a batch", title_justify="left")
        table.add_column("stage")
        table.add_column("model")
        table.add_column("threads", justify="right")
        some = next(iter(stages.values()))
        batches = sorted({batch for times in some.seconds.values() for batch in times})
        for batch in batches:
            table.add_column(f"of {batch}", justify="right")
        table.add_column("output", justify="right")
        served = measured.application.workflows[name]
        for stage in served.workflow.stages:
            found = stages[stage.name]
            first = next(iter(found.seconds))
            ways = {str(threads): times for threads, times in found.seconds.items()}
            ways |= {f"{part / 1000:g} of {first}": times for part, times in found.on_parts.items()}
            for number, (threads, times) in enumerate(ways.items()):
                shown = [f"{1000 * times[batch]:.4g}" if batch in times else "" for batch in batches]
                names = (stage.name, stage.models[0] if stage.models else "") if number == 0 else ("", "")
                table.add_row(*names, threads, *shown, _size(found.output_bytes) if number == 0 else "")
        console.print(table)
    if measured.models:
        table = Table(box=SIMPLE_HEAD, title="models", title_justify="left")
        table.add_column("model")
        for column in ("memory", "loads in", "needs to run", "left behind"):
            table.add_column(column, justify="right")
        for name, model in measured.models.items():
            working = "" if model.working_bytes is None else _size(model.working_bytes)
            table.add_row(
                name, _size(model.bytes), f"{1000 * model.load_seconds:.4g} ms", working, _size(model.left_bytes)
            )
        console.print(table)
    console.print(f"Written to {output}", markup=False, soft_wrap=True)


def _size(count: int) -> str:
    if count < 1000:
        return f"{count} B"
    return f"{count / 1e3:.3g} kB" if count < 1e6 else f"{count / 1e6:.4g} MB"
