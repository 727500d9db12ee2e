"""The name and the look by which each run of a page is known in every chart.

Colours are those of Okabe and Ito, which people with any form of colour vision can tell apart, without black and
yellow, one of which would vanish on a dark and the other on a light page. Runs of the same policy, or the same
scheduler, share a colour.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
_DASHES = ("solid", "dash", "dot", "dashdot")
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "cross", "star", "pentagon")


@dataclass(frozen=True, slots=True)
class Look:
    """`first` says that no run before it has its policy or scheduler, `alone` that no other run has."""

    label: str
    colour: str
    dash: str
    symbol: str
    first: bool
    alone: bool


def looks_of(runs: Sequence[tuple[str, object]]) -> list[Look]:
    """Looks for runs of (policy or scheduler, seed).

    A run is named by its policy or scheduler, by its seed too where other runs have the same one, and by number where
    even that is not enough.
    """
    places = {name: place for place, name in enumerate(dict.fromkeys(name for name, _ in runs))}
    repeated = Counter(name for name, _ in runs)
    seen: Counter[str] = Counter()
    looks = []
    for number, (name, seed) in enumerate(runs):
        label = name if repeated[name] == 1 else f"{name}, seed {seed}"
        seen[label] += 1
        place = places[name]
        looks.append(
            Look(
                label if seen[label] == 1 else f"{label} #{seen[label]}",
                _COLOURS[place % len(_COLOURS)],
                _DASHES[place // len(_COLOURS) % len(_DASHES)],
                _SYMBOLS[place % len(_SYMBOLS)],
                first=all(other != name for other, _ in runs[:number]),
                alone=repeated[name] == 1,
            )
        )
    return looks


def border_style(dash: str) -> str:
    """CSS's name for one of plotly's dashes, so that a table shows the line that a chart draws."""
    return {"solid": "solid", "dot": "dotted"}.get(dash, "dashed")
