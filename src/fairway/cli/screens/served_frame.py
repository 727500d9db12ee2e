"""Frames of `fairway top --served`: what is asked and how soon it is answered, and what the workers hold and do.

The workers are asked themselves, over their sockets. Numbers are since the last frame; in the first one, since the
workers were started.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fairway.live.serving.clients.client_protocol import Site
from fairway.live.serving.supervise.supervisor import tallies

Tallies = Mapping[int, Mapping[str, Any]]


class ServedFrames:
    """Looks at what is served from a directory; refuses one from which nothing is."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._site = Site.find(directory)
        self._before: Tallies = {}
        self._looked_at: float | None = None

    def next(self) -> RenderableType:
        """How it stands now."""
        self._site = Site.find(self._directory)  # it may have been started anew, or stopped
        now, found = time.monotonic(), tallies(self._site.settings)
        seconds = None if self._looked_at is None else now - self._looked_at
        frame = Group(self._head(found), Text(), self._workflows(found, seconds), Text(), self._workers(found))
        self._before, self._looked_at = found, now
        return frame

    def _head(self, found: Tallies) -> Text:
        settings = self._site.settings
        line = Text.assemble(("Fairway serves", "bold"), f" {settings.target}  {settings.scheduler}")
        if settings.emulated:
            line.append("  EMULATED accelerators", style="bold magenta")
        refused: Counter[str] = Counter()
        for tally in found.values():
            refused.update(tally["refused"])
        if refused:
            line.append(f"\nrefused: {', '.join(f'{count} {code}' for code, count in sorted(refused.items()))}")
        return line

    def _workflows(self, found: Tallies, seconds: float | None) -> Table:
        table = Table(box=None, pad_edge=False)
        table.add_column("workflow")
        for name in ("answered", "per second", "mean", "p50 ≤", "p95 ≤"):
            table.add_column(name, justify="right")
        for number, name in enumerate(self._site.workflows):
            bounds: tuple[float, ...] = ()
            counts: Counter[int] = Counter()
            total = 0.0
            for now, then in self._histograms(found, number):
                bounds = tuple(now["bounds"])
                total += now["total"] - then.get("total", 0.0)
                counts.update(dict(enumerate(now["counts"])))
                counts.subtract(dict(enumerate(then.get("counts", ()))))
            answered = sum(counts.values())
            row = [name, f"{answered:,}", "" if seconds is None else f"{answered / seconds:,.1f}"]
            if answered > 0:
                ends = [_text(_quantile(bounds, counts, part * answered)) for part in (0.5, 0.95)]
                row += [_text(total / answered), *ends]
            table.add_row(*row)
        return table

    def _histograms(self, found: Tallies, workflow: int) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
        """The latencies that each process has counted, now and at the last frame."""
        for process, tally in found.items():
            now = tally["latency"].get(workflow)
            if now is None:
                continue
            then = self._before.get(process, {}).get("latency", {}).get(workflow, {})
            if sum(then.get("counts", ())) > sum(now["counts"]):  # it was started anew since
                then = {}
            yield now, then

    def _workers(self, found: Tallies) -> Table:
        settings = self._site.settings
        table = Table(box=None, pad_edge=False)
        table.add_column("process")
        for name in ("open", "waiting", "hits", "loads", "evictions"):
            table.add_column(name, justify="right")
        table.add_column("models")
        for number in [*range(settings.workers), *([] if settings.planner is None else [settings.planner])]:
            tally, name = found.get(number), settings.name_of(number)
            if tally is None:
                table.add_row(name, Text("does not answer", style="red"))
                continue
            uses = tally["hits"] + tally["misses"]
            table.add_row(
                name,
                f"{tally['open']:,}",
                f"{tally['waiting']:,}",
                f"{100 * tally['hits'] / uses:.1f} %" if uses else "",
                f"{tally['loads']:,}",
                f"{tally['evictions']:,}",
                ", ".join(tally["resident"]),
            )
        return table


def _quantile(bounds: tuple[float, ...], counts: Mapping[int, int], wanted: float) -> float:
    """The upper bound of the bucket that so many fall into or below."""
    below = 0
    for number, bound in enumerate(bounds):
        below += counts.get(number, 0)
        if below >= wanted:
            return bound
    return float("inf")


def _text(seconds: float) -> str:
    if seconds == float("inf"):
        return "more"
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1e3 * seconds:.3g} ms"
