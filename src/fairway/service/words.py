"""Times and durations in words, for sentences."""

from __future__ import annotations

from datetime import datetime


def span(seconds: float) -> str:
    """A duration, as in `90 s`, `12 min` or `3.5 h`."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def clock_time(seconds: float) -> str:
    """A time of today or soon, on the clock of this machine."""
    try:
        return datetime.fromtimestamp(seconds).astimezone().strftime("%H:%M:%S")
    except (OSError, OverflowError, ValueError):  # after the last year that a calendar has
        return "a time out of sight"
