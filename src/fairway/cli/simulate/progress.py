"""Progress bars for runs that take a while: one per run that is under way, on standard error, on a terminal only."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from fairway.sim.comparison import Watcher

_SECONDS_BEFORE_BARS = 1.0
"""A run that is over sooner needs no bar."""


def _jobs_by_day(now: float) -> str:
    return f"jobs, day {now / 86400:.0f}"


@contextmanager
def watching(
    labels: Sequence[str], jobs: int | None, *, shown: bool = True, told: Callable[[float], str] = _jobs_by_day
) -> Iterator[Watcher]:
    """A watcher that shows bars while the block runs, or one that shows nothing where there is no terminal.

    `told` says what is counted, and the virtual time in a fitting unit.
    """
    console = Console(stderr=True)
    if not (shown and console.is_terminal):
        yield Watcher()
        return
    bars = Bars(labels, jobs, console, told)
    try:
        yield bars
    finally:
        bars.stop()


class Bars(Watcher):
    """A bar for each run under way; `jobs` is how many of its jobs have ended when it is over, if known."""

    def __init__(
        self, labels: Sequence[str], jobs: int | None, console: Console, told: Callable[[float], str] = _jobs_by_day
    ) -> None:
        self._labels = labels
        self._told = told
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[told]}"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self._tasks: list[TaskID] = [
            self._progress.add_task(escape(label), start=False, total=jobs, visible=False, told=told(0.0))
            for label in labels
        ]
        self._begun: set[int] = set()
        self._due = time.monotonic() + _SECONDS_BEFORE_BARS
        self._started = False

    def advanced(self, run: int, jobs_ended: int, now: float) -> None:
        """Move the bar of a run."""
        task = self._tasks[run]
        if run not in self._begun:
            self._begun.add(run)
            self._progress.start_task(task)
        self._progress.update(task, completed=jobs_ended, told=self._told(now), visible=True)
        if not self._started and time.monotonic() >= self._due:
            self._started = True
            self._progress.start()

    def ended(self, run: int, record: Any) -> None:
        """Take the bar of a run away, and say in its place that it is done."""
        self._progress.update(self._tasks[run], visible=False)
        if self._started:
            self._progress.console.print(
                f"{self._labels[run]}: done in {record.wall_seconds:.1f} s", markup=False, highlight=False
            )

    def stop(self) -> None:
        """Leave the terminal as it was."""
        if self._started:
            self._progress.stop()
