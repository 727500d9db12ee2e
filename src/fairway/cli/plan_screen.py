"""Plans and searches on a terminal: a table of differences, the jobs that gain and lose, the cheapest addition."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from fairway.experiments.analysis import Estimate
from fairway.experiments.planning import Difference, Found, Goal, Plan
from fairway.experiments.planning.outlook import HIGHER_IS_BETTER, METRICS
from fairway.service.words import span
from fairway.sim.comparison import Watcher

_MOST_NAMED = 5


def print_plan(found: Plan, outside: int) -> None:
    """The whole plan."""
    console = Console(highlight=False)
    for one in found.differences:
        console.print(Text(str(one.change), style="bold"))
        console.print(_table(found, one))
        console.print(Text(_who(one)), "")
    seeds = "1 simulation" if found.seeds == 1 else f"{found.seeds} simulations"
    console.print(f"{found.jobs} jobs, {seeds} of each; ± is the 95 % interval of the difference", style="dim")
    _print_outside(console, outside)


def _table(found: Plan, one: Difference) -> Table:
    table = Table(pad_edge=False, show_edge=False)
    table.add_column("")
    for name in ("as it is", "with the change", "difference"):
        table.add_column(name, justify="right", no_wrap=True)
    for name, words in METRICS.items():
        was, then = found.base[name].mean, one.numbers[name].mean
        if not (math.isnan(was) and math.isnan(then)):
            table.add_row(words, _value(name, was), _value(name, then), _difference(name, one.against[name]))
    return table


def print_found(found: Found, outside: int) -> None:
    """What a search has found."""
    console = Console(highlight=False)
    table = Table(pad_edge=False, show_edge=False)
    table.add_column("tried")
    table.add_column(METRICS[found.goal.metric], justify="right")
    table.add_column("")
    for name, value in found.values.items():
        reached = found.goal.reached(value.mean)
        table.add_row(Text(name), _value(found.goal.metric, value.mean), "reaches it" if reached else "")
    console.print(table)
    if found.change is None:
        console.print(f"nothing of up to {found.most} more workers of each type reaches {found.goal.text}")
    else:
        cost = "" if found.dollars_per_hour is None else f", for ${found.dollars_per_hour:.2f} an hour"
        console.print(Text(f"{found.goal.text}: {found.change}{cost}"), style="bold")
    if not found.complete:
        console.print("there are too many mixtures to try all of them: a cheaper one is possible", style="dim")
    _print_outside(console, outside)


@contextmanager
def searching(goal: Goal, *, shown: bool = True) -> Iterator[Watcher]:
    """A watcher that shows, on a terminal, that a search goes on, and how many simulations it has done."""
    console = Console(stderr=True)
    if not (shown and console.is_terminal):
        yield Watcher()
        return
    with Progress(
        SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=console, transient=True
    ) as progress:
        yield _Counting(progress, goal)


class _Counting(Watcher):
    def __init__(self, progress: Progress, goal: Goal) -> None:
        self._progress, self._goal, self._done = progress, goal, 0
        self._task = progress.add_task(self._words())

    def ended(self, run: int, record: Any) -> None:  # noqa: ARG002 - as every watcher hears it
        self._done += 1
        self._progress.update(self._task, description=self._words())

    def _words(self) -> str:
        return f"searching {self._goal.text}: {self._done} simulations"


def _print_outside(console: Console, outside: int) -> None:
    if outside:
        jobs = "1 job waits" if outside == 1 else f"{outside} jobs wait"
        console.print(f"{jobs} for other jobs or for a quota, and is not in the plan", style="dim")


def _difference(name: str, against: Estimate) -> Text:
    if math.isnan(against.mean):
        return Text("–")
    if against.mean == 0:
        return Text("none")
    better = (against.mean > 0) == (name in HIGHER_IS_BETTER)
    style = "default" if _is_unsure(against) else "green" if better else "red"
    interval = "" if math.isnan(against.half) else f" ± {_value(name, against.half)}"
    return Text(f"{'+' if against.mean > 0 else '−'}{_value(name, abs(against.mean))}{interval}", style)


def _is_unsure(against: Estimate) -> bool:
    return math.isnan(against.half) or against.half >= abs(against.mean)


def _value(name: str, value: float) -> str:
    if math.isnan(value):
        return "–"
    if name == "slo":
        return f"{100 * value:.1f} %"
    if name == "cost":
        return f"${value:,.2f}"
    if name == "unfinished":
        return f"{value:g}"
    return span(value)


def _who(one: Difference) -> str:
    if one.changes_nothing:
        return f"{one.change}: makes no difference to any job"
    parts = [
        f"{len(one.gains)} jobs finish earlier{_named(one.gains)}" if one.gains else "no job finishes earlier",
        f"{len(one.losses)} later{_named(one.losses)}" if one.losses else "none later",
    ]
    teams = [f"{name} {'+' if value > 0 else '−'}{span(abs(value))}" for name, value in one.teams.items()]
    return f"{one.change}: {', '.join(parts)}" + (f"; by team {', '.join(teams)}" if teams else "")


def _named(jobs: Mapping[str, float]) -> str:
    return f" ({', '.join(f'{name} {span(value)}' for name, value in list(jobs.items())[:_MOST_NAMED])})"
