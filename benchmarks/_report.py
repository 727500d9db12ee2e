"""The form that every benchmark reports in, and the stopwatch that they share.

Ours and the peer take turns in one process, so that what else the machine does hits both. A ratio says how many times
less the median of ours takes than the median of the peer; its spread is that of the ratios of the single turns.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Annotated, Any, NamedTuple

import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table


@dataclass(frozen=True, slots=True)
class Result:
    """One row: `ratio` is how many times better ours is than the peer, None without one.

    `target` is the ratio that we promise or, without a peer, the bound on `ours`; None promises nothing. `spread` is
    relative, over the repeats; None if there was one. `extra` holds what only this row has to tell.
    """

    name: str
    unit: str
    ours: float
    peer_name: str | None = None
    peer: float | None = None
    ratio: float | None = None
    target: float | None = None
    spread: float | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None if there is none."""
        if self.target is None:
            return None
        return self.ours <= self.target if self.ratio is None else self.ratio >= self.target

    def to_dict(self) -> dict[str, Any]:
        """The row in the form that is printed."""
        fixed = ("name", "unit", "ours", "peer_name", "peer", "ratio", "target", "spread")
        return {**{key: getattr(self, key) for key in fixed}, **self.extra}


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asks for: how many turns, whether small sizes will do, which instances, which part."""

    repeats: int
    quick: bool
    seed: int
    only: str | None = None


class Turns(NamedTuple):
    """The seconds of every turn, and the last answer."""

    seconds: list[float]
    answer: Any


_clock = time.perf_counter


def take_cpu_seconds() -> None:
    """From now on, turns are counted in CPU seconds of this process, all of its threads together."""
    global _clock  # noqa: PLW0603  one clock for the whole process, chosen on the command line
    _clock = time.process_time


def take_turns(*contestants: tuple[Callable[[], Any], int]) -> list[Turns]:
    """Let each run as often as it says, one after the other; who has had its turns drops out."""
    turns = [Turns([], None) for _ in contestants]
    for turn in range(max(repeats for _, repeats in contestants)):
        for position, (run, repeats) in enumerate(contestants):
            if turn < repeats:
                gc.collect()
                begin = _clock()
                answer = run()
                turns[position] = Turns([*turns[position].seconds, _clock() - begin], answer)
    return turns


def spread(values: Sequence[float]) -> float | None:
    """(highest - lowest) / median."""
    return (max(values) - min(values)) / median(values) if len(values) > 1 else None


def ratios(theirs: Sequence[float], ours: Sequence[float]) -> list[float]:
    """The ratio of each turn; a peer that ran less often stays at its last time."""
    return [theirs[min(turn, len(theirs) - 1)] / seconds for turn, seconds in enumerate(ours)]


def compared(
    name: str, ours: Turns, peer_name: str, peer: Turns, target: float | None, extra: Mapping[str, Any]
) -> Result:
    """The row of two that took turns."""
    return Result(
        name=name,
        unit="s",
        ours=median(ours.seconds),
        peer_name=peer_name,
        peer=median(peer.seconds),
        ratio=median(peer.seconds) / median(ours.seconds),
        target=target,
        spread=spread(ratios(peer.seconds, ours.seconds)),
        extra={**extra, "repeats": len(ours.seconds), "peer_repeats": len(peer.seconds)},
    )


def run(benchmark: str, measure: Callable[[Options], Iterator[Result]], parts: Sequence[str] = ()) -> None:
    """The command line of a benchmark; one that has `parts` can be asked for one of them."""

    def command(
        destination: Annotated[str | None, typer.Option("--json", help="Write the results here, - for stdout.")] = None,
        repeats: Annotated[int, typer.Option(min=1, help="Turns of each; a peer that takes long has one.")] = 7,
        quick: Annotated[bool, typer.Option("--quick", help="Small sizes, to see that it runs; no targets.")] = False,
        seed: Annotated[int, typer.Option(min=0, help="Other instances of the same kind.")] = 0,
        cpu: Annotated[bool, typer.Option("--cpu", help="Take CPU seconds: for a machine that is busy.")] = False,
        only: Annotated[str | None, typer.Option(help="One part of the benchmark, where it has several.")] = None,
    ) -> None:
        if only is not None and only not in parts:
            expected = f"expected one of {', '.join(parts)}" if parts else "but this benchmark has no parts"
            raise typer.BadParameter(f"'{only}' given, {expected}", param_hint="--only")
        if cpu:
            take_cpu_seconds()
        show(benchmark, measure(Options(repeats, quick, seed, only)), destination)

    typer.run(command)


def show(benchmark: str, measured: Iterable[Result], destination: str | None) -> None:
    """The table goes to stderr as it grows, the JSON document where it is wanted."""
    table, results = _table(benchmark), []
    console = Console(stderr=True)
    if not console.is_terminal:
        console.width = 140
    try:
        with Live(table, console=console, auto_refresh=False) as live:
            for result in measured:
                results.append(result.to_dict())
                table.add_row(*_cells(result))
                live.refresh()
    finally:  # what took long to measure is not lost with what went wrong after it
        document = json.dumps({"benchmark": benchmark, "results": results}, indent=1, allow_nan=False)
        if destination == "-":
            sys.stdout.write(document + "\n")
        elif destination is not None:
            Path(destination).write_text(document + "\n", encoding="utf-8")


def _table(benchmark: str) -> Table:
    table = Table(title=f"benchmarks.{benchmark}", title_justify="left")
    for heading in ("question", "peer"):
        table.add_column(heading)
    for heading in ("ours", "peer", "ratio", "target", "spread"):
        table.add_column(heading, justify="right")
    return table


def _cells(result: Result) -> list[str]:
    sign = "≤" if result.ratio is None else "≥"
    target = "" if result.target is None else f"{sign} {result.target:g}"
    if result.met is False:
        target = f"[red]{target}[/red]"
    return [
        result.name,
        result.peer_name or "",
        _amount(result.ours, result.unit),
        "" if result.peer is None else _amount(result.peer, result.unit),
        "" if result.ratio is None else f"{result.ratio:.1f}",
        target,
        "" if result.spread is None else f"{result.spread:.0%}",
    ]


def _amount(value: float, unit: str) -> str:
    if unit == "s" and value < 1e-3:
        return f"{value * 1e6:.1f} µs"
    if unit == "s":
        return f"{value * 1e3:.1f} ms" if value < 1 else f"{value:.2f} s"
    return f"{value:,} {unit}" if isinstance(value, int) else f"{value:,.1f} {unit}"
