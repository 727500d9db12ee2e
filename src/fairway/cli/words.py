"""How commands say times, numbers and states to people."""

from __future__ import annotations

import os
from datetime import datetime
from itertools import pairwise
from typing import Any

from rich.console import Console
from rich.text import Text

from fairway.client.records import Job, Prediction

COLOURS = {
    "queued": "yellow",
    "running": "green",
    "preempting": "magenta",
    "succeeded": "blue",
    "failed": "red",
    "cancelled": "dim",
    "free": "green",
    "busy": "cyan",
    "drained": "yellow",
    "lost": "red",
}
NOTHING = "·"

_WIDE = 200
_UNITS = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))


def console() -> Console:
    """Standard output; where that is no terminal, lines are wide enough for tables that programs read."""
    target = Console(highlight=False)
    if target.is_terminal or os.environ.get("COLUMNS"):
        return target
    return Console(highlight=False, width=_WIDE)


def text(value: object, style: str = "") -> Text:
    """A value from the server, on one line and without anything that could move the cursor."""
    words = NOTHING if value is None or value == "" else str(value)
    return Text("".join(char if char.isprintable() else " " for char in words), style=style)


def state(name: str) -> Text:
    """A state in its colour."""
    return text(name, COLOURS.get(name, ""))


def span(seconds: float | None) -> str:
    """A length of time in its two largest units: `45s`, `3m05s`, `2h10m`, `4d02h`."""
    if seconds is None:
        return NOTHING
    left = max(0, round(seconds))
    for (unit, name), (smaller, its_name) in pairwise(_UNITS):
        if left >= unit:
            return f"{left // unit}{name}{left % unit // smaller:02d}{its_name}"
    return f"{left}s"


def moment(at: float | None, now: float) -> str:
    """A time of day, with the date unless it is today."""
    if at is None:
        return NOTHING
    try:
        local, today = datetime.fromtimestamp(at).astimezone(), datetime.fromtimestamp(now).astimezone()
    except (OSError, OverflowError, ValueError):  # after the last year that a calendar has
        return "out of sight"
    return f"{local:%H:%M:%S}" if local.date() == today.date() else f"{local:%Y-%m-%d %H:%M:%S}"


def count(value: float | None) -> str:
    """A number of steps, short: `850`, `12.5k`, `3.1M`."""
    if value is None:
        return NOTHING
    for size, name in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if name == 'k' else size):.4g}{name}"
    return f"{value:.4g}" if value != int(value) else f"{value:.0f}"


def progress(job: Job) -> str:
    """How far a job is; nothing for a job of unknown length."""
    done = job.steps_done
    if done is None or not job.steps:
        return NOTHING
    return f"{done / job.steps:.0%} of {count(job.steps)}"


def time_of(job: Job, now: float) -> float | None:
    """How long a job has been waiting or, once it was started, running; of one that has ended, how long it took."""
    begun = job.submitted_at if job.started_at is None else job.started_at
    return None if begun is None else (job.ended_at or now) - begun


def accelerator(job: Job) -> Text:
    """What a job runs on, or what it asks for."""
    if job.accelerator is None:
        return text(job.accelerators or "any", "dim")
    gang = f" × {job.count}" if job.count > 1 else ""
    return Text.assemble(text(job.accelerator), gang, (" (emulated)" if job.emulated else "", "magenta"))


def predicted(prediction: Prediction | None, now: float) -> str:
    """When a job will start, with the interval."""
    if prediction is None or prediction.start_at is None:
        return "cannot be predicted"
    line = f"in {span(prediction.start_at - now)} (at {moment(prediction.start_at, now)})"
    if prediction.earliest_at is not None and prediction.latest_at is not None:
        earliest, latest = span(prediction.earliest_at - now), span(prediction.latest_at - now)
        line += f", between {earliest} and {latest} from now"
    return line


def number(value: Any) -> str:
    """A number to four digits."""
    return f"{value:.4g}" if isinstance(value, int | float) else NOTHING
