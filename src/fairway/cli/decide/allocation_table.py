"""The table that `fairway allocate` prints for people: jobs by accelerator types, in percent of the time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from fairway.allocate.allocation import Allocation
    from fairway.allocate.problem import Problem

_ROUNDING = 1e-6
"""A rate below this part of a job's fastest is shown as 0."""

_MOST_ROWS = 200


def print_allocation(policy: str, problem: Problem, allocation: Allocation, seconds: float) -> None:
    """Print the shares of each job and pair, how busy each type is, its price and the objective."""
    console = Console(highlight=False)
    table = Table(title=Text(policy), title_justify="left", pad_edge=False, show_edge=False)
    table.add_column("jobs", overflow="fold")
    for name in allocation.types:
        table.add_column(Text(name), justify="right", overflow="fold")
    table.add_column("steps/s", justify="right")
    table.add_column("held back by", overflow="fold")
    left_out = _add_rows(table, allocation)
    table.add_section()
    busy = zip(allocation.used.tolist(), problem.workers.tolist(), strict=True)
    table.add_row("workers busy", *(f"{used:.2f} of {count:.0f}" for used, count in busy), "", "")
    if allocation.prices is not None:
        table.add_row("one more adds", *(f"{price:.4g}" for price in allocation.prices.tolist()), "", "")
    console.print(table)
    if left_out:
        console.print(f"… and {left_out} more rows, all of them in the JSON")
    console.print(_summary(allocation, seconds))


def _add_rows(table: Table, allocation: Allocation) -> int:
    """Add a row for each job and each pair that has time; returns how many did not fit."""
    ids, rates, fastest = allocation.ids, allocation.throughputs.tolist(), allocation.problem.fastest.tolist()
    shown = left_out = 0
    for first, second, shares in zip(
        allocation.first.tolist(), allocation.second.tolist(), allocation.shares.tolist(), strict=True
    ):
        paired = second >= 0
        if paired and not any(map(_noticeable, shares)):
            continue
        if shown == _MOST_ROWS:
            left_out += 1
            continue
        shown += 1
        binding = allocation.bindings[first]
        table.add_row(
            Text(f"{ids[first]} + {ids[second]}" if paired else ids[first]),
            *(f"{share:.1%}" if _noticeable(share) else "·" for share in shares),
            "" if paired else f"{rates[first] if rates[first] > _ROUNDING * fastest[first] else 0.0:.4g}",
            "" if paired else Text(f"{binding.accelerator} is full" if binding.accelerator else binding.kind),
        )
    return left_out


def _noticeable(share: float) -> bool:
    return share >= 0.0005


def _summary(allocation: Allocation, seconds: float) -> Text:
    better = "more" if allocation.sense == "max" else "less"
    proof = ""
    if allocation.gap is not None:
        proof = ", optimal" if allocation.optimal else f", within {100 * allocation.gap:.2g} % of the optimum"
    return Text(f"objective {allocation.objective:.6g} ({better} is better{proof}), decided in {1000 * seconds:.1f} ms")
